// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// Plan is the plan of the application. Amounts are bytes.
type Plan struct {
	// TasksKnown: a source shows the tasks. Otherwise the plan is a bootstrap plan.
	TasksKnown bool
	Tasks      int
	// Limit is the limit of a new pod. Capped names the bound that keeps it below Required; empty without one.
	Limit  int64
	Capped string
	// Required is the smallest limit of a new pod that holds the heaviest load after the failures to tolerate; NoLimit if none does.
	Required int64
	// RequiredNow is the smallest limit that holds the heaviest load of this moment, RequiredNowActive the same with an active agent.
	RequiredNow, RequiredNowActive int64
	// ColdStart is the smallest limit that holds every task; 0 if pods of a cold start become ready all at once.
	ColdStart int64
	// Tolerated is the largest number of pod failures after which every survivor is within its limit; -1 if the pods exceed their limits
	// now.
	Tolerated int
	// Pods are the running pods by name.
	Pods map[string]PodRequirement
	// Representative is the plan of a new pod under Limit, Published the plan for containers to read.
	Representative, Published ContainerPlan
	// Notes are facts that the user should know, Invalid are contradicting flags and bad values of properties.
	Notes, Invalid []string

	resolved application
	policy   memplan.Policy
}

// PodRequirement is the requirement of one running pod.
type PodRequirement struct {
	// Tasks that it runs now, of any role.
	Tasks int
	// Required is the smallest limit that holds its load after the failures to tolerate, RequiredNow that of this moment.
	Required, RequiredNow int64
	// RaiseTo is the limit that it should have; never below its present one. CappedByNode: the node cannot give more.
	RaiseTo      int64
	CappedByNode bool
}

// ContainerPlan is the plan of one container under one limit.
type ContainerPlan struct {
	Limit, Heap, Expected int64
	Fits                  bool
	Load                  Load
	File                  planfile.Plan
	Settings              []v1alpha1.Setting
	Lines                 []v1alpha1.Line // largest first
	// Deficits are the missing amounts; empty if the plan fits.
	Deficits []string
	Warnings []string

	plan memplan.Plan
}

// Load is a bound of the tasks of one pod.
type Load struct {
	Threads int `json:"threads"`
	Active  int `json:"active"`
	Total   int `json:"total"`
}

// planApplication plans the application. rollout: pods are about to return. withdrawn: injected memory is withdrawn.
func planApplication(f *Facts, rollout, withdrawn bool) Plan {
	f = f.withCap(stepCap(f, rollout, withdrawn))
	resolved := resolveApplication(f)
	input := plannerInput(f, &resolved)
	input.Rollout = rollout
	input.Withdrawn = withdrawn
	planned := memplan.PlanApplication(input)
	plan := Plan{
		TasksKnown: planned.TasksKnown, Tasks: resolved.planned.Tasks(),
		Limit: int64(planned.Limit), Capped: capText(planned.CappedBy, f),
		Required: int64(planned.Required), RequiredNow: int64(planned.RequiredNow), RequiredNowActive: int64(planned.RequiredNowActive),
		ColdStart: int64(planned.ColdStart), Tolerated: planned.Tolerated, Pods: map[string]PodRequirement{},
		Representative: containerPlan(planned.Representative), Published: containerPlan(planned.Published),
		Notes: resolved.notes, Invalid: resolved.invalid,
		resolved: resolved, policy: input.Policy,
	}
	plan.Published.File.RocksDB.ReplaceCaches = f.App.Spec.Streams.OwnCaches == v1alpha1.OwnCachesReplace
	for name, pod := range planned.Pods {
		plan.Pods[name] = PodRequirement{
			Tasks: pod.Tasks, Required: int64(pod.Required), RequiredNow: int64(pod.RequiredNow), RaiseTo: int64(pod.RaiseTo), CappedByNode: pod.CappedByNode,
		}
	}
	return plan
}

// Check returns the inputs that are outside of the possible range.
func (p *Plan) Check() error {
	return memplan.Check(p.resolved.planned, p.policy, memplan.Bytes(p.Limit))
}

// Assumptions returns the facts that the description of the topology leaves open.
func (p *Plan) Assumptions() []string {
	var assumptions []string
	if p.resolved.topology != nil {
		for _, a := range p.resolved.topology.pieces.Assumptions {
			assumptions = append(assumptions, "topology, "+a.String())
		}
	}
	return assumptions
}

// Explain returns the plan line by line, for people.
func (p *ContainerPlan) Explain() string { return p.plan.Explain() }

// plannerInput converts the facts.
func plannerInput(f *Facts, resolved *application) memplan.Application {
	input := memplan.Application{
		Planned: resolved.planned, Target: resolved.target, Running: resolved.running, Neighbours: resolved.neighbours,
		Assignment: plannerAssignment(f), Pods: map[string]memplan.RunningPod{},
		Range: limitRange(f), Policy: policyOf(&f.App.Spec.Memory),
		Failures: memplan.Failures{
			Instances: f.Failures.Instances, Tolerated: f.Failures.Tolerated, Unavailable: f.Failures.Unavailable, Starting: f.Failures.Starting,
		},
		StartsInOrder: f.Workload.StartsInOrder && f.Workload.Replicas > 1,
		ColdStart:     f.ColdStart,
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		limit := p.EffectiveLimit()
		if p.Running() {
			running := memplan.RunningPod{Kind: podKind(f, p), Cap: memplan.Bytes(p.NodeCap)}
			if limit != nil {
				running.Limit = memplan.Bytes(limit.Value())
			}
			input.Pods[p.Name] = running
		}
		if f.readsPlan(p) && limit != nil {
			input.PlanReaders = append(input.PlanReaders, memplan.Bytes(limit.Value()))
		}
	}
	if f.Injection != nil { // a pod may be created before a larger injection is stored
		input.PlanReaders = append(input.PlanReaders, memplan.Bytes(storedLimit(f)))
	}
	if f.Injection != nil && f.Injection.Spec.Memory.Limit != nil {
		// The used part of a quota follows with a delay, so a quota does not lower a limit during a rollout. If it is exceeded, pods cannot be
		// created, and the memory is withdrawn.
		input.Current = min(memplan.Bytes(f.Injection.Spec.Memory.Limit.Value()), input.Range.Max, memplan.Bytes(f.LimitRangeCap.Bytes))
	}
	return input
}

// podKind returns the kind of a running pod.
func podKind(f *Facts, p *Pod) memplan.PodKind {
	bounded := f.AssumeBounded || f.Images.boundedPod(p)
	kind := memplan.PodKind{Injected: p.Injected, Bounded: p.Injected && bounded}
	if r := p.Report.Report; r != nil && p.Injected {
		kind.Heap = memplan.Bytes(r.JVM.HeapMax)
	}
	return kind
}

// limitRange returns the allowed range of the limit. The template's limit is given without a range in the spec, and with pod-level resources.
func limitRange(f *Facts) memplan.Range {
	spec := &f.App.Spec.Memory
	r := memplan.Range{
		Template: memplan.Bytes(f.Container.Limit.Value()), Adjustable: hasRange(spec) && !f.Container.PodResources,
		Max: memplan.MaxBytes, Cap: min(memplan.Bytes(f.Cap.Bytes), memplan.MaxBytes), BelowTemplate: f.Proven,
	}
	if spec.MinLimit != nil {
		r.Min = memplan.Bytes(spec.MinLimit.Value())
	}
	if spec.MaxLimit != nil {
		r.Max = memplan.Bytes(spec.MaxLimit.Value())
	}
	return r
}

// hasRange returns whether the user has set a range for the limit.
func hasRange(spec *v1alpha1.MemorySpec) bool { return spec.MinLimit != nil || spec.MaxLimit != nil }

// capText describes the bound that keeps a limit below the required one.
func capText(by memplan.CappedBy, f *Facts) string {
	switch by {
	case memplan.CappedByMax:
		return fmt.Sprintf("`maxLimit` is %s", bytesText(f.App.Spec.Memory.MaxLimit.Value()))
	case memplan.CappedByCluster:
		return fmt.Sprintf("%s allows at most %s", f.Cap.SetBy, bytesText(f.Cap.Bytes))
	case memplan.CappedByHeap:
		return "no limit is large enough: the heap grows with it"
	default:
		return ""
	}
}

// plannerAssignment converts the assignment: one entry for each running pod, without tasks if none is known.
func plannerAssignment(f *Facts) memplan.Assignment {
	var result memplan.Assignment
	for _, p := range runningPods(f.Pods) {
		result.Pods = append(result.Pods, memplan.Pod{Name: p.Name})
	}
	for _, load := range podsOfLoads(f.Assignment.Matching.Loads) {
		i := slices.IndexFunc(result.Pods, func(p memplan.Pod) bool { return p.Name == load.Name })
		result.Pods[i] = load
	}
	if !f.Assignment.ProcessesMatched(f.Pods, f.Now) {
		heaviest := podOfLoad(f.Assignment.Matching.Heaviest)
		heaviest.Name = "heaviest process without a pod"
		result.Unmatched = []memplan.Pod{heaviest}
	}
	return result
}

func podsOfLoads(loads []assignment.PodLoad) []memplan.Pod {
	var pods []memplan.Pod
	for _, load := range loads {
		pods = append(pods, podOfLoad(load))
	}
	return pods
}

func podOfLoad(load assignment.PodLoad) memplan.Pod {
	pod := memplan.Pod{Name: load.Pod, Threads: load.Threads, Current: tasksOf(load.Tasks)}
	if load.Target != nil {
		pod.Target = tasksOf(*load.Target)
	}
	return pod
}

func tasksOf(tasks assignment.Tasks) memplan.Tasks {
	convert := func(list []assignment.Task) []memplan.Task {
		var converted []memplan.Task
		for _, t := range list {
			converted = append(converted, memplan.Task{Subtopology: t.Subtopology, Partition: t.Partition})
		}
		return converted
	}
	return memplan.Tasks{Active: convert(tasks.Active), Standby: convert(tasks.Standby), WarmUp: convert(tasks.WarmUp)}
}

// policyOf converts the user's policy.
func policyOf(spec *v1alpha1.MemorySpec) memplan.Policy {
	policy := memplan.DefaultPolicy()
	if spec.HeadroomPercent != nil {
		policy.HeadroomPercent = int(*spec.HeadroomPercent)
	}
	for _, pin := range spec.Pins {
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

// containerPlan converts a plan of the planner.
func containerPlan(plan memplan.Plan) ContainerPlan {
	result := ContainerPlan{
		Limit: int64(plan.Limit), Heap: int64(plan.Heap), Expected: int64(plan.Expected), Fits: plan.Fits(),
		Load:     Load{Threads: plan.Load.Threads, Active: plan.Load.Active, Total: plan.Load.Total},
		Warnings: plan.Warnings, plan: plan,
	}
	file, err := PlanFile(plan)
	if err != nil {
		result.Warnings = append(slices.Clone(result.Warnings), err.Error())
	}
	result.File = file
	for _, config := range plan.Configs {
		result.Settings = append(result.Settings, v1alpha1.Setting{Name: config.Name, Value: config.Value, Source: sourceOf(config.From)})
	}
	for _, line := range plan.Lines {
		result.Lines = append(result.Lines, lineOf(line))
	}
	slices.SortStableFunc(result.Lines, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) })
	for _, deficit := range plan.Deficits {
		result.Deficits = append(result.Deficits, deficit.Message)
	}
	return result
}

// deficitText joins the deficits; empty if the plan fits.
func (p *ContainerPlan) deficitText() string { return strings.Join(p.Deficits, "; ") }

// PlanFile converts a plan of the planner into the plan that pods mount.
func PlanFile(plan memplan.Plan) (planfile.Plan, error) {
	file := planfile.Plan{Limit: int64(plan.Limit), Heap: int64(plan.Heap)}
	var errs []error
	for _, config := range plan.Configs {
		switch config.Kind {
		case memplan.JVMOption:
			option := config.Name
			if config.Value != "" {
				option += "=" + config.Value
			}
			file.Options = append(file.Options, option)
		case memplan.Property:
			errs = append(errs, file.SetProperty(config.Name, config.Value))
		}
	}
	return file, errors.Join(errs...)
}

func lineOf(line memplan.Line) v1alpha1.Line {
	result := v1alpha1.Line{
		Pool: v1alpha1.PoolNative, Name: string(line.Region), Source: sourceOf(line.From),
		Bound: new(quantity(int64(line.Bound))), Expected: new(quantity(int64(line.Expected))),
	}
	if line.Pool == memplan.Heap {
		result.Pool = v1alpha1.PoolHeap
	}
	if line.Count > 0 {
		result.Count = new(int64(line.Count))
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
