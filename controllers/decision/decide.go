// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"strings"
	"time"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// Decide decides from the objects that a pass has read and the memory of earlier passes.
func Decide(w World, m Memory) Decision {
	f := deriveFacts(w, m)
	d := Decision{Facts: f, Memory: nextMemory(&f)}
	d.RecheckAfter = Earliest(f.Failures.recheckAfter, f.Assignment.recheckAfter(f.Pods, f.Now), recheckPlacement(&f), f.Images.recheckAfter(f.Now))
	d.Frozen = held(&f)
	if !f.plannable() {
		d.InjectionStays = awaitsTarget(&f)
		return d
	}
	rollout := rolloutInProgress(&f)
	withdrawal := withdrawalOf(&f)
	d.Plan = planApplication(&f, rollout, withdrawal.active(f.Now))
	if sourcesLost(&f) { // the tasks in the spec are only a part of the known facts
		d.Plan.TasksKnown = false
	}
	if d.Plan.TasksKnown && f.Reports.Confirmed == nil {
		d.Memory.Tasks = new(int32(d.Plan.Tasks))
	}
	if d.Frozen.Found() {
		d.Refused = knownRefusals(&f, d.Memory.RefusedResizes)
		return d
	}
	if f.Mode() != v1alpha1.ModeEnforce {
		return d
	}
	if planOutlivedInjection(&f, &d.Plan) {
		d.injectStoredPlan()
		return d
	}
	if d.Frozen = frozen(&f, &d.Plan); d.Frozen.Found() {
		d.excludeImages()
		d.Refused = knownRefusals(&f, d.Memory.RefusedResizes)
		return d
	}
	d.chooseResizes()
	if nodesFull(&f, &d, nil) != nil {
		d.RecheckAfter = Earliest(d.RecheckAfter, RefusalRetry) // other pods may have left the nodes
	}
	d.withdraw(withdrawal)
	d.publish(rollout)
	raised := d.Plan.Limit != f.Container.Limit.Value()
	d.Injection = injectionOf(&f, &d.Plan, d.Revision, raised && !d.withdrawn())
	d.chooseRefreshes()
	return d
}

// nextMemory returns the memory of the facts. Decide adds its decisions.
func nextMemory(f *Facts) Memory {
	next := f.Memory
	next.ObservedGeneration = f.App.Generation
	next.PodsUnavailableSince = f.Failures.UnavailableSince.Truncate(time.Second) // as the status stores it
	next.Images = f.Images
	next.Measured = f.Measured
	next.Refreshes = maps.Clone(f.Memory.Refreshes)
	next.RefusedResizes = freshRefusals(f.Memory.RefusedResizes, f.Now)
	next.Assignment = nextAssignment(f)
	return next
}

// awaitsTarget returns whether the target is missing and the injection stays for it: the pods of a workload created again must be
// injected from the first one on. An injection for an earlier target of the StreamApp does not stay.
func awaitsTarget(f *Facts) bool {
	if f.TargetProblem.Reason != v1alpha1.ReasonTargetNotFound || f.Mode() != v1alpha1.ModeEnforce || f.Injection == nil {
		return false
	}
	owner := f.Injection.Spec.Owner
	return Target{owner.Kind, owner.Name} == TargetOf(f.App)
}

// held returns the reason for which the user or the operator's configuration holds everything as it is, if there is one. Only the status
// is written then. In mode Observe there is something to hold only until the injection is removed.
func held(f *Facts) Problem {
	applied := f.Injection != nil || f.PlanConfigMap != nil
	switch {
	case f.Hold != "" && (f.Mode() != v1alpha1.ModeObserve || applied):
		return Problem{v1alpha1.ReasonHeld, f.Hold}
	case f.Mode() == v1alpha1.ModeHold:
		return Problem{v1alpha1.ReasonHeld, holdModeText}
	}
	return Problem{}
}

// frozen returns the reason for which a pass must leave everything as it is, if there is one. Where no source will ever show the tasks, the
// plan follows the limit and the JVM alone. Without a way to inject, nothing begins; an application that was injected stays protected.
func frozen(f *Facts, plan *Plan) Problem {
	exceeds := plan.RequiredNowActive > plan.Limit
	bootstrapExceeds := !plan.TasksKnown && !plan.Representative.Fits
	switch {
	case f.InjectionUnavailable.Found() && f.Injection == nil:
		return f.InjectionUnavailable
	case f.Autoscaler.Found():
		return f.Autoscaler
	case len(plan.Invalid) > 0:
		return Problem{v1alpha1.ReasonInvalidSettings, strings.Join(plan.Invalid, "; ")}
	case !plan.TasksKnown && f.Injection != nil && tasksExpected(f) && !planTooLarge(f):
		return Problem{v1alpha1.ReasonAssignmentUnknown, tasksUnknownText + "; the last plan stays active"}
	case f.Workload.Replicas == 0 && len(f.Pods) == 0 && f.Injection != nil:
		return Problem{v1alpha1.ReasonNoPods, scaledToZeroText}
	case exceeds || bootstrapExceeds:
		return Problem{v1alpha1.ReasonInsufficientMemory, limitTooSmallText(plan)}
	}
	return Problem{}
}

// planOutlivedInjection returns whether the stored plan was made for known tasks, which are unknown now, and the injection was removed with an
// earlier StreamApp of this name.
func planOutlivedInjection(f *Facts, plan *Plan) bool {
	lost := f.Injection == nil && f.PlanConfigMap != nil && f.Memory.Tasks != nil && !plan.TasksKnown
	return lost && len(plan.Invalid) == 0 && tasksExpected(f) && publishedLimit(f.PlanConfigMap) <= int64(limitRange(f).Ceiling())
}

// injectStoredPlan injects the plan as it is stored, with a limit that holds it.
func (d *Decision) injectStoredPlan() {
	f := &d.Facts
	d.Files = planfile.WithRevision(f.PlanConfigMap.Data)
	d.Revision = d.Files[planfile.RevisionKey]
	d.Plan.Limit = max(int64(limitRange(f).Floor()), publishedLimit(f.PlanConfigMap))
	d.Injection = injectionOf(f, &d.Plan, d.Revision, d.Plan.Limit != f.Container.Limit.Value())
	d.Refused = knownRefusals(f, d.Memory.RefusedResizes)
}

// sourcesLost returns whether pods or Kafka showed the tasks before, none of them does now, and one of them will again.
func sourcesLost(f *Facts) bool {
	known := f.Memory.Assignment
	shown := known != nil && (known.Topology.Subtopologies != nil || known.Kafka != nil)
	return f.Assignment.Group == nil && shown && tasksExpected(f)
}

// tasksExpected returns whether a source will show the tasks: a Kafka group is configured; or the tasks were known before, and the
// injection or a pod has an agent, which will report them again.
func tasksExpected(f *Facts) bool {
	injected := f.AgentConfigMap
	if f.Injection != nil {
		injected = f.Injection.Spec.AgentConfigMap
	}
	agent := injected != "" || slices.ContainsFunc(f.Pods, func(p Pod) bool { return p.AgentConfigMap != "" })
	knownBefore := f.Memory.Tasks != nil
	return f.Kafka.Unavailable.Reason != v1alpha1.ReasonNoSource || (knownBefore && agent)
}

// planTooLarge returns whether a pod created now gets less than the published plan is for: the template's limit was lowered, and
// the injected limit does not apply to it. Then even a bootstrap plan is better.
func planTooLarge(f *Facts) bool {
	return publishedLimit(f.PlanConfigMap) > storedLimit(f)
}

// storedLimit returns the limit of a pod created now, with the injection as it is stored.
func storedLimit(f *Facts) int64 {
	limit := f.Container.Limit
	if f.Injection == nil {
		return limit.Value()
	}
	if memory := f.Injection.Spec.Memory; memory.Limit != nil && memory.ForLimit.Cmp(*limit) == 0 {
		limit = memory.Limit
	}
	return limit.Value()
}

// rolloutInProgress returns whether pods expected back are unavailable, or have just returned. The tasks of the others are then in
// transit, so limits and plan stay for the pods to come: the plan covers the gap. A changed template or StreamApp ends this.
func rolloutInProgress(f *Facts) bool {
	edited := f.Memory.ObservedGeneration != f.App.Generation
	if f.Failures.Unavailable+f.Failures.Starting == 0 || f.Injection == nil || f.PlanConfigMap == nil || edited {
		return false
	}
	template := *f.Container.Limit
	if forLimit := f.Injection.Spec.Memory.ForLimit; forLimit != nil {
		return forLimit.Cmp(template) == 0
	}
	return !slices.ContainsFunc(f.Pods, func(p Pod) bool { // then the template's limit was changed, and the plan must follow
		return p.usesMemory() && p.Limit != nil && p.Limit.Cmp(template) != 0
	})
}

// excludeImages changes only the excluded images of a frozen injection: an image that fails to start is known without any other source.
func (d *Decision) excludeImages() {
	injection := d.Facts.Injection
	excluded := d.Facts.Images.excluded(d.Facts.Pods, d.Facts.Now)
	if injection == nil || slices.Equal(injection.Spec.ExcludedImages, excluded) {
		return
	}
	d.Injection = injection.Spec.DeepCopy()
	d.Injection.ExcludedImages = excluded
}

// withdraw withdraws injected memory if the plan raises the template's limit.
func (d *Decision) withdraw(withdrawal *Withdrawal) {
	d.Memory.Withdrawal = nil
	if withdrawal == nil || d.Plan.Limit <= d.Facts.Container.Limit.Value() {
		return
	}
	d.Memory.Withdrawal = withdrawal
	if d.withdrawn() {
		d.RecheckAfter = Earliest(d.RecheckAfter, max(time.Second, withdrawal.retryAt().Sub(d.Facts.Now)))
	}
}

// raisingGrace is how long the plan waits for limits being raised. A kubelet raises one in less than a second (measured).
const raisingGrace = 5 * time.Second

// raising returns for how long the plan may wait for limits being raised; 0 if none is, or if that takes too long.
func (d *Decision) raising() time.Duration {
	f := &d.Facts
	inProgress := slices.ContainsFunc(runningPods(f.Pods), func(p Pod) bool { return ResizeOutcome(&p) == v1alpha1.ResizeInProgress })
	if !inProgress && len(d.Resizes) == 0 {
		d.Memory.RaisingSince = time.Time{}
		return 0
	}
	if d.Memory.RaisingSince.IsZero() {
		d.Memory.RaisingSince = f.Now
	}
	return max(0, raisingGrace-f.Now.Sub(d.Memory.RaisingSince))
}

// withdrawn returns whether injected memory is withdrawn.
func (d *Decision) withdrawn() bool { return d.Memory.Withdrawal.active(d.Facts.Now) }

// publish chooses the files of the plan. A larger plan is published only after the kubelet has raised the limits and the injection with the
// larger limit is stored, and a smaller one before new pods get less: the planner makes it for the smallest limit of any pod reading it.
// The stored injection is one of these limits, so growth takes two passes.
func (d *Decision) publish(rollout bool) {
	published := d.Facts.PlanConfigMap
	staysInRollout := rollout && !d.withdrawn()
	// A pod with too small a limit is being raised: no plan written now would help it.
	tooSmall := !d.Plan.Published.Fits && published != nil
	// A plan for the limits before a raise would be replaced right after it, and each plan is a refresh of every pod. A smaller one is not late.
	raising := d.raising()
	replacedSoon := raising > 0 && published != nil && publishedLimit(published) <= d.Plan.Published.Limit
	d.Files = d.Plan.Published.File.Files()
	switch {
	case staysInRollout:
		d.Files = planfile.WithRevision(published.Data)
	case tooSmall:
		d.Files = planfile.WithRevision(published.Data)
		d.ReplacedSoon = raising > 0
	case replacedSoon && d.Files[planfile.RevisionKey] != planfile.Revision(published.Data):
		d.Files = planfile.WithRevision(published.Data)
		d.ReplacedSoon = true
		d.RecheckAfter = Earliest(d.RecheckAfter, max(time.Second, raising))
	}
	d.Revision = d.Files[planfile.RevisionKey]
	if injection := d.Facts.Injection; injection != nil && !d.withdrawn() && storedLimit(&d.Facts) < d.Plan.Limit {
		d.RecheckAfter = Earliest(d.RecheckAfter, growthRecheck)
	}
}

// growthRecheck is the time after which a larger plan is published if no event follows the write of the larger injection.
const growthRecheck = 2 * time.Second
