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

// day is an application from its deployment in the morning to its scaling in at night. After each event Kafka assigns the tasks again, and
// PlanApplication plans all pods. Limits follow the plan: those of running pods are raised at once, new pods get the limit and the published
// plan of the time of their start.
type day struct {
	*testing.T
	w    Workload
	pods []*dayPod
	// limit and published are for new pods.
	limit     Bytes
	published Plan
	named     int
	log       strings.Builder
	// choose picks one of n: the last in the normal order, any in a random one.
	choose func(n int) int
}

// dayPod is a running pod. own is the workload with the settings of the plan at its start, planned the load of that plan.
type dayPod struct {
	name    string
	tasks   []Task
	limit   Bytes
	own     Workload
	planned Load
}

func newDay(t *testing.T, w Workload, choose func(n int) int) *day {
	return &day{T: t, w: w, choose: choose}
}

// kind is the kind of all pods.
func (d *day) kind() PodKind { return PodKind{Injected: true, Bounded: d.w.Bounded} }

// toTolerate is the number of pod failures that the pods can tolerate at all, and the plan is for.
func (d *day) toTolerate() int { return min(1, len(d.pods)-1) }

// assignment is the assignment of the group.
func (d *day) assignment() Assignment {
	a := Assignment{}
	for _, p := range d.pods {
		a.Pods = append(a.Pods, activePod(p.name, 1, p.tasks))
	}
	return a
}

// plan plans the application while some pods are unavailable.
func (d *day) plan(unavailable int) ApplicationPlan {
	a := Application{
		Planned: d.w, Target: d.w, Running: map[PodKind]Workload{d.kind(): d.w}, Assignment: d.assignment(), Pods: map[string]RunningPod{},
		Range:    Range{Template: 512 * MiB, Adjustable: true, Max: MaxBytes, Cap: MaxBytes},
		Failures: Failures{Instances: len(d.pods) + unavailable, Tolerated: 1, Unavailable: unavailable},
		Policy:   DefaultPolicy(), Rollout: unavailable > 0, Current: d.limit,
	}
	for _, p := range d.pods {
		a.Pods[p.name] = RunningPod{Kind: d.kind(), Limit: p.limit}
		a.PlanReaders = append(a.PlanReaders, p.limit)
	}
	return PlanApplication(a)
}

// follow raises limits to the plan's. The plan with the raised limits is published.
func (d *day) follow(unavailable int) ApplicationPlan {
	before := d.plan(unavailable)
	for _, p := range d.pods {
		p.limit = before.Pods[p.name].RaiseTo
	}
	plan := d.plan(unavailable)
	d.limit = plan.Limit
	d.published = plan.Published
	return plan
}

// start adds pods.
func (d *day) start(n int) string {
	d.follow(n)
	requireVerdict(d.T, d.published, Fits)
	for range n {
		d.pods = append(d.pods, &dayPod{name: fmt.Sprintf("shop-%d", d.named), limit: d.limit, own: d.active(), planned: d.published.Load})
		d.named++
	}
	if n > 1 {
		return fmt.Sprintf("%d pods at once", n)
	}
	return d.pods[len(d.pods)-1].name
}

// active is the workload of a process with the settings of the published plan: they stay until the process ends.
func (d *day) active() Workload {
	own := d.w
	if err := own.ApplyProperties(derivedProperties(d.published)); err != nil {
		d.Fatal(err)
	}
	if own.Bounded {
		own.RocksDB.SharedCache = Known(d.published.line(RegionBlockCache).Bound, Measured)
		own.RocksDB.WriteBufferLimit = Known(d.published.line(RegionMemtables).Bound*2, Measured)
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

// stopOldest ends the pod that started first.
func (d *day) stopOldest() string {
	name := d.pods[0].name
	d.pods = d.pods[1:]
	return name
}

// rebalance assigns the tasks as the broker's sticky assignor does: every pod keeps its tasks up to its quota, the rest goes to those with
// the fewest.
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

// event changes the pods, so many of which fail. The group assigns the tasks again, before any limit follows. A failure that is not a
// rollout's leaves the pods unavailable for a while, and then lost.
func (d *day) event(what string, change func() string, failures int, rollout bool) {
	foreseen := map[string]Load{}
	if len(d.pods) > failures {
		for i, load := range LoadsAfter(d.w, d.assignment(), failures) {
			foreseen[d.pods[i].name] = load
		}
	}
	names := change()
	d.rebalance()
	d.checkTasks()
	now := observedLoads(d.w, d.assignment())
	for i, p := range d.pods {
		if load, ok := foreseen[p.name]; ok && failures > 0 {
			requireNotBelow(d.T, load, now[i])
		}
		d.checkFits(what+" "+names, p, now[i])
	}
	if failures > 0 {
		d.checkFrozen(what, failures)
	}
	if failures > 0 && rollout {
		d.write(what, names, d.plan(failures))
		return
	}
	plan := d.follow(0)
	if plan.Tolerated < d.toTolerate() {
		d.Errorf("%s %s: %d failures tolerated, want %d", what, names, plan.Tolerated, d.toTolerate())
	}
	d.write(what, names, plan)
}

// checkFits: a pod leaves the headroom free while its load is within that of the plan that its settings come from. They stay until it
// restarts, while its limit follows a heavier load with the settings at their floors. Then the settings may take a hundredth of the limit
// from the headroom.
func (d *day) checkFits(event string, p *dayPod, now Load) {
	plan := PlanFor(p.own, now, DefaultPolicy(), p.limit)
	taken := Bytes(0)
	if !within(now, p.planned) {
		taken = p.limit / 100
	}
	if plan.Bound > plan.Limit-plan.Headroom+taken || plan.Verdict == HeapTooSmall {
		d.Fatalf("%s: %s with %d tasks does not fit %v: %v", event, p.name, len(p.tasks), p.limit, plan.Deficits)
	}
}

// checkFrozen: while pods are unavailable, no limit changes, since the limits covered their failures already.
func (d *day) checkFrozen(what string, unavailable int) {
	plan := d.plan(unavailable)
	if plan.Limit != d.limit {
		d.Errorf("%s: the limit of new pods changed from %v to %v while %d pods are unavailable", what, d.limit, plan.Limit, unavailable)
	}
	for _, p := range d.pods {
		if to := plan.Pods[p.name].RaiseTo; to != p.limit {
			d.Errorf("%s: %s is raised from %v to %v while %d pods are unavailable", what, p.name, p.limit, to, unavailable)
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

// write logs the plan after an event.
func (d *day) write(what, names string, plan ApplicationPlan) {
	fmt.Fprintf(&d.log, "%s %s\n", what, names)
	fmt.Fprintf(&d.log, "  new pods: limit %s, required %s; published for %s and %d tasks; tolerates %d failures\n",
		short(plan.Limit), short(plan.Required), short(plan.Published.Limit), plan.Published.Load.Active, plan.Tolerated)
	for _, p := range d.pods {
		pod := plan.Pods[p.name]
		fmt.Fprintf(&d.log, "  %-8s %2d tasks  limit %-9s required %-9s now %-9s Kafka Streams %v\n",
			p.name, pod.Tasks, short(p.limit), short(pod.Required), short(pod.RequiredNow), p.own.Version.Value)
	}
}

// wholeDay runs all events; a shuffle may change the order of the events between the deployment and the night.
func (d *day) wholeDay(shuffle func(n int, swap func(i, j int))) {
	one := func() string { return d.start(1) }
	stopped := func() string { return d.stop(1) }
	d.event("08:00 deployed:", func() string { return d.start(3) }, 0, false)
	hours := []func(){
		func() {
			for range 2 {
				d.event("10:00 scaled out:", one, 0, false)
			}
		},
		func() {
			d.event("12:00 lost with its node:", stopped, 1, false)
			d.event("12:05 lost as well:", stopped, 1, false)
			d.event("12:20 back:", func() string { return d.start(2) }, 0, false)
		},
		func() {
			d.w.Version = Known(Version{4, 4, 0}, App)
			d.follow(0)
			for range len(d.pods) {
				d.event("15:00 upgraded, out:", d.stopOldest, 1, true)
				d.event("15:00 upgraded, in:", one, 0, false)
			}
		},
	}
	shuffle(len(hours), func(i, j int) { hours[i], hours[j] = hours[j], hours[i] })
	for _, hour := range hours {
		hour()
	}
	for len(d.pods) > 2 {
		d.event("20:00 scaled in:", stopped, 1, false)
	}
	d.checkNoRatchet()
}

// checkNoRatchet: pods that start in the evening have the limits of pods in an application that was never larger.
func (d *day) checkNoRatchet() {
	for range len(d.pods) {
		d.event("22:00 restarted, out:", d.stopOldest, 1, true)
		d.event("22:00 restarted, in:", func() string { return d.start(1) }, 0, false)
	}
	fresh := newDay(d.T, d.w, d.choose)
	fresh.event("", func() string { return fresh.start(len(d.pods)) }, 0, false)
	for _, p := range d.pods {
		if p.limit != fresh.pods[0].limit {
			d.Errorf("%s has a limit of %v after the day, a pod without the day has %v", p.name, p.limit, fresh.pods[0].limit)
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
