// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a StreamApp. All are positive and always present; they are Unknown until the first observation.
const (
	// ConditionReady is the summary: every other condition is True, or False for a reason that the mode makes
	// harmless.
	ConditionReady = "Ready"

	// ConditionAssignmentKnown: the tasks of every pod are known.
	ConditionAssignmentKnown = "AssignmentKnown"

	// ConditionFits: the plan for the current load of every pod fits its memory limit.
	ConditionFits = "Fits"

	// ConditionCascadeSafe: after the pod failures that spec.memory requires, every remaining pod still fits its
	// memory limit.
	ConditionCascadeSafe = "CascadeSafe"

	// ConditionApplied: the pods run with the limits and the configuration of the plan.
	ConditionApplied = "Applied"

	// ConditionCompatible: the operator can plan for the target, its versions and its settings.
	ConditionCompatible = "Compatible"
)

// Reasons of several conditions.
const (
	// ReasonTargetNotFound: the workload in spec.targetRef does not exist.
	ReasonTargetNotFound = "TargetNotFound"

	// ReasonNotObserved: the required observations are not available yet.
	ReasonNotObserved = "NotObserved"

	// ReasonNoPods: the workload runs no pods.
	ReasonNoPods = "NoPods"

	// ReasonNoMemoryLimit: the container has no memory limit, so memory cannot be budgeted.
	ReasonNoMemoryLimit = "NoMemoryLimit"
)

// Reasons of Ready.
const (
	// ReasonPlanApplied: every other condition is True.
	ReasonPlanApplied = "PlanApplied"

	// ReasonObserving: the mode is Observe, and no problems were found.
	ReasonObserving = "Observing"

	// ReasonHeld: limits, injection and plan are held as they are. Applied is False. Ready is True if no problems were
	// found.
	ReasonHeld = "Held"
)

// Reasons of AssignmentKnown.
const (
	// ReasonFromKafka: the assignment was read from the Kafka group.
	ReasonFromKafka = "FromKafka"

	// ReasonFromReports: the pods' agents report the tasks that they run.
	ReasonFromReports = "FromReports"

	// ReasonReportsUnreachable: pods have an agent, but their reports cannot be read; the message contains the reason
	// and the remedy.
	ReasonReportsUnreachable = "ReportsUnreachable"

	// ReasonFromSpec: the assignment is bounded by spec.streams.
	ReasonFromSpec = "FromSpec"

	// ReasonRebalancing: the group is rebalancing; the last known assignment is kept.
	ReasonRebalancing = "Rebalancing"

	// ReasonMembersNotMatched: members of the group could not be matched to pods; every pod is planned with the
	// heaviest load.
	ReasonMembersNotMatched = "MembersNotMatched"

	// ReasonNoSource: neither reports nor a Kafka group nor spec.streams provide the tasks.
	ReasonNoSource = "NoSource"

	// ReasonUnknownCluster: the operator has no Kafka cluster of this name, or does not permit it for this namespace
	// or group.
	ReasonUnknownCluster = "UnknownCluster"

	// ReasonBootstrapServersNotPermitted: spec.kafka.bootstrapServers is set, and the operator does not permit it.
	ReasonBootstrapServersNotPermitted = "BootstrapServersNotPermitted"

	// ReasonKafkaUnreachable: no broker answered in time; the last known assignment is kept.
	ReasonKafkaUnreachable = "KafkaUnreachable"

	// ReasonKafkaRefused: the brokers rejected the operator: authentication or authorization.
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
	// ReasonFits: the plan for the current load of every pod fits.
	ReasonFits = "Fits"

	// ReasonInsufficientMemory: at least one pool has a deficit; the message contains the deficit and the required limit.
	ReasonInsufficientMemory = "InsufficientMemory"

	// ReasonPodFailuresTolerated: the required number of pod failures is tolerated.
	ReasonPodFailuresTolerated = "PodFailuresTolerated"

	// ReasonWouldCascade: after the required number of pod failures, a remaining pod would no longer fit.
	ReasonWouldCascade = "WouldCascade"

	// ReasonCapped: the application would fit with a limit above the allowed range.
	ReasonCapped = "Capped"

	// ReasonAssignmentUnknown: the condition cannot be evaluated without the assignment.
	ReasonAssignmentUnknown = "AssignmentUnknown"
)

// Reasons of Applied.
const (
	// ReasonApplied: limits and configuration match the plan.
	ReasonApplied = "Applied"

	// ReasonObserveMode: the mode is Observe, so nothing is applied.
	ReasonObserveMode = "ObserveMode"

	// ReasonInProgress: the kubelet is still carrying out a resize.
	ReasonInProgress = "InProgress"

	// ReasonRestartNeeded: some pods were created before the injection, or a resize would restart their container; the
	// message contains the command to restart them.
	ReasonRestartNeeded = "RestartNeeded"

	// ReasonResizeDeferred: the node has not enough free memory now; the kubelet retries.
	ReasonResizeDeferred = "ResizeDeferred"

	// ReasonResizeInfeasible: the node cannot carry out the resize.
	ReasonResizeInfeasible = "ResizeInfeasible"

	// ReasonResizeRefused: the API server rejected the resize; the message contains the reason.
	ReasonResizeRefused = "ResizeRefused"

	// ReasonNodeCapacity: the nodes of pods have less free memory than the required limits. Move pods, or add nodes.
	ReasonNodeCapacity = "NodeCapacity"

	// ReasonResizeError: the kubelet failed to carry out the resize.
	ReasonResizeError = "ResizeError"

	// ReasonOptionsNotVisible: the operator cannot read the source of the container's JVM options; spec.jvm must
	// contain them before anything is injected.
	ReasonOptionsNotVisible = "OptionsNotVisible"

	// ReasonPodsNotInjected: pods were created without injection although it was required.
	ReasonPodsNotInjected = "PodsNotInjected"

	// ReasonPodCreationRefused: pods with the injected memory were rejected or could not be placed; the injected
	// memory was withdrawn.
	ReasonPodCreationRefused = "PodCreationRefused"

	// ReasonInjectedPodFailedToStart: the first pod of an image ended before its agent reported; pods with this image
	// are no longer injected.
	ReasonInjectedPodFailedToStart = "InjectedPodFailedToStart"

	// ReasonNotBounded: a pod has reported that its stores could not be bounded, so they count with default RocksDB
	// memory.
	ReasonNotBounded = "NotBounded"

	// ReasonPlanClamped: a process started with less memory than its plan assumes, so its agent reduced the shared cache.
	ReasonPlanClamped = "PlanClamped"

	// ReasonPublishing: pods have not acknowledged the published plan yet.
	ReasonPublishing = "Publishing"

	// ReasonWriteFailed: a write to the API server failed; the message names it, and the operator retries.
	ReasonWriteFailed = "WriteFailed"

	// ReasonConflict: a name or a field that the operator needs is used by another owner.
	ReasonConflict = "Conflict"
)

// Reasons of Compatible.
const (
	// ReasonCompatible: no obstacle was found.
	ReasonCompatible = "Compatible"

	// ReasonContainerNotFound: the pod template has no container with the name in spec.container.
	ReasonContainerNotFound = "ContainerNotFound"

	// ReasonContainerAmbiguous: the pod template has several containers, and spec.container is not set.
	ReasonContainerAmbiguous = "ContainerAmbiguous"

	// ReasonConflictingStreamApp: an older StreamApp has the same target; this one has no effect.
	ReasonConflictingStreamApp = "ConflictingStreamApp"

	// ReasonConflictingAutoscaler: an autoscaler sets the memory of the container or scales the pods by their memory, so
	// nothing is changed.
	ReasonConflictingAutoscaler = "ConflictingAutoscaler"

	// ReasonBestEffort: the pods have neither requests nor limits (QoS class BestEffort), so memory cannot be
	// budgeted.
	ReasonBestEffort = "BestEffort"

	// ReasonReportPortShared: pods with the host's network share the port of the report with another process of their
	// node, so the agents of some pods cannot serve their reports.
	ReasonReportPortShared = "ReportPortShared"

	// ReasonInjectionUnavailable: the cluster cannot inject plans into new pods.
	ReasonInjectionUnavailable = "InjectionUnavailable"

	// ReasonInvalidSettings: settings contradict each other, or Kafka Streams or the JVM would reject their values.
	ReasonInvalidSettings = "InvalidSettings"
)
