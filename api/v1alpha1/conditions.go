// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a StreamApp. All are positive, and all are always present: Unknown where nothing was observed yet.
const (
	// ConditionReady sums up: every other condition is True, or False for a reason that the mode makes harmless.
	ConditionReady = "Ready"

	// ConditionAssignmentKnown says that it is known which pod runs which tasks.
	ConditionAssignmentKnown = "AssignmentKnown"

	// ConditionFits says that every pod's plan for what it runs now fits into its memory limit.
	ConditionFits = "Fits"

	// ConditionCascadeSafe says that every surviving pod would still fit after the losses that spec.memory asks for.
	ConditionCascadeSafe = "CascadeSafe"

	// ConditionApplied says that the pods run with the limits and the configuration that the plan wants.
	ConditionApplied = "Applied"

	// ConditionCompatible says that target, versions and settings are ones that the operator can plan for.
	ConditionCompatible = "Compatible"
)

// Reasons that more than one condition uses.
const (
	// ReasonTargetNotFound: the workload that spec.targetRef names does not exist.
	ReasonTargetNotFound = "TargetNotFound"

	// ReasonNotObserved: nothing was observed yet that could answer the question.
	ReasonNotObserved = "NotObserved"

	// ReasonNoPods: the workload runs no pods.
	ReasonNoPods = "NoPods"

	// ReasonNoMemoryLimit: the container has no memory limit, so that there is no envelope to plan in.
	ReasonNoMemoryLimit = "NoMemoryLimit"
)

// Reasons of Ready.
const (
	// ReasonPlanApplied: every other condition is True.
	ReasonPlanApplied = "PlanApplied"

	// ReasonObserving: the mode is Observe, and what was observed is good.
	ReasonObserving = "Observing"
)

// Reasons of AssignmentKnown.
const (
	// ReasonFromKafka: the assignment was read from the Kafka group.
	ReasonFromKafka = "FromKafka"

	// ReasonFromReports: the pods' agents report what they run.
	ReasonFromReports = "FromReports"

	// ReasonReportsUnreachable: pods have an agent, but no report of them can be had; the message says why, and what to do.
	ReasonReportsUnreachable = "ReportsUnreachable"

	// ReasonFromSpec: the assignment is bounded by what spec.streams says.
	ReasonFromSpec = "FromSpec"

	// ReasonRebalancing: the group is rebalancing; the last known assignment is kept.
	ReasonRebalancing = "Rebalancing"

	// ReasonMembersNotMatched: members of the group could not be matched to pods; every pod is planned for the heaviest.
	ReasonMembersNotMatched = "MembersNotMatched"

	// ReasonNoSource: neither reports nor a Kafka group nor spec.streams tell which tasks there are.
	ReasonNoSource = "NoSource"

	// ReasonUnknownCluster: the operator has no Kafka cluster of this name, or not for this namespace or group.
	ReasonUnknownCluster = "UnknownCluster"

	// ReasonBootstrapServersNotPermitted: spec.kafka.bootstrapServers is set, and the operator does not permit it.
	ReasonBootstrapServersNotPermitted = "BootstrapServersNotPermitted"

	// ReasonKafkaUnreachable: no broker answered in time; the last known assignment is kept.
	ReasonKafkaUnreachable = "KafkaUnreachable"

	// ReasonKafkaRefused: the brokers refused the operator: authentication or authorization.
	ReasonKafkaRefused = "KafkaRefused"

	// ReasonGroupNotFound: the Kafka cluster has no group with the application id.
	ReasonGroupNotFound = "GroupNotFound"

	// ReasonNotAStreamsGroup: the group exists, but its members are not Kafka Streams applications.
	ReasonNotAStreamsGroup = "NotAStreamsGroup"

	// ReasonUndecodable: a member's metadata could not be decoded.
	ReasonUndecodable = "Undecodable"
)

// Reasons of Fits and CascadeSafe.
const (
	// ReasonFits: every line of every pod's plan fits.
	ReasonFits = "Fits"

	// ReasonInsufficientMemory: at least one line does not fit; the message names the largest, and the need.
	ReasonInsufficientMemory = "InsufficientMemory"

	// ReasonPodFailuresTolerated: the pods survive the losses asked for.
	ReasonPodFailuresTolerated = "PodFailuresTolerated"

	// ReasonWouldCascade: after the losses asked for, a surviving pod would no longer fit.
	ReasonWouldCascade = "WouldCascade"

	// ReasonCapped: it would fit with a limit above spec.memory.maxLimit.
	ReasonCapped = "Capped"

	// ReasonAssignmentUnknown: without the assignment the question has no answer.
	ReasonAssignmentUnknown = "AssignmentUnknown"
)

// Reasons of Applied.
const (
	// ReasonApplied: limits and configuration are as the plan wants them.
	ReasonApplied = "Applied"

	// ReasonObserveMode: the mode is Observe, so nothing is applied.
	ReasonObserveMode = "ObserveMode"

	// ReasonInProgress: the kubelet is still carrying out a resize.
	ReasonInProgress = "InProgress"

	// ReasonRestartNeeded: pods run that were created before the injection, or whose container would be restarted by a resize; the
	// message holds the command to restart them.
	ReasonRestartNeeded = "RestartNeeded"

	// ReasonResizeDeferred: the node has no room now; the kubelet will try again.
	ReasonResizeDeferred = "ResizeDeferred"

	// ReasonResizeInfeasible: the node cannot carry out the resize.
	ReasonResizeInfeasible = "ResizeInfeasible"

	// ReasonResizeRefused: the API server refused the resize; the message says why.
	ReasonResizeRefused = "ResizeRefused"

	// ReasonResizeError: the kubelet failed to carry out the resize.
	ReasonResizeError = "ResizeError"

	// ReasonOptionsNotVisible: the container's JVM options come from where the operator cannot read them; spec.jvm must say
	// what they are before anything is injected.
	ReasonOptionsNotVisible = "OptionsNotVisible"

	// ReasonPodsNotInjected: pods were created without injection although it was wanted.
	ReasonPodsNotInjected = "PodsNotInjected"

	// ReasonPodCreationRefused: pods with the injected memory were refused; the injected memory was withdrawn.
	ReasonPodCreationRefused = "PodCreationRefused"

	// ReasonInjectedPodFailedToStart: the first pod of an image ended before its agent reported; pods with this image are not
	// injected any more.
	ReasonInjectedPodFailedToStart = "InjectedPodFailedToStart"

	// ReasonNotBounded: a pod has reported that its stores could not be bounded, so they count as Kafka Streams ships them.
	ReasonNotBounded = "NotBounded"

	// ReasonPublishing: pods have not reported yet that they see the plan.
	ReasonPublishing = "Publishing"

	// ReasonWriteFailed: the API server did not take a write; the message says which, and the operator tries again.
	ReasonWriteFailed = "WriteFailed"

	// ReasonConflict: someone else holds a name or a field that the operator needs.
	ReasonConflict = "Conflict"
)

// Reasons of Compatible.
const (
	// ReasonCompatible: nothing stands in the way.
	ReasonCompatible = "Compatible"

	// ReasonContainerNotFound: the pod template has no container of the name in spec.container.
	ReasonContainerNotFound = "ContainerNotFound"

	// ReasonContainerAmbiguous: the pod template has several containers, and spec.container names none.
	ReasonContainerAmbiguous = "ContainerAmbiguous"

	// ReasonConflictingStreamApp: an older StreamApp has the same target; this one does nothing.
	ReasonConflictingStreamApp = "ConflictingStreamApp"

	// ReasonBestEffort: pods of the class BestEffort have neither requests nor limits; there is nothing to plan in.
	ReasonBestEffort = "BestEffort"

	// ReasonInvalidSettings: settings contradict each other, or have values that Kafka Streams or the JVM would refuse.
	ReasonInvalidSettings = "InvalidSettings"
)
