// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// The texts of all conditions. A text does not change unless the situation does: it has no times and no counters, and its names are
// sorted. It names the fault, its place and the fix.

// Texts without arguments.
const (
	compatibleText        = "the workload is supported"
	fitsText              = "every pod's tasks fit into its memory limit"
	appliedText           = "the pods run with the limits and configuration of the plan"
	podLevelText          = "`minLimit` and `maxLimit` have no effect: the pod template has pod-level resources, so the limit stays as it is"
	planAppliedText       = "limits and configuration match the plan"
	observingText         = "no problems found; nothing is changed in mode Observe"
	holdModeText          = "limits, injection and plan are kept as they are in mode Hold"
	heldText              = "no problems found; limits, injection and plan are held as they are"
	observeModeText       = "nothing is applied in mode Observe"
	noTargetText          = "there is no container to plan for"
	nothingToApplyText    = "there is no container to apply a plan to"
	tasksUnknownText      = "the application's tasks are unknown"
	scaledToZeroText      = "the workload is scaled to zero; the last plan stays active"
	fromReportsText       = "the agents in the pods report the tasks of each pod"
	fromSpecText          = "the tasks are taken from `streams`; the assignment is unknown, so every pod is planned for its share"
	raisingText           = "limits are being raised"
	limitsExceededNowText = "the pods' tasks exceed their limits already"
	noSourceInObserveText = "`kafka` is not set and no agent is injected in mode Observe, so the task assignment cannot be determined"
	// NoPolicyAPIText is for a cluster that does not serve MutatingAdmissionPolicy v1.
	NoPolicyAPIText = "no plan can be injected: the API server does not serve MutatingAdmissionPolicy of admissionregistration.k8s.io/v1, " +
		"which needs Kubernetes 1.36 or newer"
	// NoPolicyText is for a cluster without the injection policy.
	NoPolicyText = "no plan can be injected: there is no MutatingAdmissionPolicy for PodInjections; apply config/admission/injection"
	// NoBindingText is for a cluster in which the injection policy is not bound.
	NoBindingText = "no plan can be injected: there is no MutatingAdmissionPolicyBinding for the policy of PodInjections; apply " +
		"config/admission/injection"
	// NoSourceText is for a StreamApp without a Kafka group.
	NoSourceText = "`kafka` is not set and no agent reports, so the task assignment cannot be determined"
)

func conflictingAppText(f *Facts) string {
	return fmt.Sprintf("StreamApp %s has the same target and is older; delete one of the two", f.ConflictingApp)
}

func targetNotFoundText(f *Facts) string {
	target := f.App.Spec.TargetRef
	return fmt.Sprintf("%s %s does not exist in namespace %s", target.Kind, target.Name, f.App.Namespace)
}

func containerAmbiguousText(f *Facts) string {
	return "the pod template has several containers; set `container` to one of " + containerNames(f.Workload)
}

func containerNotFoundText(f *Facts) string {
	return fmt.Sprintf("the pod template has no container %q; set `container` to one of %s", f.App.Spec.Container, containerNames(f.Workload))
}

func containerNames(w *Workload) string {
	var names []string
	for i := range w.Template.Spec.Containers {
		names = append(names, w.Template.Spec.Containers[i].Name)
	}
	return strings.Join(names, ", ")
}

func bestEffortText(c *Container) string {
	return fmt.Sprintf("the pods have neither requests nor limits (QoS class BestEffort); set a memory limit on container %s", c.Name)
}

func noMemoryLimitText(c *Container) string {
	return fmt.Sprintf("container %s has no memory limit; set one so that memory can be budgeted", c.Name)
}

func optionsFromValueText(c *Container) string {
	return fmt.Sprintf("container %s sets %s with valueFrom, which cannot be extended; use a plain value, or set `jvm.optionsVariable` to the other variable",
		c.Name, c.Options.Variable)
}

func conflictingMountText(c *Container) string {
	return fmt.Sprintf("container %s already mounts a volume at %s; the plan is mounted at %s", c.Name, c.Options.ConflictingMount, v1alpha1.PlanMountPath)
}

func conflictingVolumeText() string {
	return fmt.Sprintf("the pod template already defines a volume %s or %s; these names are reserved for Streamweir", v1alpha1.PlanVolume, v1alpha1.AgentVolume)
}

func ownOptionsFileText(c *Container) string {
	return fmt.Sprintf("container %s names an options file in %s, and a JVM accepts only one; put its options into the variable itself",
		c.Name, c.Options.Variable)
}

func requiresAOTCacheText(c *Container) string {
	return fmt.Sprintf("the JVM of container %s does not start with an agent, because of -XX:AOTMode=on; use -XX:AOTMode=auto, "+
		"or set the annotation %s: \"false\" in the pod template", c.Name, v1alpha1.InjectAnnotation)
}

func optionsInSecretText(c *Container) string {
	return fmt.Sprintf("container %s takes its environment from Secret %s, which may contain %s and is not readable for the operator; "+
		"set `jvm.ownOptions` to its value, to $(%s) to keep it, or to \"\" if it has none",
		c.Name, c.Options.Secrets[0], c.Options.Variable, c.Options.Variable)
}

// planKeptText is the end of a text about a missing source.
func planKeptText(f *Facts) string {
	if f.Assignment.Group == nil && f.Injection == nil {
		return ""
	}
	return "; the last known plan is kept"
}

func podsWithoutAgentText(f *Facts, count int) string {
	return fmt.Sprintf("%s without the agent, so the tasks are unknown%s", runText(count), planKeptText(f))
}

func runText(count int) string {
	if count == 1 {
		return "1 pod runs"
	}
	return podsText(count) + " run"
}

func reportsIncompleteText(f *Facts) string {
	return "not all pods have reported their tasks yet" + planKeptText(f)
}

// reportsUnreachableText names the pods without a report. The error is that of the first pod; it may be nil.
func reportsUnreachableText(f *Facts, pods []string, err *report.Error) string {
	text := fmt.Sprintf("no report from %s with the agent (%s)", podsText(len(pods)), pods[0])
	if err != nil {
		text += ": " + err.Message()
	}
	if err == nil || err.Fault == report.Unreachable {
		text += fmt.Sprintf("; network policies and service meshes must admit the operator at port %d", report.Port)
	}
	switch {
	case f.Kafka.Latest.Group != nil && !f.Reports.Usable:
		text += "; the Kafka group is used instead"
	case len(f.Assignment.Remembered) > 0:
		text += "; planned with their last known load"
	}
	return text
}

// rememberedPodsText names the first pod without the agent in an application whose other pods report.
func rememberedPodsText(pods []string) string {
	return fmt.Sprintf("%s without a report (%s); planned with the heaviest known load", runText(len(pods)), pods[0])
}

// kafkaErrorText contains the class of the error and no text from the network.
func kafkaErrorText(f *Facts) string {
	err := f.Kafka.Latest.Err
	text := string(assignment.ClassOf(err))
	if e, ok := errors.AsType[*assignment.Error](err); ok {
		text = e.Message()
	}
	return fmt.Sprintf("group %s: %s%s", f.Kafka.Ref, text, planKeptText(f))
}

func groupNotObservedText(f *Facts) string {
	return fmt.Sprintf("group %s has not been read yet", f.Kafka.Ref)
}

func groupRebalancingText(f *Facts) string {
	return fmt.Sprintf("group %s is in state %s and has shown no assignment yet", f.Kafka.Ref, f.Kafka.Latest.State)
}

func membersNotMatchedText(f *Facts) string {
	processes := f.Assignment.Matching.Processes
	unmatched := "1 process has no pod"
	if len(processes) > 1 {
		unmatched = fmt.Sprintf("%d processes have no pod", len(processes))
	}
	return fmt.Sprintf("group %s: %s (%s); every pod is planned for the heaviest one", f.Kafka.Ref, unmatched, processes[0].Why)
}

func fromKafkaText(f *Facts) string {
	if f.Assignment.Group == nil {
		return ""
	}
	return fmt.Sprintf("group %s (%s protocol) shows the tasks of each pod", f.Kafka.Ref, strings.ToLower(string(f.Assignment.Group.Protocol)))
}

// limitTooSmallText describes a limit of new pods that does not hold the tasks of a pod now.
func limitTooSmallText(plan *Plan) string {
	text := fmt.Sprintf("a limit of %s does not hold the tasks of a pod now", bytesText(plan.Limit))
	if plan.TasksKnown && plan.RequiredNowActive < NoLimit {
		text = fmt.Sprintf("%s: %s are required", text, bytesText(plan.RequiredNowActive))
	}
	if plan.Capped != "" {
		text += ", but " + plan.Capped
	}
	if deficit := plan.Representative.deficitText(); deficit != "" {
		text += " (" + deficit + ")"
	}
	return text
}

// limitsExceededText names the first pod, by name, whose limit is below the required one.
func limitsExceededText(f *Facts, d *Decision) string {
	var exceeded []string
	for _, p := range runningPods(f.Pods) {
		limit := p.EffectiveLimit()
		if required := d.Plan.Pods[p.Name].RequiredNow; limit != nil && limit.Value() < required {
			exceeded = append(exceeded, fmt.Sprintf("%s has %s and requires %s", p.Name, bytesText(limit.Value()), requiredText(required)))
		}
	}
	switch len(exceeded) {
	case 0:
		return limitsExceededNowText
	case 1:
		return exceeded[0]
	}
	return fmt.Sprintf("%d pods have too small a limit; %s", len(exceeded), exceeded[0])
}

func failuresToleratedText(f *Facts, d *Decision) string {
	if f.Failures.Instances <= 1 {
		return "the only pod fits into its limit; there is no other pod that its failure could affect"
	}
	text := fmt.Sprintf("%d of %d pods can fail, and every survivor stays within its limit", d.Plan.Tolerated, f.Failures.Instances)
	if node := crowdedNode(f.Pods, d.Plan.Tolerated); node.Pods > 0 {
		text += fmt.Sprintf("; node %s runs %d of the pods, and its failure is not covered: spread the pods, or set `podFailuresToTolerate` to %d",
			node.Name, node.Pods, node.Pods)
	}
	return text
}

func wouldCascadeText(f *Facts, d *Decision) string {
	return fmt.Sprintf("after the failure of %s, survivors would exceed their limits: %s are required",
		podsText(f.Failures.ToTolerate()), requiredText(d.Plan.Required))
}

func cappedText(f *Facts, d *Decision) string {
	return fmt.Sprintf("%s are required to tolerate the failure of %s, but %s", requiredText(d.Plan.Required), podsText(f.Failures.ToTolerate()), d.Plan.Capped)
}

func frozenText(d *Decision) string { return "nothing was changed: " + d.Frozen.Message }

// imageFailedText names the pod whose container failed to start; empty if it is gone.
func imageFailedText(f *Facts, pod string) string {
	text := fmt.Sprintf("pods with image %s failed to start before their agent reported, so pods with this image are not injected for an hour; "+
		"a runtime image needs the module java.instrument", f.Container.Image)
	if pod == "" {
		return text + ". Deploy a new image or edit the StreamApp to retry"
	}
	return fmt.Sprintf("%s. See kubectl -n %s logs -p %s; then delete the pod, and deploy a new image or edit the StreamApp to retry",
		text, f.App.Namespace, pod)
}

func withdrawnText(f *Facts, d *Decision) string {
	return fmt.Sprintf("pods could not be created or placed with a limit of %s, so new pods get the template's %s; the operator retries at %s: "+
		"make room in quota, LimitRange or nodes, or lower `maxLimit`", bytesText(d.Plan.Limit), f.Container.Limit,
		d.Memory.Withdrawal.retryAt().UTC().Format(time.RFC3339))
}

func nodeCapacityText(d *Decision, capped []*Pod) string {
	first := capped[0]
	return fmt.Sprintf("the nodes of %s have no room for the required limit: %s requires %s, and node %s can give at most %s beside the requests of its "+
		"other pods; move pods, or add nodes",
		podsText(len(capped)), first.Name, requiredText(d.Plan.Pods[first.Name].Required), first.Node, bytesText(first.NodeCap))
}

func resizesRefusedText(o *Outcome) string {
	refused := o.Refused[slices.Min(slices.Collect(maps.Keys(o.Refused)))]
	return fmt.Sprintf("the API server refused a limit of %s for %s: %s", bytesText(refused.Limit), podsText(len(o.Refused)), refused.Message)
}

func resizesPendingText(count int, outcome v1alpha1.ResizeOutcome, message string) string {
	text := fmt.Sprintf("the resize of %s is pending (%s)", podsText(count), outcome)
	if message != "" {
		text += ": " + message
	}
	return text
}

func resizeRestartsText(f *Facts, d *Decision) string {
	resize := d.Restarts[0]
	verb := "need"
	if len(d.Restarts) == 1 {
		verb = "needs"
	}
	return fmt.Sprintf("%s %s a larger limit (%s: %s), but resizing memory restarts the container (resizePolicy RestartContainer); "+
		"restart at a convenient time: %s",
		podsText(len(d.Restarts)), verb, resize.Pod, bytesText(resize.To), restartCommand(f))
}

func podsNotInjectedText(f *Facts, pods []string) string {
	return fmt.Sprintf("%s started without the plan although it was to be injected (%s); check that the admission policy streamweir-injection and its "+
		"binding are installed (Kubernetes 1.36 or newer), then restart: %s", podsText(len(pods)), pods[0], restartCommand(f))
}

func podsOlderThanPlanText(f *Facts, count int) string {
	verbs := "were created before the plan and run"
	if count == 1 {
		verbs = "was created before the plan and runs"
	}
	without := "the plan"
	if f.AgentConfigMap != "" {
		without = "the plan or the agent"
	}
	return fmt.Sprintf("%s %s without %s; restart to apply it: %s", podsText(count), verbs, without, restartCommand(f))
}

// podsWithOtherPlanText names the first pod mounting the plan of another StreamApp.
func podsWithOtherPlanText(f *Facts, pods []string) string {
	verb := "mount"
	if len(pods) == 1 {
		verb = "mounts"
	}
	return fmt.Sprintf("%s (%s) %s the plan of another StreamApp, as after a rename; restart to apply this one: %s",
		podsText(len(pods)), pods[0], verb, restartCommand(f))
}

func restartCommand(f *Facts) string {
	return fmt.Sprintf("kubectl -n %s rollout restart %s/%s", f.App.Namespace, strings.ToLower(string(f.Workload.Kind)), f.Workload.Name)
}

// notBoundedText names the first pod with unbounded stores. The finding is the agent's; it may be empty.
func notBoundedText(pods []string, finding string) string {
	text := fmt.Sprintf("RocksDB is not bounded in %s (%s), so default RocksDB memory counts", podsText(len(pods)), pods[0])
	if finding != "" {
		text += ": " + finding
	}
	return text
}

func notAcknowledgedText(d *Decision) string {
	verb := "have"
	if len(d.NotAcknowledged) == 1 {
		verb = "has"
	}
	return fmt.Sprintf("the plan is published, but %s (%s) %s not loaded it: the kubelet is slow to update the mounted ConfigMap",
		podsText(len(d.NotAcknowledged)), d.NotAcknowledged[0], verb)
}

func coldStartText(plan *Plan) string {
	return fmt.Sprintf("the first pod of a cold start runs all %d tasks for a while and requires %s; set podManagementPolicy to Parallel",
		plan.Tasks, requiredText(plan.ColdStart))
}

// BootstrapServersText is for a StreamApp naming brokers without permission.
const BootstrapServersText = "`kafka.bootstrapServers` requires the operator's flag --allow-bootstrap-servers; " +
	"name a configured cluster in `kafka.cluster` instead"

// UnknownClusterText is for a StreamApp naming a cluster which the operator does not have, or not for its namespace or group.
func UnknownClusterText(cluster, namespace, applicationID string) string {
	return fmt.Sprintf("the operator has no Kafka cluster %q for group %q of namespace %s; set `kafka.cluster` to a cluster of its configuration",
		cluster, applicationID, namespace)
}

// HoldText is for the hold of all applications by the operator's configuration.
func HoldText(reason string) string {
	return "the operator's configuration holds all applications: " + reason
}

// maxConfigFault is the largest number of bytes of a fault in a message.
const maxConfigFault = 200

// ConfigFaultText is for a fault of the operator's configuration file.
func ConfigFaultText(fault error) string {
	first, _, _ := strings.Cut(fault.Error(), "\n")
	return "the operator's configuration has a fault and its last good version is active: " + Shorten(first, maxConfigFault)
}

// AgentConflictText is for a ConfigMap of the agent with other content.
func AgentConflictText(configMap string) string {
	return fmt.Sprintf("ConfigMap %s does not contain the agent of this operator, so it is not used; another client has written it: "+
		"delete it, with the verb delete-plans on podinjections", configMap)
}

// ResizedText describes an accepted resize. A mutating webhook or the default of a LimitRange may have changed the limit.
func ResizedText(r Resize, answered int64) string {
	text := fmt.Sprintf("pod %s from %s to %s", r.Pod, bytesText(r.From), bytesText(r.To))
	if answered != r.To {
		text += fmt.Sprintf(" (changed to %s by the API server)", bytesText(answered))
	}
	return text
}

// ownHeapText describes a heap that the image sets outside of the pod template.
func ownHeapText(percent int32) string {
	return fmt.Sprintf("the image sets the heap to %d%% of the limit, outside of the pod template; remove this flag, such as MaxRAMPercentage in a start "+
		"script, so that the plan decides the heap", percent)
}

// clampedText names the first pod with a reduced cache. The finding is the agent's; it may be empty.
func clampedText(f *Facts, pods []string, finding string) string {
	text := fmt.Sprintf("%s started with less memory than the plan assumes (%s), so its cache is smaller", podsText(len(pods)), pods[0])
	if finding != "" {
		text += ": " + finding
	}
	return text + "; restart to apply the plan: " + restartCommand(f)
}

// reportPortSharedText names a pod with the host's network sharing the port of the report.
func reportPortSharedText(p *Pod) string {
	return fmt.Sprintf("pod %s has the network of node %s, where another process uses port %d, so only one of them serves its report; run at most one such "+
		"pod on a node (podAntiAffinity), or set hostNetwork: false", p.Name, p.Node, report.Port)
}

// throttledText describes a pod whose kernel throttles it before it reaches the required limit.
func throttledText(p *Pod, required int64) string {
	return fmt.Sprintf("pod %s: the kernel throttles its memory above %s (memory.high), but %s are required; raise the memory request, or turn off "+
		"MemoryQoS on the node", p.Name, bytesText(p.Report.Report.Cgroup.High), bytesText(required))
}

// unlimitedArenasText names a pod whose glibc has no limit on its arenas: the container's envFrom kept the variable from being injected.
func unlimitedArenasText(p *Pod) string {
	return fmt.Sprintf("pod %s: glibc has no limit on its arenas, so native memory may exceed the plan; set MALLOC_ARENA_MAX=2 in the container's `env`, "+
		"which Streamweir does not add to a container with `envFrom`", p.Name)
}
