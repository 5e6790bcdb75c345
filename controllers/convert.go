// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/memplan"
)

// planning is what the planner says of the application, asked in its own terms and answered in ours. This file and
// its siblings convert_*.go are the only ones that know both.
type planning struct {
	// tasksKnown: a source says which tasks there are. Otherwise only the bootstrap plan can be made.
	tasksKnown bool
	tasks      int
	// pods holds an entry for each running pod.
	pods map[string]podPlanning
	// need is the smallest limit for a new pod: it holds what the heaviest pod may have to run after the losses.
	need int64
	// needNow is the smallest limit that holds what the heaviest pod runs at this moment, with the plan in force.
	needNow int64
	// needToInject is needNow as it is once the agent has bounded the pods: what does not even fit then is not published. As long as an
	// image is not proven it counts as shipped, but the bounds are published, since nothing could be proven otherwise.
	needToInject int64
	// survives is the largest number of losses after which every survivor fits the limit that it has; -1 if not even the
	// pods that run now fit.
	survives int
	// coldStart is the smallest limit for a pod that runs every task, as the first pod of a cold start does for a while; zero where
	// pods do not start one after the other.
	coldStart int64
	// notes are what a person should know of the facts that the plan is made of.
	notes []string
	// invalid says what the planner could not make sense of: contradicting flags, bad values of properties.
	invalid []string

	workload memplan.Workload // as a pod runs it that has the plan, as far as is proven
	injected memplan.Workload // as it runs once the agent has done its work
	policy   memplan.Policy
	// worst is what the heaviest pod may have to run: after all losses that are asked for, then after one fewer, down to none, and last
	// what it runs at this moment.
	worst []memplan.Load
	// cold: it is the plan of the first pod of a cold start.
	cold bool
}

// podPlanning is what the planner says of one running pod.
type podPlanning struct {
	tasks int   // it runs now, of any role
	need  int64 // the smallest limit that holds what it may have to run after the losses
	now   int64 // the smallest limit that holds what it runs at this moment
}

// published is the content of a plan for one limit: what a container reads at its start.
type published struct {
	limit, heap, expected int64
	fits                  bool
	file                  planfile.Plan // of which the mounted files are made
	settings              []v1alpha1.Setting
	lines                 []v1alpha1.Line
	shortage              string // what is missing, largest first; empty when it fits
	warnings              []string
}

// neverFits is the need of a load that no limit holds.
const neverFits = int64(memplan.MaxBytes)

// plan asks the planner. lost is how the losses were counted.
func plan(obs *observation, lost losses) *planning {
	result := &planning{pods: map[string]podPlanning{}}
	result.workload, result.invalid = workloadOf(obs)
	result.notes = append(notesOn(obs, result.workload), reportNotes(obs)...)
	result.injected = result.workload
	result.injected.Bounded = result.workload.Bounded || obs.agentName != ""
	result.tasks = result.workload.Tasks()
	result.tasksKnown = result.tasks > 0
	result.policy = policyOf(obs.app, lost)
	if !result.tasksKnown || obs.container == nil {
		return result
	}
	running, spread := runningPods(obs), assignmentOf(obs, lost)
	result.policy.PodFailures = lost.toSurvive(len(spread.Pods))
	result.workload.Others = furtherClients(obs, result.policy.PodFailures)
	result.injected.Others = result.workload.Others
	kinds := kindsOf(obs, result.workload)
	// Losses that have happened already need not be covered once more: the tasks of pods that are away may be on the others now.
	remaining := memplan.LoadsAfter(result.workload, spread, max(0, result.policy.PodFailures-lost.away-lost.joining))
	observed := memplan.ObservedLoads(result.workload, spread)
	var heaviestNow []memplan.Load
	for i, pod := range spread.Pods {
		p := findPod(running, pod.Name)
		if p == nil {
			continue // it is away, or still to come
		}
		own := kinds[kindOf(obs, p)]
		result.pods[pod.Name] = podPlanning{
			tasks: len(pod.Current.Active) + len(pod.Current.Standby) + len(pod.Current.WarmUp),
			need:  int64(needUnder(limitOf(p), own, remaining[i], result.policy)),
			now:   int64(needUnder(limitOf(p), own, observed[i], result.policy)),
		}
		if need := int64(memplan.RequiredLimit(result.workload, observed[i], result.policy)); need > result.needNow {
			result.needNow, heaviestNow = need, []memplan.Load{observed[i]}
		}
		result.needToInject = max(result.needToInject, int64(memplan.RequiredLimit(result.injected, observed[i], result.policy)))
	}
	for k := result.policy.PodFailures; k >= 0; k-- {
		load, need := heaviestLoad(result.workload, spread, result.policy, k)
		result.worst = append(result.worst, load)
		if k == result.policy.PodFailures {
			result.need = int64(needUnder(memplan.Bytes(newLimit(obs, int64(need))), result.workload, load, result.policy))
		}
		if k == 0 && len(running) == 0 { // the first pods are to come
			result.needNow = int64(need)
			result.needToInject = int64(memplan.RequiredLimit(result.injected, load, result.policy))
		}
	}
	result.worst = append(result.worst, heaviestNow...)
	if obs.workload.startsInTurn && obs.workload.replicas > 1 {
		result.coldStart = int64(memplan.RequiredLimit(result.workload, memplan.ColdStart(result.workload, 0), result.policy))
	}
	result.survives = survives(obs, result, kinds, spread, lost)
	return result
}

// podKind is how a pod runs.
type podKind struct{ injected, bounded bool }

// kindsOf are the workload as each kind of pod runs it.
func kindsOf(obs *observation, w memplan.Workload) map[podKind]memplan.Workload {
	kinds := map[podKind]memplan.Workload{}
	for _, bounded := range []bool{false, true} {
		w.Bounded = bounded
		kinds[podKind{injected: true, bounded: bounded}] = withHeapInForce(obs, w)
	}
	kinds[podKind{}] = withoutPlan(obs, w)
	return kinds
}

func kindOf(obs *observation, p *podFacts) podKind {
	return podKind{injected: p.injected, bounded: p.injected && (obs.bounded || obs.boundedPod(p))}
}

// needUnder is the smallest limit that holds a load, for a pod that has a limit: where the JVM changes to a costlier collector just below
// that limit, a smaller one may hold the load and this one not; then it is a larger one.
func needUnder(has memplan.Bytes, w memplan.Workload, load memplan.Load, policy memplan.Policy) memplan.Bytes {
	return memplan.PlanFor(w, load, policy, has).RequiredLimit
}

// limitOf is the limit that a pod has; 0 if it has none.
func limitOf(p *podFacts) memplan.Bytes {
	if limit := p.effectiveLimit(); limit != nil {
		return memplan.Bytes(limit.Value())
	}
	return 0
}

// heaviestLoad is the load after k losses of the pod that needs most for it.
func heaviestLoad(w memplan.Workload, spread memplan.Assignment, policy memplan.Policy, k int) (memplan.Load, memplan.Bytes) {
	var heaviest memplan.Load
	most := memplan.Bytes(-1)
	for _, load := range memplan.LoadsAfter(w, spread, k) {
		if need := memplan.RequiredLimit(w, load, policy); need > most {
			heaviest, most = load, need
		}
	}
	return heaviest, most
}

// survives asks the planner for each kind of pod: the new ones that are to come, those that run with the plan, bounded or not, and those
// that run as they were shipped.
func survives(obs *observation, p *planning, kinds map[podKind]memplan.Workload, spread memplan.Assignment, lost losses) int {
	limits := map[podKind]map[string]memplan.Bytes{}
	put := func(kind podKind, name string, limit int64) {
		if limits[kind] == nil {
			limits[kind] = map[string]memplan.Bytes{}
		}
		limits[kind][name] = memplan.Bytes(limit)
	}
	running := runningPods(obs)
	for _, pod := range spread.Pods { // a pod that is to come gets what new pods get
		if findPod(running, pod.Name) == nil {
			put(podKind{injected: true, bounded: p.workload.Bounded}, pod.Name, newLimit(obs, p.need))
		}
	}
	for i := range running {
		if limit := running[i].effectiveLimit(); limit != nil {
			put(kindOf(obs, &running[i]), running[i].name, limit.Value())
		}
	}
	least := max(0, lost.instances-1)
	for kind, of := range limits {
		least = min(least, memplan.Survives(kinds[kind], spread, p.policy, of))
	}
	return least
}

// newLimit is the limit of a new pod, for a need.
func newLimit(obs *observation, need int64) int64 {
	if obs.container.limit == nil {
		return need
	}
	walls := envelopeOf(obs)
	if !walls.managed() {
		return walls.template
	}
	limit, _ := walls.clamp(need)
	return limit
}

// under makes the plan for what the heaviest pod may have to run, under a limit, whether it fits or not.
func (p *planning) under(limit int64) published {
	if !p.tasksKnown {
		return publishedOf(memplan.Bootstrap(p.workload.JVM, p.policy, memplan.Bytes(limit)))
	}
	return publishedOf(memplan.PlanFor(p.workload, p.worst[0], p.policy, memplan.Bytes(limit)))
}

// publish makes the plan that a container under this limit should read: for as many losses as the limit holds. Its heap is not below that
// of the plan which counts, so that a process whose stores cannot be bounded has it as well.
func (p *planning) publish(limit int64) published {
	w := p.injected
	if !p.tasksKnown {
		return p.under(limit)
	}
	for i := range p.worst {
		if counted := memplan.PlanFor(p.workload, p.worst[i], p.policy, memplan.Bytes(limit)); counted.Fits() && w.JVM.HeapMode == memplan.HeapPlanned {
			w.JVM.LeastHeap = max(p.injected.JVM.LeastHeap, counted.Heap)
		}
		if plan := memplan.PlanFor(w, p.worst[i], p.policy, memplan.Bytes(limit)); plan.Fits() || i == len(p.worst)-1 {
			return publishedOf(plan)
		}
	}
	return p.under(limit)
}

func publishedOf(plan memplan.Plan) published {
	result := published{
		limit: int64(plan.Limit), heap: int64(plan.Heap), expected: int64(plan.Expected), fits: plan.Fits(),
		warnings: plan.Warnings,
	}
	file, err := PlanFile(plan)
	if err != nil {
		result.warnings = append(slices.Clone(result.warnings), err.Error())
	}
	result.file = file
	for _, config := range plan.Configs {
		result.settings = append(result.settings, v1alpha1.Setting{Name: config.Name, Value: config.Value, Source: sourceOf(config.From)})
	}
	for _, line := range plan.Lines {
		result.lines = append(result.lines, lineOf(line))
	}
	slices.SortStableFunc(result.lines, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) })
	var missing []string
	for _, shortage := range plan.Deficits {
		missing = append(missing, shortage.Message)
	}
	result.shortage = strings.Join(missing, "; ")
	return result
}

func lineOf(line memplan.Line) v1alpha1.Line {
	bound, expected := quantity(int64(line.Bound)), quantity(int64(line.Expected))
	result := v1alpha1.Line{Pool: v1alpha1.PoolNative, Name: string(line.Region), Bound: &bound, Expected: &expected, Source: sourceOf(line.From)}
	if line.Pool == memplan.Heap {
		result.Pool = v1alpha1.PoolHeap
	}
	if line.Count > 0 {
		result.Count = &line.Count
	}
	return result
}

func sourceOf(from memplan.Provenance) v1alpha1.Source {
	switch from {
	case memplan.Measured:
		return v1alpha1.SourceMeasured
	case memplan.App:
		return v1alpha1.SourceApp
	case memplan.Spec:
		return v1alpha1.SourceSpec
	case memplan.Derived:
		return v1alpha1.SourceDerived
	case memplan.Default:
		return v1alpha1.SourceDefault
	default:
		return v1alpha1.SourceAssumed
	}
}

func policyOf(app *v1alpha1.StreamApp, lost losses) memplan.Policy {
	policy := memplan.DefaultPolicy()
	policy.PodFailures = lost.tolerated
	if app.Spec.Memory.HeadroomPercent != nil {
		policy.HeadroomPercent = int(*app.Spec.Memory.HeadroomPercent)
	}
	for _, pin := range app.Spec.Memory.Pins {
		region, known := pinnedRegions[pin.Region]
		if !known || pin.Size == nil {
			continue
		}
		if policy.Pins == nil {
			policy.Pins = map[memplan.Region]memplan.Bytes{}
		}
		policy.Pins[region] = memplan.Bytes(pin.Size.Value())
	}
	return policy
}

// pinnedRegions are the planner's names of the regions. The heap is not a line of the plan but a pool; see jvmOf.
var pinnedRegions = map[v1alpha1.Region]memplan.Region{
	v1alpha1.RegionMetaspace:    memplan.RegionMetaspace,
	v1alpha1.RegionCodeCache:    memplan.RegionCodeCache,
	v1alpha1.RegionCompiler:     memplan.RegionCompiler,
	v1alpha1.RegionThreadStacks: memplan.RegionThreadStacks,
	v1alpha1.RegionCollector:    memplan.RegionCollector,
	v1alpha1.RegionDirectMemory: memplan.RegionDirectMemory,
	v1alpha1.RegionBlockCache:   memplan.RegionBlockCache,
	v1alpha1.RegionMemtables:    memplan.RegionMemtables,
	v1alpha1.RegionTableReaders: memplan.RegionTableReaders,
	v1alpha1.RegionPageCache:    memplan.RegionPageCache,
}

// invalidTexts flattens errors into sentences.
func invalidTexts(errs ...error) []string {
	var texts []string
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			texts = append(texts, invalidTexts(joined.Unwrap()...)...)
		} else if err != nil {
			texts = append(texts, err.Error())
		}
	}
	return texts
}
