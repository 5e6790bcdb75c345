// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// appliedChain goes from the cause that hides all others to the smallest one: a missing plan, failed writes, limits of running pods, pods
// without the plan.
var appliedChain = []check{
	// There is no target.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict {
		if f.plannable() {
			return nil
		}
		return isFalse(v1alpha1.ReasonNotObserved, nothingToApplyText)
	},
	// Everything is held.
	func(_ *Facts, d *Decision, _ *Outcome) *verdict {
		if d.Frozen.Reason != v1alpha1.ReasonHeld {
			return nil
		}
		return falseIf(d.Frozen)
	},
	observeMode,
	imageFailedToStart,
	// Everything stays as it is.
	func(_ *Facts, d *Decision, _ *Outcome) *verdict {
		if !d.Frozen.Found() {
			return nil
		}
		return isFalse(d.Frozen.Reason, frozenText(d))
	},
	// A write failed.
	func(_ *Facts, _ *Decision, o *Outcome) *verdict {
		if o.WriteError == nil {
			return nil
		}
		return isFalse(v1alpha1.ReasonWriteFailed, o.WriteError.Error())
	},
	// The plan or the agent cannot be injected.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict { return falseIf(f.InjectionUnavailable) },
	func(f *Facts, _ *Decision, _ *Outcome) *verdict { return falseIf(f.NotInjectable) },
	func(_ *Facts, _ *Decision, o *Outcome) *verdict { return falseIf(o.AgentNotInjected) },
	// Injected memory is withdrawn.
	func(f *Facts, d *Decision, _ *Outcome) *verdict {
		if !d.withdrawn() {
			return nil
		}
		return isFalse(v1alpha1.ReasonPodCreationRefused, withdrawnText(f, d))
	},
	// The API server refused resizes.
	func(_ *Facts, _ *Decision, o *Outcome) *verdict {
		if len(o.Refused) == 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonResizeRefused, resizesRefusedText(o))
	},
	resizesPending,
	nodesFull,
	// Resizes were requested.
	func(_ *Facts, d *Decision, o *Outcome) *verdict {
		if len(o.Resized)+len(d.Resizes) == 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonInProgress, raisingText)
	},
	// A resize would restart the container.
	func(f *Facts, d *Decision, _ *Outcome) *verdict {
		if len(d.Restarts) == 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonRestartNeeded, resizeRestartsText(f, d))
	},
	podsWithoutPlan,
	// Reports are missing.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict {
		pods, err := unreported(f.Pods, f.Now)
		if len(pods) == 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonReportsUnreachable, reportsUnreachableText(f, pods, err))
	},
	podsNotBounded,
	podsClamped,
	// Pods have not loaded the plan.
	func(_ *Facts, d *Decision, _ *Outcome) *verdict {
		if len(d.NotAcknowledged) == 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonPublishing, notAcknowledgedText(d))
	},
}

// nodesFull: nodes cannot give the required limits.
func nodesFull(f *Facts, d *Decision, _ *Outcome) *verdict {
	var capped []*Pod
	for i := range f.Pods {
		if p := &f.Pods[i]; p.manageable() && d.Plan.Pods[p.Name].CappedByNode {
			capped = append(capped, p)
		}
	}
	if len(capped) == 0 {
		return nil
	}
	return isFalse(v1alpha1.ReasonNodeCapacity, nodeCapacityText(d, capped))
}

func observeMode(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if f.Mode() != v1alpha1.ModeObserve {
		return nil
	}
	return isFalse(v1alpha1.ReasonObserveMode, observeModeText)
}

func imageFailedToStart(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if !f.excludedImage() {
		return nil
	}
	failed := ""
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Injected && p.Image == f.Container.Image && p.FailedStarts > 0 {
			failed = cmp.Or(failed, p.Name)
		}
	}
	return isFalse(v1alpha1.ReasonInjectedPodFailedToStart, imageFailedText(f, failed))
}

// pendingOutcomes are the outcomes of resizes that the kubelet has not carried out, the most serious first.
var pendingOutcomes = []struct {
	outcome v1alpha1.ResizeOutcome
	reason  string
}{
	{v1alpha1.ResizeError, v1alpha1.ReasonResizeError}, {v1alpha1.ResizeInfeasible, v1alpha1.ReasonResizeInfeasible},
	{v1alpha1.ResizeDeferred, v1alpha1.ReasonResizeDeferred}, {v1alpha1.ResizeInProgress, v1alpha1.ReasonInProgress},
}

func resizesPending(f *Facts, _ *Decision, _ *Outcome) *verdict {
	counts := map[v1alpha1.ResizeOutcome]int{}
	messages := map[v1alpha1.ResizeOutcome]string{}
	for _, p := range runningPods(f.Pods) {
		outcome := ResizeOutcome(&p)
		counts[outcome]++
		messages[outcome] = cmp.Or(messages[outcome], p.Resize.Message)
	}
	for _, pending := range pendingOutcomes {
		if count := counts[pending.outcome]; count > 0 {
			return isFalse(pending.reason, resizesPendingText(count, pending.outcome, messages[pending.outcome]))
		}
	}
	return nil
}

// podsWithoutPlan finds pods that run without this plan or the agent. Those mounting the plan of another StreamApp keep it. Those that were
// created before the injection need a restart, and the user chooses when. Those that were created after it were missed by the admission policy.
func podsWithoutPlan(f *Facts, _ *Decision, _ *Outcome) *verdict {
	var older int
	var missed, others []string
	for _, p := range runningPods(f.Pods) {
		hasAgent := p.AgentConfigMap != "" || f.AgentConfigMap == ""
		complete := p.Injected && hasAgent
		afterInjection := f.Injection != nil && p.Created.After(f.Injection.CreationTimestamp.Time)
		switch {
		case p.Injected && p.PlanConfigMap != PlanConfigMapName(f.App.Name):
			others = append(others, p.Name)
		case p.OptedOut, complete:
		case afterInjection && !p.Injected:
			missed = append(missed, p.Name)
		default: // created before the injection, or by an older operator
			older++
		}
	}
	switch {
	case len(missed) > 0:
		return isFalse(v1alpha1.ReasonPodsNotInjected, podsNotInjectedText(f, missed))
	case len(others) > 0:
		return isFalse(v1alpha1.ReasonRestartNeeded, podsWithOtherPlanText(f, others))
	case older > 0:
		return isFalse(v1alpha1.ReasonRestartNeeded, podsOlderThanPlanText(f, older))
	}
	return nil
}

// podsClamped finds processes that had less memory at their start than the plan that they read.
func podsClamped(f *Facts, _ *Decision, _ *Outcome) *verdict {
	var pods []string
	finding := ""
	for _, p := range runningPods(f.Pods) {
		r := p.Report.Report
		if r == nil || r.Plan.Source != report.PlanClamped {
			continue
		}
		pods = append(pods, p.Name)
		for _, each := range r.Findings {
			if each.Reason == findingPlanClamped {
				finding = cmp.Or(finding, each.Message)
			}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return isFalse(v1alpha1.ReasonPlanClamped, clampedText(f, pods, finding))
}

// findingPlanClamped is the reason of the agent's finding with the amounts.
const findingPlanClamped = "PlanClamped"

func podsNotBounded(f *Facts, _ *Decision, _ *Outcome) *verdict {
	var pods []string
	finding := ""
	for _, p := range runningPods(f.Pods) {
		if !p.Report.NotBounded() {
			continue
		}
		pods = append(pods, p.Name)
		if r := p.Report.Report; r != nil && len(r.Findings) > 0 {
			finding = cmp.Or(finding, r.Findings[0].Message)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return isFalse(v1alpha1.ReasonNotBounded, notBoundedText(pods, finding))
}
