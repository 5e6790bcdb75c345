// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

func judgeApplied(obs *observation, want *desired, done *applied) verdict {
	switch {
	case targetFault(obs).found():
		return no(v1alpha1.ReasonNotObserved, "there is nothing to apply to")
	case effectiveMode(obs.app) != v1alpha1.ModeEnforce:
		return no(v1alpha1.ReasonObserveMode, "the mode is Observe: nothing is applied")
	case obs.stopped().found():
		return obs.stopped().verdict()
	case want.held.found():
		return no(want.held.reason, "nothing was changed: %s", want.held.message)
	case done.failed != nil:
		return no(v1alpha1.ReasonWriteFailed, "%s", done.failed)
	case want.blocked.found():
		return want.blocked.verdict()
	case done.agent.found():
		return done.agent.verdict()
	case want.withdrawn != "":
		return no(v1alpha1.ReasonPodCreationRefused, "pods could not be created or placed with a limit of %s, so new pods get the template's %s; it is "+
			"tried again after an hour: make room in quota, LimitRange or nodes, or lower `maxLimit`",
			humanBytes(want.limit), obs.container.limit)
	case len(done.refused) > 0:
		return no(v1alpha1.ReasonResizeRefused, "%s", refusedText(done.refused))
	}
	if v, found := judgeResizes(obs, want, done); found {
		return v
	}
	if len(want.restarts) > 0 {
		first := want.restarts[0]
		return no(v1alpha1.ReasonRestartNeeded, "a larger limit is needed by %s, the first is %s with %s; a resize would restart the container, since its "+
			"resizePolicy for memory is RestartContainer. Restart when it suits you: %s",
			podsText(len(want.restarts)), first.pod.name, humanBytes(first.to), restartCommand(obs))
	}
	if v := judgeInjected(obs); v.status != metav1.ConditionTrue {
		return v
	}
	return judgeInForce(obs, want)
}

// judgeInForce speaks of what the pods themselves say of the plan.
func judgeInForce(obs *observation, want *desired) verdict {
	pods, why := obs.unreported()
	if len(pods) > 0 {
		return no(v1alpha1.ReasonReportsUnreachable, "%s", unreportedText(obs, pods, why))
	}
	var off []string
	finding := ""
	for _, p := range runningPods(obs) {
		reported := obs.reports.of(&p)
		if reported == nil || reported.Bounded == report.BoundedPending || boundedIn(reported) {
			continue
		}
		off = append(off, p.name)
		if len(reported.Findings) > 0 {
			finding = cmp.Or(finding, ": "+reported.Findings[0].Message)
		}
	}
	if len(off) > 0 {
		return no(v1alpha1.ReasonNotBounded, "RocksDB is not bounded in %s, so it counts as Kafka Streams ships it; the first is %s%s",
			podsText(len(off)), off[0], finding)
	}
	if len(want.unseen) > 0 {
		return no(v1alpha1.ReasonPublishing, "the plan is published, but not yet seen by %s, the first is %s: the kubelet is slow to update the mounted ConfigMap",
			podsText(len(want.unseen)), want.unseen[0])
	}
	return yes(v1alpha1.ReasonApplied, "the pods run with the plan's limits and configuration")
}

func refusedText(refused map[string]refusal) string {
	first := refused[slices.Min(slices.Collect(maps.Keys(refused)))]
	return fmt.Sprintf("the API server refuses a limit of %s for %s: %s", humanBytes(first.limit), podsText(len(refused)), first.message)
}

// judgeResizes speaks of resizes that the kubelet has not carried out.
func judgeResizes(obs *observation, want *desired, done *applied) (verdict, bool) {
	counts, messages := map[v1alpha1.ResizeOutcome]int{}, map[v1alpha1.ResizeOutcome]string{}
	for i := range obs.pods {
		if p := &obs.pods[i]; p.running() {
			outcome := outcomeOf(p)
			counts[outcome]++
			messages[outcome] = cmp.Or(messages[outcome], p.resize.message)
		}
	}
	reasons := []struct {
		outcome v1alpha1.ResizeOutcome
		reason  string
	}{
		{v1alpha1.ResizeError, v1alpha1.ReasonResizeError}, {v1alpha1.ResizeInfeasible, v1alpha1.ReasonResizeInfeasible},
		{v1alpha1.ResizeDeferred, v1alpha1.ReasonResizeDeferred}, {v1alpha1.ResizeInProgress, v1alpha1.ReasonInProgress},
	}
	for _, r := range reasons {
		if counts[r.outcome] > 0 {
			text := fmt.Sprintf("the resize of %s is not done (%s)", podsText(counts[r.outcome]), r.outcome)
			if message := messages[r.outcome]; message != "" {
				text += ": " + message
			}
			return no(r.reason, "%s", text), true
		}
	}
	if len(done.resized) > 0 || len(want.resizes) > 0 {
		return no(v1alpha1.ReasonInProgress, "limits are being raised"), true
	}
	return verdict{}, false
}

// outcomeOf says how far the last resize of a pod has come.
func outcomeOf(p *podFacts) v1alpha1.ResizeOutcome {
	switch {
	case p.resize.condition == corev1.PodResizePending && p.resize.reason == corev1.PodReasonInfeasible:
		return v1alpha1.ResizeInfeasible
	case p.resize.condition == corev1.PodResizePending:
		return v1alpha1.ResizeDeferred
	case p.resize.condition == corev1.PodResizeInProgress && p.resize.reason == corev1.PodReasonError:
		return v1alpha1.ResizeError
	case p.resize.condition == corev1.PodResizeInProgress:
		return v1alpha1.ResizeInProgress
	case p.limit != nil && p.actualLimit != nil && p.limit.Cmp(*p.actualLimit) != 0:
		return v1alpha1.ResizeInProgress
	case p.limit != nil && p.actualLimit != nil:
		return v1alpha1.ResizeApplied
	}
	return v1alpha1.ResizeNone
}

// judgeInjected finds pods that run without the plan. Those that were made before the injection need a restart, which is the user's to
// decide; those made after it were missed by the admission policy.
func judgeInjected(obs *observation) verdict {
	older, missed, first := 0, 0, ""
	for i := range obs.pods {
		p := &obs.pods[i]
		if !p.running() || p.optedOut || p.injected && (p.agent != "" || obs.agentName == "") {
			continue
		}
		if p.injected { // by an older operator
			older++
			continue
		}
		if obs.injection != nil && p.created.After(obs.injection.CreationTimestamp.Time) {
			missed, first = missed+1, cmp.Or(first, p.name)
			continue
		}
		older++
	}
	switch {
	case missed > 0:
		return no(v1alpha1.ReasonPodsNotInjected, "%s started without the plan although it was to be injected, the first is %s: is the admission policy "+
			"streamweir-injection installed, with its binding? It needs Kubernetes 1.36. Then restart: %s",
			podsText(missed), first, restartCommand(obs))
	case older > 0 && obs.agentName != "":
		return no(v1alpha1.ReasonRestartNeeded, "%s run without the plan or the agent, since they are older. Restart them when it suits you: %s",
			podsText(older), restartCommand(obs))
	case older > 0:
		return no(v1alpha1.ReasonRestartNeeded, "%s run without the plan, since they are older than it. Restart them when it suits you: %s",
			podsText(older), restartCommand(obs))
	}
	return yes(v1alpha1.ReasonApplied, "the pods run with the plan's limits and configuration")
}

func restartCommand(obs *observation) string {
	return fmt.Sprintf("kubectl -n %s rollout restart %s/%s", obs.app.Namespace, strings.ToLower(string(obs.workload.kind)), obs.workload.name)
}
