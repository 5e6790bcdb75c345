// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// StatusOf returns the status after a pass. Of the old status only the transition times of conditions are kept, and the figures where a pass
// is frozen because the tasks are unknown: those of a plan without tasks would describe no pod.
func StatusOf(d *Decision, o *Outcome) v1alpha1.StreamAppStatus {
	f := &d.Facts
	status := v1alpha1.StreamAppStatus{
		ObservedGeneration: d.Memory.ObservedGeneration,
		Mode:               f.Mode(),
		Conditions:         conditionsOf(f, judge(d, o)),
		Tasks:              d.Memory.Tasks,
		Images:             d.Memory.Images,
		Measured:           d.Memory.Measured,
	}
	if f.Workload == nil || f.Container == nil || f.ConflictingApp != "" {
		return status
	}
	running := len(runningPods(f.Pods))
	status.Pods = new(int32(running))
	if since := d.Memory.PodsUnavailableSince; !since.IsZero() {
		status.UnavailablePods = new(int32(max(0, f.Workload.Replicas-running)))
		status.PodsUnavailableSinceTime = new(metav1.NewTime(since).Rfc3339Copy())
	}
	if !f.plannable() {
		return status
	}
	setFigures(&status, d)
	if d.Frozen.Found() && !d.Plan.TasksKnown && f.Memory.Tasks != nil {
		keepFigures(&status, &f.App.Status)
	}
	status.DivergentPods, status.DivergentPodsOmitted = divergentPods(d, o)
	status.Warnings = warningsOf(d)
	keepSmall(&status)
	return status
}

// maxStatus is the largest size of a status in bytes of JSON. Every watcher receives all of it with each change.
const maxStatus = 32 << 10

// keepSmall omits divergent pods until the status is small enough: with long messages there is room for fewer than MaxDivergentPods.
func keepSmall(status *v1alpha1.StreamAppStatus) {
	for len(status.DivergentPods) > 1 {
		if data, err := json.Marshal(status); err != nil || len(data) < maxStatus {
			return
		}
		omit := 1 + len(status.DivergentPods)/10
		status.DivergentPods = status.DivergentPods[:len(status.DivergentPods)-omit]
		status.DivergentPodsOmitted = new(deref(status.DivergentPodsOmitted) + int32(omit))
	}
}

// setFigures sets the figures of the representative pod.
func setFigures(status *v1alpha1.StreamAppStatus, d *Decision) {
	plan := &d.Plan
	pod := &plan.Representative
	status.Limit = new(quantity(plan.Limit))
	status.Heap = new(quantity(pod.Heap))
	status.Expected = new(quantity(pod.Expected))
	if plan.TasksKnown {
		status.PodFailuresTolerated = new(int32(max(0, plan.Tolerated)))
		if plan.Required < NoLimit {
			status.RequiredLimit = new(quantity(plan.Required))
		}
	}
	lines := uniqueLines(pod.Lines)
	status.Lines = lines[:min(len(lines), v1alpha1.MaxLines)]
	status.Settings = pod.Settings[:min(len(pod.Settings), v1alpha1.MaxSettings)]
	status.BoundedPods = boundedPods(d.Facts.Pods)
	status.PlanRevision = d.Revision
	if d.Frozen.Found() && d.Facts.Injection != nil {
		status.PlanRevision = d.Facts.Injection.Spec.PlanRevision
	}
}

// keepFigures restores the figures of the last pass that knew the tasks.
func keepFigures(status, last *v1alpha1.StreamAppStatus) {
	if last.RequiredLimit == nil {
		return
	}
	status.Limit = last.Limit
	status.Heap = last.Heap
	status.Expected = last.Expected
	status.RequiredLimit = last.RequiredLimit
	status.PodFailuresTolerated = last.PodFailuresTolerated
	status.Lines = last.Lines
	status.Settings = last.Settings
}

// uniqueLines returns the lines with those of the same pool and name in one, largest first: the API server accepts no duplicates. The shared
// block cache and a cache that the application keeps are such lines. The sum has the source of its largest line, and no count.
func uniqueLines(lines []v1alpha1.Line) []v1alpha1.Line {
	var unique []v1alpha1.Line
	for _, line := range lines {
		i := slices.IndexFunc(unique, func(known v1alpha1.Line) bool { return known.Pool == line.Pool && known.Name == line.Name })
		if i < 0 {
			unique = append(unique, line)
			continue
		}
		unique[i].Bound = sumOf(unique[i].Bound, line.Bound)
		unique[i].Expected = sumOf(unique[i].Expected, line.Expected)
		unique[i].Count = nil
	}
	slices.SortStableFunc(unique, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) })
	return unique
}

func sumOf(a, b *resource.Quantity) *resource.Quantity {
	sum := a.DeepCopy()
	sum.Add(*b)
	return &sum
}

// boundedPods returns the number of pods that have reported that they are bounded; nil if no pod is expected to report.
func boundedPods(pods []Pod) *int32 {
	expected := false
	bounded := int32(0)
	for i := range pods {
		r := &pods[i].Report
		expected = expected || r.Expected
		if r.Bounded() {
			bounded++
		}
	}
	if !expected {
		return nil
	}
	return &bounded
}

// conditionsOf returns the conditions. A message may quote a kubelet or an admission webhook, so its length is bounded.
func conditionsOf(f *Facts, verdicts map[string]verdict) []metav1.Condition {
	conditions := slices.Clone(f.App.Status.Conditions)
	for _, conditionType := range append([]string{v1alpha1.ConditionReady}, ConditionOrder...) {
		v := verdicts[conditionType]
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: conditionType, Status: v.status, Reason: v.reason, Message: Shorten(v.message, v1alpha1.MaxConditionText),
			ObservedGeneration: f.App.Generation, LastTransitionTime: metav1.NewTime(f.Now).Rfc3339Copy(),
		})
	}
	return conditions
}

// divergentPods lists the pods whose limit, required limit or resize differs from that of the representative pod, and counts those for which the list
// has no room. Pods with a failed resize come first.
func divergentPods(d *Decision, o *Outcome) ([]v1alpha1.PodStatus, *int32) {
	var failed, others []v1alpha1.PodStatus
	for _, p := range runningPods(d.Facts.Pods) {
		entry := podStatus(d, &p, o)
		switch {
		case entry.Resize != v1alpha1.ResizeNone && entry.Resize != v1alpha1.ResizeApplied:
			failed = append(failed, entry)
		case diverges(d, &p, &entry):
			others = append(others, entry)
		}
	}
	all := slices.Concat(failed, others)
	if more := len(all) - v1alpha1.MaxDivergentPods; more > 0 {
		return all[:v1alpha1.MaxDivergentPods], new(int32(more))
	}
	return all, nil
}

// podStatus returns the status of one pod.
func podStatus(d *Decision, p *Pod, o *Outcome) v1alpha1.PodStatus {
	entry := v1alpha1.PodStatus{Name: p.Name, Resize: ResizeOutcome(p), Limit: p.EffectiveLimit(), Message: truncate(p.Resize.Message)}
	if planned, known := d.Plan.Pods[p.Name]; known {
		entry.Tasks = new(int32(planned.Tasks))
		if planned.Required < NoLimit {
			entry.RequiredLimit = new(quantity(planned.Required))
		}
	}
	if refused, ok := o.Refused[p.Name]; ok {
		entry.Resize = v1alpha1.ResizeRefused
		entry.Message = truncate(fmt.Sprintf("%s refused: %s", bytesText(refused.Limit), refused.Message))
	}
	if entry.Message == "" && p.Report.Err != nil {
		entry.Message = truncate(p.Report.Err.Message())
	}
	if r := p.Report.Report; r != nil {
		entry.Bounded = v1alpha1.Boundedness(r.Bounded)
		if active := r.Plan.Active; active != publishedRevision(d) && active != "" {
			entry.PlanRevision = Shorten(active, maxRevision)
		}
	}
	return entry
}

// maxRevision is the longest revision that the status accepts.
const maxRevision = 64

// publishedRevision returns the revision of the published plan.
func publishedRevision(d *Decision) string {
	if d.Revision == "" && d.Facts.PlanConfigMap != nil {
		return planfile.Revision(d.Facts.PlanConfigMap.Data)
	}
	return d.Revision
}

// diverges returns whether a pod differs from the representative one: bounded, by the published plan, with its limit and required limit.
func diverges(d *Decision, p *Pod, entry *v1alpha1.PodStatus) bool {
	sameLimit := entry.Limit != nil && entry.Limit.Value() == d.Plan.Limit
	sameRequired := entry.RequiredLimit == nil || entry.RequiredLimit.Value() == d.Plan.Required
	if p.Report.Report == nil {
		return !sameLimit || !sameRequired || p.Report.Err != nil
	}
	asPublished := p.Report.Report.Bounded == report.BoundedActive && entry.PlanRevision == ""
	return !sameLimit || !sameRequired || !asPublished
}

// throttledPod describes the first pod that the kernel throttles below its required limit; empty without one. Such a JVM stalls instead of being
// killed.
func throttledPod(d *Decision) string {
	for _, p := range runningPods(d.Facts.Pods) {
		r := p.Report.Report
		required := d.Plan.Pods[p.Name].RequiredNow
		if r != nil && r.Cgroup.High > 0 && r.Cgroup.High < required && d.Plan.TasksKnown {
			return throttledText(&p, required)
		}
	}
	return ""
}

// warningsOf returns the warnings, sorted.
func warningsOf(d *Decision) []string {
	plan := &d.Plan
	warnings := slices.Concat(plan.Notes, plan.Representative.Warnings)
	if group := d.Facts.Assignment.Group; group != nil {
		warnings = append(warnings, group.Warnings...)
	}
	if deficit := plan.Representative.deficitText(); plan.TasksKnown && deficit != "" {
		warnings = append(warnings, deficit)
	}
	if plan.ColdStart > plan.Limit {
		warnings = append(warnings, coldStartText(plan))
	}
	if text := throttledPod(d); text != "" {
		warnings = append(warnings, text)
	}
	for i := range warnings {
		warnings[i] = truncate(warnings[i])
	}
	slices.Sort(warnings)
	warnings = slices.Compact(warnings)
	return warnings[:min(len(warnings), v1alpha1.MaxWarnings)]
}
