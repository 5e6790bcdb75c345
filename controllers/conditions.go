// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// verdict is the answer to one condition's question.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func yes(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)}
}

func no(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

func unknown(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionUnknown, reason, fmt.Sprintf(format, args...)}
}

func (f fault) verdict() verdict { return verdict{metav1.ConditionFalse, f.reason, f.message} }

// conditionOrder is the order in which conditions count for Ready: the first that is not True gives the reason.
var conditionOrder = []string{
	v1alpha1.ConditionCompatible, v1alpha1.ConditionAssignmentKnown, v1alpha1.ConditionFits, v1alpha1.ConditionCascadeSafe, v1alpha1.ConditionApplied,
}

// judge answers every condition from what was observed in this pass, and from nothing else.
func judge(obs *observation, lost losses, p *planning, want *desired, done *applied) map[string]verdict {
	verdicts := map[string]verdict{
		v1alpha1.ConditionCompatible:      judgeCompatible(obs, p),
		v1alpha1.ConditionAssignmentKnown: judgeAssignment(obs, p),
		v1alpha1.ConditionFits:            judgeFits(obs, p, want),
		v1alpha1.ConditionCascadeSafe:     judgeCascade(obs, lost, p, want),
		v1alpha1.ConditionApplied:         judgeApplied(obs, want, done),
	}
	verdicts[v1alpha1.ConditionReady] = judgeReady(verdicts)
	return verdicts
}

func judgeReady(verdicts map[string]verdict) verdict {
	observing := false
	for _, condition := range conditionOrder {
		v := verdicts[condition]
		if v.reason == v1alpha1.ReasonObserveMode {
			observing = true
			continue
		}
		if v.status != metav1.ConditionTrue {
			return verdict{v.status, v.reason, v.message}
		}
	}
	if observing {
		return yes(v1alpha1.ReasonObserving, "all is well; the mode is Observe, so nothing is changed")
	}
	return yes(v1alpha1.ReasonPlanApplied, "limits and configuration are as the plan wants them")
}

// targetFault says why there is nothing to plan for, if so.
func targetFault(obs *observation) fault {
	target := obs.app.Spec.TargetRef
	switch {
	case obs.rival != "":
		return fault{v1alpha1.ReasonConflictingStreamApp, fmt.Sprintf("StreamApp %s is older and has the same target: delete one of the two", obs.rival)}
	case obs.workload == nil:
		return fault{v1alpha1.ReasonTargetNotFound, fmt.Sprintf("%s %s must exist in namespace %s", target.Kind, target.Name, obs.app.Namespace)}
	case obs.container == nil && obs.app.Spec.Container == "":
		return fault{v1alpha1.ReasonContainerAmbiguous, fmt.Sprintf("`container` must name one of the containers of the pod template: %s", containerNames(obs))}
	case obs.container == nil:
		return fault{v1alpha1.ReasonContainerNotFound, fmt.Sprintf("the pod template has no container %q; it has %s", obs.app.Spec.Container, containerNames(obs))}
	case obs.container.bestEffort, obs.container.limit == nil:
		return injectionBlocked(obs)
	}
	return fault{}
}

func containerNames(obs *observation) string {
	var names []string
	for i := range obs.workload.template.Spec.Containers {
		names = append(names, obs.workload.template.Spec.Containers[i].Name)
	}
	return strings.Join(names, ", ")
}

func judgeCompatible(obs *observation, p *planning) verdict {
	if wrong := targetFault(obs); wrong.found() {
		return wrong.verdict()
	}
	if len(p.invalid) > 0 {
		return no(v1alpha1.ReasonInvalidSettings, "%s", strings.Join(p.invalid, "; "))
	}
	return yes(v1alpha1.ReasonCompatible, "the operator can plan for the workload")
}

// reasonOfClass maps the kind of a Kafka error to the reason of the condition.
var reasonOfClass = map[assignment.Class]string{
	assignment.ClassUnreachable:     v1alpha1.ReasonKafkaUnreachable,
	assignment.ClassTimeout:         v1alpha1.ReasonKafkaUnreachable,
	assignment.ClassUnauthorized:    v1alpha1.ReasonKafkaRefused,
	assignment.ClassKafkaError:      v1alpha1.ReasonKafkaRefused,
	assignment.ClassUnknownGroup:    v1alpha1.ReasonGroupNotFound,
	assignment.ClassNotStreamsGroup: v1alpha1.ReasonNotAStreamsGroup,
	assignment.ClassMalformed:       v1alpha1.ReasonUndecodable,
	assignment.ClassUnknownCluster:  v1alpha1.ReasonUnknownCluster,
}

func judgeAssignment(obs *observation, p *planning) verdict {
	group := &obs.group
	switch {
	case obs.reports.usable:
		return yes(v1alpha1.ReasonFromReports, "the agents in the pods report which of them runs which tasks")
	case group.refused.reason == v1alpha1.ReasonNoSource && !p.tasksKnown && obs.agentName != "":
		return judgeReports(obs)
	case group.refused.reason == v1alpha1.ReasonNoSource && p.tasksKnown:
		return yes(v1alpha1.ReasonFromSpec, "the tasks are taken from `streams`; which pod runs which is not known, so every pod is planned for its share")
	case group.refused.found():
		return group.refused.verdict()
	case group.latest.Err != nil:
		return no(reasonOfClass[assignment.ClassOf(group.latest.Err)], "group %s: %s%s", group.ref, classMessage(group.latest.Err), keptNote(obs))
	case group.latest.At.IsZero():
		return unknown(v1alpha1.ReasonNotObserved, "group %s has not been asked yet", group.ref)
	case group.latest.Group == nil:
		return unknown(v1alpha1.ReasonRebalancing, "group %s is in state %s and has shown no assignment yet", group.ref, group.latest.State)
	case !obs.processesFound():
		return no(v1alpha1.ReasonMembersNotMatched, "group %s: %s; every pod is planned for the heaviest of them", group.ref, unmatchedText(group.match))
	}
	return yes(v1alpha1.ReasonFromKafka, "group %s (%s protocol) shows which pod runs which tasks",
		group.ref, strings.ToLower(string(group.latest.Group.Protocol)))
}

// judgeReports says why the pods' reports do not tell who runs what, where nobody else is asked.
func judgeReports(obs *observation) verdict {
	without := 0
	for _, p := range runningPods(obs) {
		if p.agent == "" {
			without++
		}
	}
	pods, why := obs.unreported()
	switch {
	case len(pods) > 0:
		return no(v1alpha1.ReasonReportsUnreachable, "%s", unreportedText(obs, pods, why))
	case effectiveMode(obs.app) != v1alpha1.ModeEnforce:
		return no(v1alpha1.ReasonNoSource, "`kafka` is not set, and in mode Observe no agent is injected, so nobody tells which pod runs which tasks")
	case without > 0:
		return unknown(v1alpha1.ReasonNotObserved, "%s without the agent, which would tell which tasks there are%s", podsRun(without), keptNote(obs))
	}
	return unknown(v1alpha1.ReasonNotObserved, "not every pod has reported which tasks it runs%s", keptNote(obs))
}

func podsRun(count int) string {
	if count == 1 {
		return "one pod runs"
	}
	return fmt.Sprintf("%d pods run", count)
}

// unreportedText says which pods have not reported, and what to do.
func unreportedText(obs *observation, pods []string, why *report.Error) string {
	text := fmt.Sprintf("%s with the agent cannot be asked for a report, the first is %s", podsText(len(pods)), pods[0])
	if why != nil {
		text += ": " + why.Message()
	}
	if why == nil || why.Fault == report.Unreachable {
		text += fmt.Sprintf(". Network policies and service meshes must let the operator in at port %d", report.Port)
	}
	if obs.group.latest.Group != nil && !obs.reports.usable {
		text += "; the Kafka group is asked instead"
	}
	return text
}

// classMessage is what may be said of an error in a status: its kind, no text from the network.
func classMessage(err error) string {
	if e, ok := errors.AsType[*assignment.Error](err); ok {
		return e.Message()
	}
	return string(assignment.ClassOf(err))
}

func keptNote(obs *observation) string {
	if obs.group.latest.Group != nil || obs.injection != nil {
		return "; the last known plan is kept"
	}
	return ""
}

func unmatchedText(match assignment.Matching) string {
	first := match.Processes[0]
	if more := len(match.Processes) - 1; more > 0 {
		return fmt.Sprintf("%d processes have no pod, the first because %s", more+1, first.Why)
	}
	return "a process has no pod: " + first.Why
}

func judgeFits(obs *observation, p *planning, want *desired) verdict {
	switch {
	case targetFault(obs).found():
		return unknown(v1alpha1.ReasonNotObserved, "there is nothing to plan for")
	case !p.tasksKnown:
		return unknown(v1alpha1.ReasonAssignmentUnknown, "it is not known which tasks there are")
	case want.held.reason == v1alpha1.ReasonInsufficientMemory:
		return want.held.verdict()
	case p.survives < 0:
		return no(v1alpha1.ReasonInsufficientMemory, "%s", tooSmallMessage(obs, p))
	}
	return yes(v1alpha1.ReasonFits, "what each pod runs now fits into its limit")
}

// tooSmallMessage names the pods whose limit is below what they need, the first by name.
func tooSmallMessage(obs *observation, p *planning) string {
	var small []string
	for _, pod := range runningPods(obs) {
		limit := pod.effectiveLimit()
		if need := p.pods[pod.name].now; limit != nil && limit.Value() < need {
			small = append(small, fmt.Sprintf("%s has %s and needs %s", pod.name, humanBytes(limit.Value()), needText(need)))
		}
	}
	if len(small) == 0 {
		return "the pods' limits do not hold what they run now"
	}
	if len(small) > 1 {
		return fmt.Sprintf("%d pods have too small a limit; %s", len(small), small[0])
	}
	return small[0]
}

func needText(need int64) string {
	if need >= neverFits {
		return "more than any limit can give: the heap takes too large a share of it"
	}
	return humanBytes(need)
}

func judgeCascade(obs *observation, lost losses, p *planning, want *desired) verdict {
	asked := min(lost.tolerated, max(0, lost.instances-1))
	switch {
	case targetFault(obs).found():
		return unknown(v1alpha1.ReasonNotObserved, "there is nothing to plan for")
	case !p.tasksKnown:
		return unknown(v1alpha1.ReasonAssignmentUnknown, "it is not known which tasks there are")
	case p.survives >= 0 && p.survives+lost.away+lost.joining >= asked: // those that are away have been survived already
		return yes(v1alpha1.ReasonPodFailuresTolerated, "%d of %d pods may be lost, and every other one still fits", p.survives, lost.instances)
	case asked == 0:
		return no(v1alpha1.ReasonWouldCascade, "the pods' limits do not even hold what they run now")
	case want.capped != "":
		return no(v1alpha1.ReasonCapped, "%s are needed to survive the loss of %s, but %s", needText(p.need), podsText(asked), want.capped)
	}
	return no(v1alpha1.ReasonWouldCascade, "the loss of %s would leave pods with too small a limit: %s are needed", podsText(asked), needText(p.need))
}

func podsText(count int) string {
	if count == 1 {
		return "one pod"
	}
	return fmt.Sprintf("%d pods", count)
}

func isTrue(conditions []metav1.Condition, conditionType string) bool {
	return meta.IsStatusConditionTrue(conditions, conditionType)
}
