// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations on pods. The operator may write only keys with the prefix "streamweir.dev/", and never
// PlanAnnotation. The shipped admission policies enforce this.
const (
	// InjectAnnotation excludes a pod from injection if its value is "false". Users set it in the pod template.
	InjectAnnotation = "streamweir.dev/inject"

	// PlanAnnotation contains the revision of the plan with which the pod was created. The injection policy sets it, but a
	// pod template may contain it as well: only a mounted plan proves an injection.
	PlanAnnotation = "streamweir.dev/plan"

	// PublishedAnnotation contains the revision of the plan that was published last. The operator sets it, so that the
	// kubelet refreshes the mounted ConfigMap at once.
	PublishedAnnotation = "streamweir.dev/published"
)

// Names that the injection policy and the operator share.
const (
	// PlanConfigMapPrefix is the prefix of the name of every plan ConfigMap. No other user may write such names.
	PlanConfigMapPrefix = "streamweir-plan-"

	// AgentConfigMapPrefix is the prefix of the name of every ConfigMap with the agent. No other user may write such
	// names.
	AgentConfigMapPrefix = "streamweir-agent-"

	// PlanVolume is the name of the volume with the plan ConfigMap.
	PlanVolume = "streamweir-plan"

	// PlanMountPath is the mount path of the plan ConfigMap in the container.
	PlanMountPath = "/etc/streamweir/plan"

	// AgentVolume is the name of the volume with the agent's ConfigMap.
	AgentVolume = "streamweir-agent"

	// AgentMountPath is the mount path of the agent's ConfigMap in the container.
	AgentMountPath = "/etc/streamweir/agent"

	// AgentJarKey is the key of the agent's ConfigMap for the jar.
	AgentJarKey = "streamweir-agent.jar"

	// AgentOption loads the agent. The options variable of a container with the agent begins with it. The options file
	// does not contain it: a container without the mount of the agent reads the same file, and would not start with
	// this option.
	AgentOption = "-javaagent:" + AgentMountPath + "/" + AgentJarKey

	// PodUIDVariable is the environment variable for the UID of the pod.
	PodUIDVariable = "STREAMWEIR_POD_UID"
)

// JVMOptions is the first part of the options variable of an injected container: a reference to the mounted plan.
// +kubebuilder:validation:Enum="@/etc/streamweir/plan/jvm.options";"-XX:VMOptionsFile=/etc/streamweir/plan/jvm.options"
type JVMOptions string

const (
	// LauncherOptions is for JDK_JAVA_OPTIONS: the java launcher reads the file (JDK 9 and newer).
	LauncherOptions JVMOptions = "@" + PlanMountPath + "/jvm.options"

	// VMOptions is for JAVA_TOOL_OPTIONS: every JVM in the container reads the file.
	VMOptions JVMOptions = "-XX:VMOptionsFile=" + PlanMountPath + "/jvm.options"
)
