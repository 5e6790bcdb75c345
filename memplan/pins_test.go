// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"streamweir.dev/streamweir/internal/golden"
)

var (
	pinnedSeeds = flag.Uint64("pinned-seeds", 200, "the number of random inputs that TestPinned plans")
	pinnedDump  = flag.String("pinned-dump", "", "a file for all numbers of the pinned plans, in place of the comparison with the golden file")
)

// TestPinned compares the numbers of random plans with a golden file. Texts are not in it. A change of this file is a change of behaviour.
func TestPinned(t *testing.T) {
	var numbers, dump strings.Builder
	pin := func(kind string, seed uint64, summary, details string) {
		hash := sha256.Sum256([]byte(details))
		fmt.Fprintf(&numbers, "%s %d: %s %x\n", kind, seed, summary, hash[:6])
		fmt.Fprintf(&dump, "%s %d: %s\n%s\n", kind, seed, summary, details)
	}
	for seed := range *pinnedSeeds {
		summary, details := pinnedPlan(newGenerator(seed))
		pin("plan", seed, summary, details)
		summary, details = pinnedApplication(newGenerator(seed))
		pin("application", seed, summary, details)
	}
	if *pinnedDump == "" {
		golden.Compare(t, "pinned.golden", numbers.String())
		return
	}
	if err := os.WriteFile(*pinnedDump, []byte(dump.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pinnedPlan plans a random load with random properties, often near the required limit.
func pinnedPlan(g generator) (summary, details string) {
	w := g.workload()
	properties := g.properties()
	problem := w.ApplyProperties(properties)
	if g.IntN(4) == 0 {
		other := g.workload()
		w.Others = []Client{{ApplicationID: "other", Workload: other, Load: g.load(other)}}
	}
	policy := g.policy()
	load := g.load(w)
	if g.IntN(2) == 0 {
		load = pick(g, LoadsAfter(w, g.assignment(w, 1+g.IntN(4)), g.IntN(3))...)
	}
	limit := g.anyLimit()
	required := RequiredLimit(w, load, policy)
	if required < MaxBytes && g.IntN(4) > 0 {
		limit = required + Bytes(g.IntN(600)-100)*MiB
	}
	plan := PlanFor(w, load, policy, limit)
	summary = fmt.Sprintf("required %d invalid %t %s", required, problem != nil, numbersOf(plan))
	return summary, fmt.Sprintf("%v\n%s", properties, detailsOf(plan))
}

// pinnedApplication plans a random application.
func pinnedApplication(g generator) (summary, details string) {
	plan := PlanApplication(g.application())
	summary = fmt.Sprintf("known %t limit %d by %d required %d now %d active %d tolerated %d cold %d", plan.TasksKnown, plan.Limit, plan.CappedBy,
		plan.Required, plan.RequiredNow, plan.RequiredNowActive, plan.Tolerated, plan.ColdStart)
	var all strings.Builder
	names := make([]string, 0, len(plan.Pods))
	for name := range plan.Pods {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&all, "%s %v\n", name, plan.Pods[name])
	}
	fmt.Fprintf(&all, "representative %s\n%s", numbersOf(plan.Representative), detailsOf(plan.Representative))
	fmt.Fprintf(&all, "published %s\n%s", numbersOf(plan.Published), detailsOf(plan.Published))
	return summary, all.String()
}

// numbersOf has the main numbers of a plan.
func numbersOf(p Plan) string {
	return fmt.Sprintf("limit %d heap %d headroom %d bound %d expected %d required %d at defaults %d verdict %d collector %d warnings %d", p.Limit, p.Heap,
		p.Headroom, p.Bound, p.Expected, p.RequiredLimit, p.RequiredLimitAtDefaults, p.Verdict, p.Collector, len(p.Warnings))
}

// detailsOf has all other numbers of a plan.
func detailsOf(p Plan) string {
	var all strings.Builder
	fmt.Fprintf(&all, "%v\n%v\n", p.Load, p.Split)
	for _, l := range p.Lines {
		fmt.Fprintln(&all, l.Region, l.Pool, int64(l.Bound), int64(l.Expected), l.Count, int64(l.Unit), l.From, l.Client)
	}
	for _, c := range p.Configs {
		fmt.Fprintln(&all, c.Kind, c.Name, c.Value, c.From)
	}
	for _, d := range p.Deficits {
		fmt.Fprintln(&all, d.Pool, int64(d.Missing))
	}
	return all.String()
}

// properties has random configs of an application.
func (g generator) properties() map[string]string {
	names := []string{
		"num.stream.threads", "num.standby.replicas", "max.warmup.replicas", "buffered.records.per.partition", "statestore.cache.max.bytes",
		"cache.max.bytes.buffering", "statestore.uncommitted.max.bytes", "processing.guarantee", "group.protocol", "dsl.store.format",
		"rocksdb.config.setter", "security.protocol", "buffer.memory", "batch.size", "max.request.size", "compression.type", "compression.zstd.level",
		"send.buffer.bytes", "receive.buffer.bytes", "fetch.max.bytes", "max.partition.fetch.bytes", "max.poll.records",
	}
	properties := map[string]string{}
	for range g.IntN(7) {
		prefix := pick(g, "", "", "", "producer.", "consumer.", "main.consumer.", "restore.consumer.", "global.consumer.")
		properties[prefix+pick(g, names...)] = pick(g, "0", "1", "3", "100", "65536", "1048576", "67108864", "-1", "true", "zstd", "ssl", "headers", "exactly_once", "streams", "x")
	}
	return properties
}

// application is a random application with pods of several kinds.
func (g generator) application() Application {
	planned := g.workload()
	if g.IntN(12) == 0 {
		planned.Subtopologies = nil
	}
	if g.IntN(2) == 0 {
		planned.JVM.HeapMode = HeapPlanned
	}
	target := planned
	target.Bounded = true
	a := Application{
		Planned: planned, Target: target, Running: map[PodKind]Workload{}, Pods: map[string]RunningPod{},
		Policy: g.policy(), Range: g.limitRange(), Rollout: g.IntN(3) == 0, Withdrawn: g.IntN(6) == 0, StartsInOrder: g.IntN(3) == 0, ColdStart: g.IntN(8) == 0,
	}
	for _, kind := range []PodKind{{}, {Injected: true}, {Bounded: true}, {Injected: true, Bounded: true}} {
		running := planned
		running.Bounded = kind.Bounded
		if !kind.Injected && running.JVM.HeapMode == HeapPlanned {
			running.JVM.HeapMode = HeapPercent
		}
		if g.IntN(2) == 0 { // the heap that it was started with
			running.JVM.HeapMode, running.JVM.MaxHeap = HeapFixed, Known(Bytes(64+g.IntN(2000))*MiB, Measured)
		}
		a.Running[kind] = running
	}
	a.Assignment = g.assignment(planned, 1+g.IntN(5))
	if g.IntN(8) == 0 {
		a.Assignment.Pods = nil
	}
	if g.IntN(8) == 0 && len(a.Assignment.Pods) > 0 {
		heaviest := a.Assignment.Pods[0]
		a.Assignment.Pods[0].Current, a.Assignment.Pods[0].Target = Tasks{}, Tasks{}
		heaviest.Name = ""
		a.Assignment.Unmatched = []Pod{heaviest}
	}
	usual := 2 * GiB
	if len(a.Assignment.Pods) > 0 {
		usual = min(RequiredLimit(planned, pick(g, LoadsAfter(planned, a.Assignment, g.IntN(3))...), a.Policy), 64*GiB)
	}
	if g.IntN(2) == 0 {
		a.Range.Template = usual
	}
	for _, pod := range a.Assignment.Pods {
		running := RunningPod{Kind: PodKind{Injected: g.IntN(2) == 0, Bounded: g.IntN(2) == 0}, Limit: usual.Scale(int64(9+g.IntN(8)), 10)}
		if g.IntN(12) == 0 {
			running.Limit = 0
		}
		a.Pods[pod.Name] = running
		if running.Kind.Injected && running.Limit > 0 {
			a.PlanReaders = append(a.PlanReaders, running.Limit)
		}
	}
	if g.IntN(3) == 0 {
		a.Current = usual.Scale(int64(8+g.IntN(6)), 10)
	}
	a.Failures = Failures{Tolerated: g.IntN(4), Unavailable: g.IntN(3), Starting: g.IntN(2)}
	a.Failures.Instances = len(a.Assignment.Pods) + g.IntN(3)
	if g.IntN(4) == 0 {
		neighbour := g.workload()
		a.Neighbours = append(a.Neighbours, Neighbour{ApplicationID: "neighbour", Workload: neighbour, Assignment: g.assignment(neighbour, 1+g.IntN(3))})
	}
	return a
}

// limitRange is a random range of limits.
func (g generator) limitRange() Range {
	r := Range{Template: Bytes(200+g.IntN(3000)) * MiB, Adjustable: g.IntN(6) > 0, Max: MaxBytes, Cap: MaxBytes, BelowTemplate: g.IntN(3) == 0}
	if g.IntN(2) == 0 {
		r.Min = Bytes(100+g.IntN(1500)) * MiB
	}
	if g.IntN(3) == 0 {
		r.Max = r.Min + Bytes(g.IntN(4000))*MiB
	}
	if g.IntN(4) == 0 {
		r.Cap = Bytes(200+g.IntN(4000)) * MiB
	}
	return r
}
