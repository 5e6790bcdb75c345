// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// Each condition is a chain of checks. The first check that applies gives the status; without one the condition has the status at the end of
// its judge function.

// verdict is the status of one condition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func isTrue(reason, message string) *verdict { return &verdict{metav1.ConditionTrue, reason, message} }
func isFalse(reason, message string) *verdict {
	return &verdict{metav1.ConditionFalse, reason, message}
}
func isUnknown(reason, message string) *verdict {
	return &verdict{metav1.ConditionUnknown, reason, message}
}

// check returns a verdict if it applies, else nil.
type check func(f *Facts, d *Decision, o *Outcome) *verdict

// first returns the verdict of the first check that applies, else the given one.
func first(chain []check, d *Decision, o *Outcome, otherwise *verdict) verdict {
	for _, apply := range chain {
		if v := apply(&d.Facts, d, o); v != nil {
			return *v
		}
	}
	return *otherwise
}

// ConditionOrder is the order in which conditions count for Ready: the first that is not True gives its reason. Applied is the last one: it
// is False in the modes Observe and Hold, which does not count.
var ConditionOrder = []string{
	v1alpha1.ConditionCompatible, v1alpha1.ConditionAssignmentKnown, v1alpha1.ConditionFits, v1alpha1.ConditionCascadeSafe, v1alpha1.ConditionApplied,
}

// judge judges every condition.
func judge(d *Decision, o *Outcome) map[string]verdict {
	f := &d.Facts
	verdicts := map[string]verdict{
		v1alpha1.ConditionCompatible:      first(compatibleChain, d, o, isTrue(v1alpha1.ReasonCompatible, compatibleText)),
		v1alpha1.ConditionAssignmentKnown: first(assignmentChain, d, o, isTrue(v1alpha1.ReasonFromKafka, fromKafkaText(f))),
		v1alpha1.ConditionFits:            first(fitsChain, d, o, isTrue(v1alpha1.ReasonFits, fitsText)),
		v1alpha1.ConditionCascadeSafe:     first(cascadeChain, d, o, isFalse(v1alpha1.ReasonWouldCascade, wouldCascadeText(f, d))),
		v1alpha1.ConditionApplied:         first(appliedChain, d, o, isTrue(v1alpha1.ReasonApplied, appliedText)),
	}
	if known := verdicts[v1alpha1.ConditionAssignmentKnown]; f.Kafka.ConfigFault != "" {
		known.message += "; " + f.Kafka.ConfigFault
		verdicts[v1alpha1.ConditionAssignmentKnown] = known
	}
	verdicts[v1alpha1.ConditionReady] = judgeReady(verdicts)
	return verdicts
}

// judgeReady sums the other conditions up.
func judgeReady(verdicts map[string]verdict) verdict {
	for _, condition := range ConditionOrder {
		v := verdicts[condition]
		switch {
		case v.reason == v1alpha1.ReasonObserveMode:
			return *isTrue(v1alpha1.ReasonObserving, observingText)
		case v.reason == v1alpha1.ReasonHeld:
			return *isTrue(v1alpha1.ReasonHeld, heldText)
		case v.status != metav1.ConditionTrue:
			return v
		}
	}
	return *isTrue(v1alpha1.ReasonPlanApplied, planAppliedText)
}

var compatibleChain = []check{
	// The target can be planned for.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict { return falseIf(f.TargetProblem) },
	// The cluster can inject the plan.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict { return falseIf(f.InjectionUnavailable) },
	// No autoscaler acts on the container's memory.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict { return falseIf(f.Autoscaler) },
	// Flags and properties make sense.
	func(_ *Facts, d *Decision, _ *Outcome) *verdict {
		if len(d.Plan.Invalid) == 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonInvalidSettings, strings.Join(d.Plan.Invalid, "; "))
	},
	reportPortShared,
}

// reportPortShared finds pods with the host's network whose agent cannot serve its report: another process of the node has its port. The second
// pod of a node is one of them; a report of another pod, or one requiring another token, is that of another process.
func reportPortShared(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if f.Workload == nil || !f.Workload.Template.Spec.HostNetwork || f.AgentConfigMap == "" {
		return nil
	}
	perNode := map[string]int{}
	for _, p := range runningPods(f.Pods) {
		if p.Node != "" && p.AgentConfigMap != "" {
			perNode[p.Node]++
		}
	}
	for _, p := range runningPods(f.Pods) {
		err := p.Report.Err
		others := err != nil && (err.Fault == report.WrongPod || err.Fault == report.Unauthorized)
		if others || perNode[p.Node] > 1 {
			return isFalse(v1alpha1.ReasonReportPortShared, reportPortSharedText(&p))
		}
	}
	return nil
}

// falseIf returns a verdict for a problem, nil without one.
func falseIf(p Problem) *verdict {
	if !p.Found() {
		return nil
	}
	return isFalse(p.Reason, p.Message)
}

var assignmentChain = []check{
	fromReports,
	reportsAwaited,
	fromSpec,
	// The group cannot be read.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict { return falseIf(f.Kafka.Unavailable) },
	kafkaError,
	groupNotObserved,
	groupRebalancing,
	membersNotMatched,
}

func fromReports(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if !f.Reports.Usable {
		return nil
	}
	if len(f.Assignment.Remembered) == 0 {
		return isTrue(v1alpha1.ReasonFromReports, fromReportsText)
	}
	if pods, err := unreported(f.Pods, f.Now); len(pods) > 0 {
		return isFalse(v1alpha1.ReasonReportsUnreachable, reportsUnreachableText(f, pods, err))
	}
	return isUnknown(v1alpha1.ReasonNotObserved, rememberedPodsText(f.Assignment.Remembered))
}

// noGroup returns whether the StreamApp names no Kafka group.
func noGroup(f *Facts) bool { return f.Kafka.Unavailable.Reason == v1alpha1.ReasonNoSource }

// reportsAwaited applies while reports are the only source of the assignment and are not usable.
func reportsAwaited(f *Facts, d *Decision, _ *Outcome) *verdict {
	if !noGroup(f) || d.Plan.TasksKnown || f.AgentConfigMap == "" {
		return nil
	}
	withoutAgent := 0
	for _, p := range runningPods(f.Pods) {
		if p.AgentConfigMap == "" {
			withoutAgent++
		}
	}
	pods, err := unreported(f.Pods, f.Now)
	switch {
	case len(pods) > 0:
		return isFalse(v1alpha1.ReasonReportsUnreachable, reportsUnreachableText(f, pods, err))
	case f.Mode() == v1alpha1.ModeObserve:
		return isFalse(v1alpha1.ReasonNoSource, noSourceInObserveText)
	case withoutAgent > 0:
		return isUnknown(v1alpha1.ReasonNotObserved, podsWithoutAgentText(f, withoutAgent))
	}
	return isUnknown(v1alpha1.ReasonNotObserved, reportsIncompleteText(f))
}

func fromSpec(f *Facts, d *Decision, _ *Outcome) *verdict {
	if !noGroup(f) || !d.Plan.TasksKnown {
		return nil
	}
	return isTrue(v1alpha1.ReasonFromSpec, fromSpecText)
}

// reasonOfClass maps the class of a Kafka error to the reason of the condition.
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

func kafkaError(f *Facts, _ *Decision, _ *Outcome) *verdict {
	err := f.Kafka.Latest.Err
	if err == nil {
		return nil
	}
	return isFalse(reasonOfClass[assignment.ClassOf(err)], kafkaErrorText(f))
}

func groupNotObserved(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if !f.Kafka.Latest.At.IsZero() {
		return nil
	}
	return isUnknown(v1alpha1.ReasonNotObserved, groupNotObservedText(f))
}

func groupRebalancing(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if f.Kafka.Latest.Group != nil {
		return nil
	}
	return isUnknown(v1alpha1.ReasonRebalancing, groupRebalancingText(f))
}

func membersNotMatched(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if f.Assignment.ProcessesMatched(f.Pods, f.Now) {
		return nil
	}
	return isFalse(v1alpha1.ReasonMembersNotMatched, membersNotMatchedText(f))
}

var fitsChain = []check{
	noTarget,
	tasksUnknown,
	// The operator changes nothing, because no limit within the range holds the pods' tasks.
	func(_ *Facts, d *Decision, _ *Outcome) *verdict {
		if d.Frozen.Reason != v1alpha1.ReasonInsufficientMemory {
			return nil
		}
		return falseIf(d.Frozen)
	},
	limitsExceeded,
}

func noTarget(f *Facts, _ *Decision, _ *Outcome) *verdict {
	if f.plannable() {
		return nil
	}
	return isUnknown(v1alpha1.ReasonNotObserved, noTargetText)
}

func tasksUnknown(_ *Facts, d *Decision, _ *Outcome) *verdict {
	if d.Plan.TasksKnown {
		return nil
	}
	return isUnknown(v1alpha1.ReasonAssignmentUnknown, tasksUnknownText)
}

func limitsExceeded(f *Facts, d *Decision, _ *Outcome) *verdict {
	if d.Plan.Tolerated >= 0 {
		return nil
	}
	return isFalse(v1alpha1.ReasonInsufficientMemory, limitsExceededText(f, d))
}

var cascadeChain = []check{
	noTarget,
	tasksUnknown,
	failuresTolerated,
	// The limits are too small even without a failure.
	func(f *Facts, _ *Decision, _ *Outcome) *verdict {
		if f.Failures.ToTolerate() > 0 {
			return nil
		}
		return isFalse(v1alpha1.ReasonWouldCascade, limitsExceededNowText)
	},
	// A bound keeps the limit below the required one.
	func(f *Facts, d *Decision, _ *Outcome) *verdict {
		if d.Plan.Capped == "" {
			return nil
		}
		return isFalse(v1alpha1.ReasonCapped, cappedText(f, d))
	},
}

func failuresTolerated(f *Facts, d *Decision, _ *Outcome) *verdict {
	// Failures of unavailable pods have been tolerated already.
	tolerated := d.Plan.Tolerated + f.Failures.Unavailable + f.Failures.Starting
	if d.Plan.Tolerated < 0 || tolerated < f.Failures.ToTolerate() {
		return nil
	}
	return isTrue(v1alpha1.ReasonPodFailuresTolerated, failuresToleratedText(f, d))
}
