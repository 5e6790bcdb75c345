// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "slices"

// PodKind is the way in which a pod runs the workload.
type PodKind struct {
	// Injected pods were created with the plan.
	Injected bool
	// Bounded pods have one shared block cache for all their RocksDB stores.
	Bounded bool
	// Heap is the largest heap of the running process; 0 if it is not known.
	Heap Bytes
}

// Application is the input of [PlanApplication]: a workload with its pods.
type Application struct {
	// Planned is the workload in a new pod, as far as its behaviour is proven. Required limits are computed from it.
	Planned Workload
	// Target is the workload in a new pod whose agent is active. The published plan is computed from it.
	Target Workload
	// Running is the workload in a running pod, by kind. A JVM keeps the heap that it was started with.
	Running map[PodKind]Workload
	// Neighbours are other Kafka Streams applications in the same processes.
	Neighbours []Neighbour

	// Assignment has one entry for each running pod.
	Assignment Assignment
	// Pods has the running pods by name.
	Pods map[string]RunningPod
	// PlanReaders are the limits of all pods mounting the plan, pending pods included.
	PlanReaders []Bytes

	Range    Range
	Failures Failures
	// Policy is the user's policy. PlanApplication sets its PodFailures.
	Policy Policy

	// Rollout: unavailable pods are about to return, so limits stay as they are unless a pod already runs more than they hold.
	Rollout bool
	// Current is the injected limit of new pods; 0 if none is injected. It only counts during a rollout.
	Current Bytes
	// Withdrawn: pods with a raised limit could not be created, so new pods get the template's limit.
	Withdrawn bool
	// StartsInOrder: pods of a cold start become ready one after the other, so the first one runs every task for a while.
	StartsInOrder bool
	// ColdStart plans that first pod, in place of a pod after failures.
	ColdStart bool
}

// Neighbour is another Kafka Streams application whose clients share the JVMs with the planned one.
type Neighbour struct {
	ApplicationID string
	Workload      Workload
	Assignment    Assignment
}

// RunningPod is a running pod.
type RunningPod struct {
	Kind PodKind
	// Limit is the active memory limit; 0 if the pod has none.
	Limit Bytes
	// Cap is the largest limit that the pod's node can give; 0 without a cap.
	Cap Bytes
}

// Failures are the pod failures to plan for.
type Failures struct {
	// Instances is the number of pods to plan for: running pods, and pods expected back.
	Instances int
	// Tolerated is the number of pods that may fail with every survivor still within its limit.
	Tolerated int
	// Unavailable is the number of instances that do not run now. Their tasks may already be on the others, so that many failures have
	// happened already.
	Unavailable int
	// Starting is the number of running pods without tasks that have just started. They count as unavailable pods do.
	Starting int
}

// maxUnavailable is the largest number of unavailable pods to plan for. A plan for fewer pods is on the safe side, since each of them then
// has more tasks.
const maxUnavailable = 1_000

// within moves the numbers into their ranges, so that an absurd number of replicas takes neither memory nor time.
func (f Failures) within(running int) Failures {
	f.Unavailable = min(max(f.Unavailable, 0), maxUnavailable)
	f.Instances = min(max(f.Instances, 0), running+maxUnavailable)
	f.Tolerated = min(max(f.Tolerated, 0), f.Instances)
	f.Starting = min(max(f.Starting, 0), running)
	return f
}

// remaining returns the number of failures to cover with so many pods, running and unavailable, so that Instances - Tolerated pods hold
// every task in the end.
func (f Failures) remaining(pods int) int {
	return max(0, pods-max(1, f.Instances-f.Tolerated))
}

// ApplicationPlan is the plan of a workload.
type ApplicationPlan struct {
	// TasksKnown: the workload has tasks. Otherwise the plan is a bootstrap plan, made from limit and JVM alone.
	TasksKnown bool
	// Limit is the limit of a new pod; CappedBy is the bound that keeps it below Required.
	Limit    Bytes
	CappedBy CappedBy
	// Required is the smallest limit of a new pod that holds the heaviest load after the failures to cover; MaxBytes if none does.
	Required Bytes
	// RequiredNow is the smallest limit that holds the heaviest load of this moment; RequiredNowActive is the same for a pod whose
	// agent is active.
	RequiredNow, RequiredNowActive Bytes
	// Representative is the plan of a new pod under Limit.
	Representative Plan
	// Published is the plan for containers to read: it is safe for the smallest limit of any pod reading it, and covers as many
	// failures as that limit holds.
	Published Plan
	// Pods has the running pods by name.
	Pods map[string]PodPlan
	// Tolerated is the largest number of pod failures after which every survivor is within its limit; -1 if the pods exceed their limits
	// now.
	Tolerated int
	// ColdStart is the smallest limit that holds every task; 0 unless Application.StartsInOrder.
	ColdStart Bytes
}

// PodPlan is the plan of one running pod.
type PodPlan struct {
	// Tasks that it runs now, of any role.
	Tasks int
	// Required is the smallest limit that holds its load after the failures to cover, RequiredNow the load of this moment.
	Required, RequiredNow Bytes
	// RaiseTo is the limit that it should have. It is never below its present limit.
	RaiseTo Bytes
	// CappedByNode: the node cannot give the limit that the range permits.
	CappedByNode bool
}

// PlanApplication plans the memory of all pods of a workload: the limit of new pods, the plan that containers read, the required limit of each
// running pod, and the number of pod failures that the limits tolerate.
//
// The loads are bounds after failures (see [LoadsAfter]). Failures that have happened already need not be covered again: the tasks of
// unavailable pods may be on the running ones now. So a rolling update changes no limit.
func PlanApplication(a Application) ApplicationPlan {
	if a.Planned.Tasks() == 0 {
		return bootstrapApplication(a)
	}
	planner := newApplicationPlanner(a)
	plan := ApplicationPlan{TasksKnown: true, Pods: map[string]PodPlan{}}
	planner.loadsAfterFailures()
	plan.Required = planner.required()
	plan.RequiredNow, plan.RequiredNowActive = planner.requiredNow()
	plan.Tolerated = planner.tolerated(plan.Required)
	planner.planPods(plan.Pods)
	if a.StartsInOrder {
		plan.ColdStart = RequiredLimit(planner.Planned, ColdStart(planner.Planned, 0), planner.Policy)
	}
	if a.ColdStart {
		planner.loads = []Load{ColdStart(planner.Planned, 0)}
		plan.Required = RequiredLimit(planner.Planned, planner.loads[0], planner.Policy)
		plan.RequiredNow = plan.Required
	}
	plan.Limit, plan.CappedBy = planner.limit(plan.Required, plan.RequiredNow)
	plan.Representative = PlanFor(planner.Planned, planner.loads[0], planner.Policy, plan.Limit)
	plan.Published = planner.published(planner.publishedLimit(plan.Limit))
	return plan
}

// bootstrapApplication plans without tasks.
func bootstrapApplication(a Application) ApplicationPlan {
	p := applicationPlanner{Application: a}
	plan := ApplicationPlan{Pods: map[string]PodPlan{}}
	plan.Limit, plan.CappedBy = p.limit(0, 0)
	plan.Representative = Bootstrap(a.Planned.JVM, a.Policy, plan.Limit)
	plan.Published = Bootstrap(a.Planned.JVM, a.Policy, p.publishedLimit(plan.Limit))
	return plan
}

// applicationPlanner has the inputs and results that the steps of PlanApplication share.
type applicationPlanner struct {
	Application
	// pods is the assignment, with a placeholder without tasks for each unavailable pod.
	pods Assignment
	// loads are the heaviest loads of a pod: after all failures to cover, after one fewer, down to none, and last the heaviest load of
	// this moment.
	loads []Load
	// observed are the loads of this moment, in the order of pods.
	observed []Load
}

func newApplicationPlanner(a Application) *applicationPlanner {
	a.Failures = a.Failures.within(len(a.Assignment.Pods))
	p := &applicationPlanner{Application: a, pods: a.Assignment}
	placeholders := a.Failures.Unavailable
	if len(a.Assignment.Pods) == 0 {
		placeholders = max(1, a.Failures.Instances)
	}
	p.pods.Pods = slices.Concat(a.Assignment.Pods, slices.Repeat([]Pod{{Name: "(unavailable pod)"}}, placeholders))
	p.Policy.PodFailures = a.Failures.remaining(len(p.pods.Pods))
	p.setNeighbours()
	p.observed = observedLoads(p.Planned, p.pods)
	return p
}

// setNeighbours gives every variant of the workload the heaviest load that each neighbour may have in one process.
func (p *applicationPlanner) setNeighbours() {
	var clients []Client
	for _, n := range p.Neighbours {
		if len(n.Assignment.Pods) == 0 {
			continue
		}
		failures := min(p.Policy.PodFailures, len(n.Assignment.Pods)-1)
		load, _ := heaviestOf(&n.Workload, DefaultPolicy(), LoadsAfter(n.Workload, n.Assignment, failures))
		clients = append(clients, Client{ApplicationID: n.ApplicationID, Workload: n.Workload, Load: load})
	}
	p.Planned.Others = clients
	p.Target.Others = clients
	running := make(map[PodKind]Workload, len(p.Running))
	for kind, w := range p.Running {
		w.Others = clients
		running[kind] = w
	}
	p.Running = running
}

// heaviestOf returns the load requiring the largest limit; false without a load. Of several with the same limit it is the one with the
// most tasks, so that the order of the pods does not matter.
func heaviestOf(w *Workload, policy Policy, loads []Load) (heaviest Load, found bool) {
	floors := floorsOf{workload: w, policy: policy}
	largest := Bytes(0)
	for _, load := range loads {
		required := floors.of(load).requiredLimit(0)
		tied := required == largest && load.compare(heaviest) > 0
		if required > largest || tied {
			heaviest = load
			largest = required
		}
	}
	return heaviest, largest > 0
}

// loadsAfterFailures fills loads.
func (p *applicationPlanner) loadsAfterFailures() {
	for failures := p.Policy.PodFailures; failures >= 0; failures-- {
		load, _ := heaviestOf(&p.Planned, p.Policy, LoadsAfter(p.Planned, p.pods, failures))
		p.loads = append(p.loads, load)
	}
	if load, found := heaviestOf(&p.Planned, p.Policy, p.observed[:len(p.Assignment.Pods)]); found {
		p.loads = append(p.loads, load)
	}
}

// required returns the required limit of a new pod.
func (p *applicationPlanner) required() Bytes {
	floors := newProcess(&p.Planned, p.loads[0], p.Policy).atFloors()
	limit, _ := p.Range.clamp(floors.requiredLimit(0))
	return floors.requiredFor(limit)
}

// requiredNow returns the required limit of the heaviest load of this moment, as planned and with an active agent. Without a running pod
// the first pods are still to come: theirs counts.
func (p *applicationPlanner) requiredNow() (planned, active Bytes) {
	if len(p.Assignment.Pods) == 0 {
		load := p.loads[p.Policy.PodFailures]
		return RequiredLimit(p.Planned, load, p.Policy), RequiredLimit(p.Target, load, p.Policy)
	}
	forPlanned := floorsOf{workload: &p.Planned, policy: p.Policy}
	forActive := floorsOf{workload: &p.Target, policy: p.Policy}
	for i := range p.Assignment.Pods {
		planned = max(planned, forPlanned.of(p.observed[i]).requiredLimit(0))
		active = max(active, forActive.of(p.observed[i]).requiredLimit(0))
	}
	return planned, active
}

// limit returns the limit of a new pod. During a rollout it stays, unless the load of this moment requires more.
func (p *applicationPlanner) limit(required, requiredNow Bytes) (Bytes, CappedBy) {
	limit, capped := p.Range.clamp(required)
	if !p.Rollout || p.Current == 0 || !p.Range.Adjustable {
		return limit, capped
	}
	if current := max(p.Range.Floor(), p.Current); requiredNow <= current {
		return current, capped
	}
	return limit, capped
}

// planPods plans each running pod.
func (p *applicationPlanner) planPods(plans map[string]PodPlan) {
	failures := max(0, p.Policy.PodFailures-p.Failures.Unavailable-p.Failures.Starting)
	after := LoadsAfter(p.Planned, p.pods, failures)
	floorsAfter := map[PodKind]*floorsOf{}
	floorsNow := map[PodKind]*floorsOf{}
	for i, pod := range p.Assignment.Pods {
		running := p.Pods[pod.Name]
		if floorsNow[running.Kind] == nil {
			w := p.Running[running.Kind]
			floorsAfter[running.Kind] = &floorsOf{workload: &w, policy: p.Policy}
			floorsNow[running.Kind] = &floorsOf{workload: &w, policy: p.Policy}
		}
		plan := PodPlan{
			Tasks:       pod.Current.Len(),
			Required:    floorsAfter[running.Kind].of(after[i]).requiredFor(running.Limit),
			RequiredNow: floorsNow[running.Kind].of(p.observed[i]).requiredFor(running.Limit),
		}
		plan.RaiseTo, plan.CappedByNode = p.raiseTo(running, plan)
		plans[pod.Name] = plan
	}
}

// raiseTo returns the limit that a running pod should have, and whether its node keeps it lower. During a rollout only the load of this moment
// raises a limit: the plan covers the rest already.
func (p *applicationPlanner) raiseTo(pod RunningPod, plan PodPlan) (limit Bytes, cappedByNode bool) {
	required := plan.Required
	if p.Rollout {
		required = plan.RequiredNow
	}
	if required <= pod.Limit || !p.Range.Adjustable {
		return pod.Limit, false
	}
	to, _ := p.Range.clamp(required)
	if pod.Cap > 0 && pod.Cap < to {
		return max(pod.Cap, pod.Limit), true
	}
	return max(to, pod.Limit), false
}

// publishedLimit returns the limit that the published plan is for: the smallest of all pods reading it, new pods included.
func (p *applicationPlanner) publishedLimit(limit Bytes) Bytes {
	if p.Withdrawn && limit > p.Range.Template {
		limit = p.Range.Template
	}
	for _, reader := range p.PlanReaders {
		limit = min(limit, reader)
	}
	return limit
}

// published returns the plan for containers under a limit: for the heaviest load that fits. Its heap is not below that of the plan that
// counts, so that a process whose stores cannot be bounded has it as well.
func (p *applicationPlanner) published(limit Bytes) Plan {
	w := p.Target
	var plan Plan
	for _, load := range p.loads {
		counted := PlanFor(p.Planned, load, p.Policy, limit)
		if counted.Fits() && w.JVM.HeapMode == HeapPlanned {
			w.JVM.LeastHeap = max(p.Target.JVM.LeastHeap, counted.Heap)
		}
		plan = PlanFor(w, load, p.Policy, limit)
		if plan.Fits() {
			break
		}
	}
	return plan
}

// tolerated returns the number of pod failures that the limits tolerate. A pod that is still to come gets the limit of a new pod.
func (p *applicationPlanner) tolerated(required Bytes) int {
	limits := map[PodKind]map[string]Bytes{}
	set := func(kind PodKind, name string, limit Bytes) {
		if limits[kind] == nil {
			limits[kind] = map[string]Bytes{}
		}
		limits[kind][name] = limit
	}
	newPod, _ := p.Range.clamp(required)
	for i, pod := range p.pods.Pods {
		if i >= len(p.Assignment.Pods) {
			set(PodKind{Injected: true, Bounded: p.Planned.Bounded}, pod.Name, newPod)
		} else if running := p.Pods[pod.Name]; running.Limit > 0 {
			set(running.Kind, pod.Name, running.Limit)
		}
	}
	tolerated := max(0, p.Failures.Instances-1)
	for kind, of := range limits {
		tolerated = min(tolerated, survives(p.Running[kind], p.pods, p.Policy, of))
	}
	return tolerated
}
