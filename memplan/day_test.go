// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"streamweir.dev/streamweir/internal/golden"
)

// day is an application from its deployment in the morning to its scaling in at night. After each event Kafka deals the tasks out anew,
// then the limits follow the plan, as an operator would have them: raised at once, lowered only when a pod starts.
type day struct {
	*testing.T
	w      Workload
	policy Policy
	pods   []*dayPod
	named  int
	log    strings.Builder
	// choose picks one of n: the last in the normal order, any in a random one.
	choose func(n int) int
}

// dayPod is a running pod with what it was started with.
type dayPod struct {
	name  string
	tasks []Task
	limit Bytes
	own   Workload
}

func newDay(t *testing.T, w Workload, choose func(n int) int) *day {
	return &day{T: t, w: w, policy: DefaultPolicy(), choose: choose}
}

// assignment is what the group shows.
func (d *day) assignment() Assignment {
	a := Assignment{}
	for _, p := range d.pods {
		a.Pods = append(a.Pods, activePod(p.name, 1, p.tasks))
	}
	return a
}

// toSurvive is the number of losses that the plan is for.
func (d *day) toSurvive() int { return min(d.policy.PodFailures, len(d.pods)-1) }

// rebalance deals the tasks out as the broker's sticky assignor does: every pod keeps what it has up to its quota, the rest goes to
// those with the fewest.
func (d *day) rebalance() {
	all := map[Task]bool{}
	for _, s := range d.w.Subtopologies {
		for partition := range s.Tasks {
			all[Task{s.ID, int32(partition)}] = true
		}
	}
	quota := ceilDiv(len(all), len(d.pods))
	for _, p := range d.pods {
		p.tasks = p.tasks[:min(len(p.tasks), quota)]
		for _, task := range p.tasks {
			delete(all, task)
		}
	}
	free := make([]Task, 0, len(all))
	for task := range all {
		free = append(free, task)
	}
	slices.SortFunc(free, func(a, b Task) int {
		return cmp.Or(strings.Compare(a.Subtopology, b.Subtopology), cmp.Compare(a.Partition, b.Partition))
	})
	for len(free) > 0 {
		i := d.choose(len(free))
		least := slices.MinFunc(d.pods, func(a, b *dayPod) int { return cmp.Compare(len(a.tasks), len(b.tasks)) })
		least.tasks = append(slices.Clip(least.tasks), free[i])
		free = slices.Delete(free, i, i+1)
	}
}

// start adds pods, with the limit and the settings that the plan has for the group that they join.
func (d *day) start(n int) {
	first := len(d.pods)
	for range n {
		d.pods = append(d.pods, &dayPod{name: fmt.Sprintf("shop-%d", d.named), own: d.w})
		d.named++
	}
	for i, load := range LoadsAfter(d.w, d.assignment(), d.toSurvive())[first:] {
		p := d.pods[first+i]
		p.limit = RequiredLimit(d.w, load, d.policy)
		plan := PlanFor(d.w, load, d.policy, p.limit)
		requireVerdict(d.T, plan, Fits)
		p.own = d.inForce(plan)
	}
}

// inForce is the workload of a process that runs with the settings of a plan: they stay as they are until it ends.
func (d *day) inForce(plan Plan) Workload {
	own, properties := d.w, derivedProperties(plan)
	if err := own.ApplyProperties(properties); err != nil {
		d.Fatal(err)
	}
	if own.Bounded {
		own.RocksDB.SharedCache = Known(plan.line(RegionBlockCache).Bound, Measured)
		own.RocksDB.WriteBufferLimit = Known(plan.line(RegionMemtables).Bound*2, Measured)
	}
	return own
}

// derivedProperties are the configs of Kafka Streams that a plan chose.
func derivedProperties(p Plan) map[string]string {
	properties := map[string]string{}
	for _, c := range p.Configs {
		if name, ok := strings.CutPrefix(c.Name, streamsPrefix); ok {
			properties[name] = c.Value
		}
	}
	return properties
}

// stop ends pods and returns their names.
func (d *day) stop(n int) string {
	var names []string
	for range n {
		i := d.choose(len(d.pods))
		names = append(names, d.pods[i].name)
		d.pods = slices.Delete(d.pods, i, i+1)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// event lets something happen, and then the group, the checks and the plan follow. Losses are what the plan before must have foreseen.
func (d *day) event(what string, change func() string, losses int) {
	foreseen := map[string]Load{}
	if len(d.pods) > losses {
		for i, load := range LoadsAfter(d.w, d.assignment(), losses) {
			foreseen[d.pods[i].name] = load
		}
	}
	names := change()
	d.rebalance()
	d.checkTasks()
	for _, p := range d.pods {
		now := observed(d.w, d.assignment(), p.name)
		if load, ok := foreseen[p.name]; ok && losses > 0 {
			requireNotBelow(d.T, load, now)
		}
		if plan := PlanFor(p.own, now, d.policy, p.limit); !plan.Fits() || plan.Bound > plan.Limit-plan.Headroom {
			d.Fatalf("%s %s: %s with %d tasks does not fit %v: %v", what, names, p.name, len(p.tasks), p.limit, plan.Deficits)
		}
	}
	d.follow()
	d.write(what, names)
}

// follow raises limits to what the plan needs, and checks that the losses that it is for are survived.
func (d *day) follow() {
	loads := LoadsAfter(d.w, d.assignment(), d.toSurvive())
	for i, p := range d.pods {
		p.limit = max(p.limit, RequiredLimit(p.own, loads[i], d.policy))
	}
	for i, p := range d.pods {
		requireVerdict(d.T, PlanFor(p.own, loads[i], d.policy, p.limit), Fits)
		limits := map[string]Bytes{p.name: p.limit}
		if got := survives(p.own, d.assignment(), d.policy, limits); got < d.toSurvive() {
			d.Errorf("%s survives %d losses, want %d", p.name, got, d.toSurvive())
		}
	}
}

// checkTasks: every task runs on one pod.
func (d *day) checkTasks() {
	seen := map[Task]string{}
	for _, p := range d.pods {
		for _, task := range p.tasks {
			if other, ok := seen[task]; ok {
				d.Errorf("task %v runs on %s and %s", task, other, p.name)
			}
			seen[task] = p.name
		}
	}
	if len(seen) != d.w.Tasks() {
		d.Errorf("%d of %d tasks run", len(seen), d.w.Tasks())
	}
}

// write logs what is after an event.
func (d *day) write(what, names string) {
	fmt.Fprintf(&d.log, "%s %s\n", what, names)
	loads := LoadsAfter(d.w, d.assignment(), d.toSurvive())
	for i, p := range d.pods {
		now := RequiredLimit(p.own, observed(d.w, d.assignment(), p.name), d.policy)
		fmt.Fprintf(&d.log, "  %-8s %2d tasks, at most %2d after a loss  limit %-9s needs now %-9s Kafka Streams %v\n",
			p.name, len(p.tasks), loads[i].Active, short(p.limit), short(now), p.own.Version.Value)
	}
}

// wholeDay runs all events; a shuffle may change the order of what happens between the deployment and the night.
func (d *day) wholeDay(shuffle func(n int, swap func(i, j int))) {
	d.event("08:00 deployed:", func() string { d.start(3); return "3 pods at once" }, 0)
	hours := []func(){
		func() {
			for range 2 {
				d.event("10:00 scaled out:", func() string { d.start(1); return d.pods[len(d.pods)-1].name }, 0)
			}
		},
		func() {
			d.event("12:00 lost with its node:", func() string { return d.stop(1) }, 1)
			d.event("12:05 lost as well:", func() string { return d.stop(1) }, 1)
			d.event("12:20 back:", func() string { d.start(2); return "2 pods" }, 0)
		},
		func() {
			d.w.Version = Known(Version{4, 4, 0}, App)
			for range len(d.pods) {
				d.event("15:00 upgraded, out:", func() string { return d.stopOldest() }, 1)
				d.event("15:00 upgraded, in:", func() string { d.start(1); return d.pods[len(d.pods)-1].name }, 0)
			}
		},
	}
	shuffle(len(hours), func(i, j int) { hours[i], hours[j] = hours[j], hours[i] })
	for _, hour := range hours {
		hour()
	}
	for len(d.pods) > 2 {
		d.event("20:00 scaled in:", func() string { return d.stop(1) }, 1)
	}
	d.checkNoRatchet()
}

// stopOldest ends the pod that started first.
func (d *day) stopOldest() string {
	name := d.pods[0].name
	d.pods = d.pods[1:]
	return name
}

// checkNoRatchet: pods that start in the evening get what pods would that started in an application that was never larger.
func (d *day) checkNoRatchet() {
	for range len(d.pods) {
		d.event("22:00 restarted, out:", func() string { return d.stopOldest() }, 1)
		d.event("22:00 restarted, in:", func() string { d.start(1); return d.pods[len(d.pods)-1].name }, 0)
	}
	fresh := newDay(d.T, d.w, d.choose)
	fresh.event("", func() string { fresh.start(len(d.pods)); return "" }, 0)
	for _, p := range d.pods {
		if p.limit != fresh.pods[0].limit {
			d.Errorf("%s has a limit of %v after the day, one that knew no day has %v", p.name, p.limit, fresh.pods[0].limit)
		}
	}
}

// shop is the application of the day: two subtopologies with 18 tasks, 5 instances each of the first.
func shop(bounded bool) Workload {
	w := release(4, 2, 1)
	w.Protocol = Known(Streams, Measured)
	w.WarmUps = Known(0, Default)
	w.Subtopologies = []Subtopology{
		{ID: "0", Tasks: 12, InputPartitions: 2, WrittenPartitions: 12, Stores: []Store{
			{Name: "orders", Kind: TimestampedKeyValue, Caching: true},
			{Name: "hours", Kind: Window, Caching: true, RetentionMs: Known(int64(60*minuteMs), Measured)},
			{Name: "held", Kind: Suppress, MaxSuppress: Known(2*MiB, App)},
		}},
		{ID: "1", Tasks: 6, InputPartitions: 1, WrittenPartitions: 6, Stores: []Store{{Name: "stock", Kind: TimestampedKeyValue, Caching: true}}},
	}
	w.Records.Average = Known(Bytes(600), Measured)
	w.JVM.HeapMode, w.JVM.MaxHeap = HeapFixed, Known(640*MiB, App)
	w.Bounded = bounded
	return w
}

func TestAWholeDay(t *testing.T) {
	for name, bounded := range map[string]bool{"day-default-rocksdb": false, "day-bounded": true} {
		t.Run(name+" in order", func(t *testing.T) {
			d := newDay(t, shop(bounded), func(n int) int { return n - 1 })
			d.wholeDay(func(int, func(i, j int)) {})
			golden.Compare(t, name+".golden", d.log.String())
		})
		for seed := range uint64(100) {
			t.Run(fmt.Sprintf("%s in another order, seed %d", name, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 7))
				newDay(t, shop(bounded), random.IntN).wholeDay(random.Shuffle)
			})
		}
	}
}
