// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forSeeds runs a property for many seeds; the seed in the name repeats a failure.
func forSeeds(t *testing.T, property func(t *testing.T, g generator)) {
	t.Helper()
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { property(t, newGenerator(seed)) })
	}
}

// anyLimit is a random limit.
func (g generator) anyLimit() Bytes { return Bytes(g.IntN(20_000))*MiB + Bytes(g.IntN(3))*12345 }

func TestBoundsOfAPlanThatFitsLeaveTheHeadroomFree(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		load, policy := g.load(w), g.policy()
		limit := g.anyLimit()
		if required := RequiredLimit(w, load, policy); g.IntN(2) == 0 && required < MaxBytes {
			limit = required + Bytes(g.IntN(1000))*MiB
		}
		plan := PlanFor(w, load, policy, limit)
		heap, native := Bytes(0), Bytes(0)
		for _, l := range plan.Lines {
			if l.Bound < 0 || l.Expected < 0 || l.Expected > l.Bound {
				t.Errorf("line %s: bound %v, expected %v", l.Region, l.Bound, l.Expected)
			}
			if l.Pool == Heap {
				heap += l.Bound
			} else {
				native += l.Bound
			}
		}
		if plan.Fits() && heap+native > plan.Limit-plan.Headroom {
			t.Errorf("fits, but the bounds of %v and %v pass %v - %v", heap, native, plan.Limit, plan.Headroom)
		}
		if plan.Fits() && plan.Bound != heap+native {
			t.Errorf("Bound is %v, the lines add up to %v", plan.Bound, heap+native)
		}
		if plan.Fits() != (len(plan.Deficits) == 0) {
			t.Errorf("verdict %v with deficits %v", plan.Verdict, plan.Deficits)
		}
		if plan.Heap > heap && plan.Fits() {
			t.Errorf("heap of the JVM is %v, the plan counts %v", plan.Heap, heap)
		}
	})
}

func TestFloorsAreKept(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		w.Bounded, w.JVM.HeapMode, w.JVM.MaxHeap = true, HeapPlanned, Fact[Bytes]{}
		w.RocksDB.OwnCache = Fact[Bytes]{} // it has no floor
		load := g.load(w)
		policy := DefaultPolicy()
		plan := PlanFor(w, load, policy, g.anyLimit())
		if got, least := plan.line(RegionPageCache).Bound, max(48*MiB, plan.Limit.alignDown(MiB).Scale(5, 100)); got != least {
			t.Errorf("page cache %v, want the floor of %v", got, least)
		}
		if got := plan.line(RegionBlockCache).Bound; got < minCache {
			t.Errorf("shared cache %v is below %v", got, minCache)
		}
		lines := Bytes(0)
		for _, l := range plan.Lines {
			if l.Pool == Heap && l.Region != RegionHeapReserve {
				lines += l.Bound
			}
		}
		if plan.Heap.Scale(7, 10) < lines {
			t.Errorf("planned heap %v is too small for its lines of %v", plan.Heap, lines)
		}
	})
}

func TestRaisingTheLimitNeverLowersTheVerdict(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		w.JVM.Collector = Known(pick(g, Serial, Parallel, G1, ZGC), App)
		load, policy := g.load(w), g.policy()
		limit := g.anyLimit()
		if required := RequiredLimit(w, load, policy); required < MaxBytes {
			limit = max(required-Bytes(g.IntN(3))*MiB, 0)
		}
		fit := false
		for range 40 {
			plan := PlanFor(w, load, policy, limit)
			if fit && !plan.Fits() {
				t.Fatalf("a smaller limit fits, %v does not: %v", limit, plan.Deficits)
			}
			fit = plan.Fits()
			limit += Bytes(g.IntN(3)) + pick(g, 0, 1, MiB, 100*MiB)
		}
	})
}

func TestTheRequiredLimitIsTheSmallestThatHolds(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		load, policy := g.load(w), g.policy()
		required := RequiredLimit(w, load, policy)
		if required == MaxBytes {
			if PlanFor(w, load, policy, 1<<50).Fits() {
				t.Fatal("no limit should hold, but 1 PiB does")
			}
			return
		}
		if got := PlanFor(w, load, policy, required).Verdict; got == LimitTooSmall {
			t.Errorf("%v is required and yet too small", required)
		}
		if got := PlanFor(w, load, policy, required-1).Verdict; got != LimitTooSmall {
			t.Errorf("%v - 1 B has the verdict %v", required, got)
		}
	})
}

func TestAnotherTaskNeverLowersTheRequiredLimit(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		load, policy := g.load(w), g.policy()
		before := RequiredLimit(w, load, policy)
		more := load
		more.Caps = slices.Clone(load.Caps)
		at := &more.Caps[g.IntN(len(more.Caps))]
		at.Total++
		more.Total++
		if g.IntN(2) == 0 {
			at.Active++
			more.Active++
		}
		if after := RequiredLimit(w, more, policy); after < before {
			t.Errorf("required limit fell from %v to %v", before, after)
		}
	})
}

func TestAnotherTaskOfTheApplicationNeverLowersALoad(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		a := g.assignment(w, 1+g.IntN(5))
		failures := g.IntN(len(a.Pods))
		before := LoadsAfter(w, a, failures)
		more := w
		more.Subtopologies = slices.Clone(w.Subtopologies)
		more.Subtopologies[g.IntN(len(w.Subtopologies))].Tasks++
		for i, load := range LoadsAfter(more, a, failures) {
			requireNotBelow(t, load, before[i])
		}
	})
}

// requireNotBelow fails where a load is below another in any of its bounds.
func requireNotBelow(t *testing.T, load, least Load) {
	t.Helper()
	below := load.Threads < least.Threads || load.Active < least.Active || load.Total < least.Total
	for i := range load.Caps {
		below = below || load.Caps[i].Active < least.Caps[i].Active || load.Caps[i].Total < least.Caps[i].Total
	}
	if below {
		t.Errorf("load %+v is below %+v", load, least)
	}
}

func TestALoadIsNeverBelowThePresentOneAndGrowsWithFailures(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		a := g.assignment(w, 1+g.IntN(6))
		least := observedLoads(w, a)
		for failures := range len(a.Pods) {
			loads := LoadsAfter(w, a, failures)
			for i := range loads {
				requireNotBelow(t, loads[i], least[i])
			}
			least = loads
		}
	})
}

func TestOrderOfPodsAndTasksChangesNothing(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		a := g.assignment(w, 1+g.IntN(5))
		failures := g.IntN(len(a.Pods))
		policy := g.policy()
		limits := map[string]Bytes{}
		for _, pod := range a.Pods {
			limits[pod.Name] = g.anyLimit()
		}
		want := map[string]Load{}
		for i, load := range LoadsAfter(w, a, failures) {
			want[a.Pods[i].Name] = load
		}
		tolerated := survives(w, a, policy, limits)

		b := Assignment{Pods: slices.Clone(a.Pods)}
		g.Shuffle(len(b.Pods), func(i, j int) { b.Pods[i], b.Pods[j] = b.Pods[j], b.Pods[i] })
		for i := range b.Pods {
			active := slices.Clone(b.Pods[i].Current.Active)
			g.Shuffle(len(active), func(i, j int) { active[i], active[j] = active[j], active[i] })
			b.Pods[i].Current.Active = active
		}
		for i, load := range LoadsAfter(w, b, failures) {
			if d := cmp.Diff(want[b.Pods[i].Name], load); d != "" {
				t.Errorf("%s: %s", b.Pods[i].Name, d)
			}
		}
		if got := survives(w, b, policy, limits); got != tolerated {
			t.Errorf("%d failures tolerated in another order, %d before", got, tolerated)
		}
	})
}

func TestEachLineTakesTheWorstChoiceOfTasks(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := release(4, 4, 0)
		for i := range 1 + g.IntN(3) {
			w.Subtopologies = append(w.Subtopologies, Subtopology{ID: fmt.Sprint(i), Tasks: 4, InputPartitions: g.IntN(5)})
		}
		load := g.load(w)
		p := newProcess(&w, load, DefaultPolicy())
		if got, want := worstActive(p.client, inputPartitions), mostInputs(w.Subtopologies, load.Caps, load.Active); got != want {
			t.Errorf("%d input partitions for %+v, trying all choices gives %d", got, load, want)
		}
	})
}

// mostInputs tries every choice of active tasks.
func mostInputs(subtopologies []Subtopology, caps []Cap, tasks int) Count {
	if len(subtopologies) == 0 {
		return 0
	}
	most := Count(0)
	for n := range min(caps[0].Active, tasks) + 1 {
		most = max(most, Count(n*subtopologies[0].InputPartitions)+mostInputs(subtopologies[1:], caps[1:], tasks-n))
	}
	return most
}

func TestTheFlagsGiveThePlannedHeap(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		w.JVM.HeapMode, w.JVM.MaxHeap = HeapPlanned, Fact[Bytes]{}
		plan := PlanFor(w, g.load(w), g.policy(), g.anyLimit())
		if !plan.Fits() {
			return
		}
		var flags []string
		for _, c := range plan.Configs {
			if c.Kind == JVMOption && c.Value != "" {
				flags = append(flags, c.Name+"="+c.Value)
			}
		}
		jvm, err := ParseJVMFlags(flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := jvm.HeapUnder(plan.Limit); got != plan.Heap {
			t.Errorf("flags %v give a heap of %v, planned %v of %v", flags, got, plan.Heap, plan.Limit)
		}
	})
}
