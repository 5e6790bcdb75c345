// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// statusOf computes the status afresh. Of the old one only the times at which conditions turned are kept.
func statusOf(obs *observation, lost losses, p *planning, want *desired, done *applied) v1alpha1.StreamAppStatus {
	status := v1alpha1.StreamAppStatus{
		ObservedGeneration: obs.app.Generation,
		Mode:               effectiveMode(obs.app),
		Conditions:         conditionsOf(obs, judge(obs, lost, p, want, done)),
	}
	if obs.workload == nil || obs.container == nil || obs.rival != "" {
		return status
	}
	status.Images, status.Measured = obs.images, obs.measured
	running := runningPods(obs)
	status.Pods = new(int32(len(running)))
	if !lost.missingSince.IsZero() {
		status.UnavailablePods = new(int32(max(0, obs.workload.replicas-len(running))))
		status.PodsUnavailableSinceTime = new(metav1.NewTime(lost.missingSince).Rfc3339Copy())
	}
	if obs.container.limit == nil {
		return status
	}
	figures(&status, obs, p, want)
	status.DivergentPods, status.DivergentPodsOmitted = divergentPods(obs, p, want, done)
	status.Warnings = warningsOf(obs, p, want)
	keepSmall(&status)
	return status
}

// maxStatus is the most bytes that a status takes as JSON. Every watcher gets all of it with each change.
const maxStatus = 32 << 10

// keepSmall takes pods off the list, and counts them, until the status is small enough: with long messages fewer than 50 find room.
func keepSmall(status *v1alpha1.StreamAppStatus) {
	for len(status.DivergentPods) > 1 {
		if data, err := json.Marshal(status); err != nil || len(data) < maxStatus {
			return
		}
		more := 1 + len(status.DivergentPods)/10
		status.DivergentPods = status.DivergentPods[:len(status.DivergentPods)-more]
		if status.DivergentPodsOmitted == nil {
			status.DivergentPodsOmitted = new(int32)
		}
		*status.DivergentPodsOmitted += int32(more)
	}
}

// figures writes the numbers of the typical pod.
func figures(status *v1alpha1.StreamAppStatus, obs *observation, p *planning, want *desired) {
	status.Limit, status.Heap = new(quantity(want.limit)), new(quantity(want.typical.heap))
	status.Expected = new(quantity(want.typical.expected))
	if p.tasksKnown {
		status.Tasks = new(int32(p.tasks))
		status.PodFailuresTolerated = new(int32(max(0, p.survives)))
		if p.need < neverFits {
			status.RequiredLimit = new(quantity(p.need))
		}
	}
	status.Lines = want.typical.lines[:min(len(want.typical.lines), v1alpha1.MaxLines)]
	status.Settings = want.typical.settings[:min(len(want.typical.settings), v1alpha1.MaxSettings)]
	if len(obs.reports.pods) > 0 {
		status.BoundedPods = new(int32(0))
		for _, answer := range obs.reports.pods {
			if answer.Report != nil && boundedIn(answer.Report) {
				*status.BoundedPods++
			}
		}
	}
	status.PlanRevision = want.generation
	if want.held.found() && obs.injection != nil {
		status.PlanRevision = obs.injection.Spec.PlanRevision
	}
}

// conditionsOf writes the verdicts down. A message may quote others, a kubelet or an admission webhook, so it is cut.
func conditionsOf(obs *observation, verdicts map[string]verdict) []metav1.Condition {
	conditions := slices.Clone(obs.app.Status.Conditions)
	for _, conditionType := range append([]string{v1alpha1.ConditionReady}, conditionOrder...) {
		v := verdicts[conditionType]
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: conditionType, Status: v.status, Reason: v.reason, Message: shorten(v.message, v1alpha1.MaxConditionText),
			ObservedGeneration: obs.app.Generation, LastTransitionTime: metav1.NewTime(obs.now).Rfc3339Copy(),
		})
	}
	return conditions
}

// divergentPods lists the pods whose limit, need or resize is not that of the typical pod, and counts those that the list has no room
// for. Pods with a resize that failed come first.
func divergentPods(obs *observation, p *planning, want *desired, done *applied) ([]v1alpha1.PodStatus, *int32) {
	var troubled, others []v1alpha1.PodStatus
	for _, pod := range runningPods(obs) {
		entry, trouble := podStatus(obs, &pod, p, done)
		asReported := reportedStatus(obs, &pod, want, &entry)
		same := entry.Limit != nil && entry.Limit.Value() == want.limit && (entry.RequiredLimit == nil || entry.RequiredLimit.Value() == p.need) && asReported
		switch {
		case trouble:
			troubled = append(troubled, entry)
		case !same:
			others = append(others, entry)
		}
	}
	all := slices.Concat(troubled, others)
	if more := len(all) - v1alpha1.MaxDivergentPods; more > 0 {
		return all[:v1alpha1.MaxDivergentPods], new(int32(more))
	}
	return all, nil
}

// podStatus tells of one pod, and whether its resize is in trouble.
func podStatus(obs *observation, pod *podFacts, p *planning, done *applied) (entry v1alpha1.PodStatus, trouble bool) {
	entry = v1alpha1.PodStatus{Name: pod.name, Resize: outcomeOf(pod), Limit: pod.effectiveLimit(), Message: truncate(pod.resize.message)}
	if planned, known := p.pods[pod.name]; known {
		entry.Tasks = new(int32(planned.tasks))
		if planned.need < neverFits {
			entry.RequiredLimit = new(quantity(planned.need))
		}
	}
	if refused, ok := done.refused[pod.name]; ok {
		entry.Resize, entry.Message = v1alpha1.ResizeRefused, truncate(fmt.Sprintf("%s refused: %s", humanBytes(refused.limit), refused.message))
	}
	if answer := obs.reports.pods[string(pod.uid)]; entry.Message == "" && answer.Err != nil {
		entry.Message = truncate(answer.Err.Message())
	}
	return entry, entry.Resize != v1alpha1.ResizeNone && entry.Resize != v1alpha1.ResizeApplied
}

// reportedStatus adds what the pod itself says of the plan, and tells whether it is what the typical pod says: bounded, by the plan that is
// published.
func reportedStatus(obs *observation, pod *podFacts, want *desired, entry *v1alpha1.PodStatus) bool {
	reported := obs.reports.of(pod)
	if reported == nil {
		return pod.agent == "" || obs.reports.pods[string(pod.uid)].Err == nil
	}
	entry.Bounded = v1alpha1.Boundedness(reported.Bounded)
	published := want.generation
	if published == "" && obs.planConfigMap != nil {
		published = planfile.Revision(obs.planConfigMap.Data)
	}
	if inForce := reported.Plan.Active; inForce != published && inForce != "" {
		entry.PlanRevision = shorten(inForce, maxGeneration)
	}
	return reported.Bounded == report.BoundedActive && entry.PlanRevision == ""
}

// maxGeneration is the longest name of a plan that the status takes.
const maxGeneration = 64

func warningsOf(obs *observation, p *planning, want *desired) []string {
	warnings := slices.Concat(p.notes, want.typical.warnings)
	if group := obs.group.latest.Group; group != nil {
		warnings = append(warnings, group.Warnings...)
	}
	if p.tasksKnown && want.typical.shortage != "" {
		warnings = append(warnings, want.typical.shortage)
	}
	if p.coldStart > want.limit {
		warnings = append(warnings, fmt.Sprintf("the first pod of a cold start runs all %d tasks for a while and needs %s: set podManagementPolicy to Parallel",
			p.tasks, needText(p.coldStart)))
	}
	for i := range warnings {
		warnings[i] = truncate(warnings[i])
	}
	slices.Sort(warnings)
	warnings = slices.Compact(warnings)
	return warnings[:min(len(warnings), v1alpha1.MaxWarnings)]
}

// truncate shortens a text to what the status has room for.
func truncate(text string) string { return shorten(text, v1alpha1.MaxText) }

// shorten cuts a text to so many bytes, at a whole character.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most - len("...")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// writeStatus writes the status if it differs, once in a pass.
func (r *StreamAppReconciler) writeStatus(ctx context.Context, app *v1alpha1.StreamApp, status v1alpha1.StreamAppStatus) (changed bool, err error) {
	if equality.Semantic.DeepEqual(app.Status, status) {
		return false, nil
	}
	updated := app.DeepCopy()
	updated.Status = status
	if err := r.Status().Patch(ctx, updated, client.MergeFrom(app), client.FieldOwner(FieldOwner)); err != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	app.Status = status
	return true, nil
}
