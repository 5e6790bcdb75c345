// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "streamweir.dev/streamweir/agent/planfile"

// Annotations on pods. The operator may write no other key than those with the prefix "streamweir.dev/", and never
// PlanAnnotation: the shipped admission policies see to it.
const (
	// InjectAnnotation opts a pod out of injection when its value is "false". Users set it in the pod template.
	InjectAnnotation = "streamweir.dev/inject"

	// PlanAnnotation holds the generation of the plan that the pod was created with. The injection policy sets it. A
	// pod without it was not injected, and the operator may not resize it.
	PlanAnnotation = "streamweir.dev/plan"

	// PublishedAnnotation holds the generation of the plan that was published last. The operator sets it, so that the
	// kubelet refreshes the mounted ConfigMap at once.
	PublishedAnnotation = "streamweir.dev/published"
)

// Names that the injection policy and the operator have to agree on.
const (
	// ConfigMapPrefix starts the name of every ConfigMap that the operator writes. No one else may write such names.
	ConfigMapPrefix = "streamweir-"

	// PlanVolume is the name of the volume that holds the plan ConfigMap.
	PlanVolume = "streamweir-plan"

	// PlanMountPath is where the plan ConfigMap is mounted in the container.
	PlanMountPath = "/etc/streamweir/plan"

	// AgentVolume is the name of the volume that holds the agent's ConfigMap.
	AgentVolume = "streamweir-agent"

	// AgentMountPath is where the agent's ConfigMap is mounted in the container.
	AgentMountPath = "/etc/streamweir/agent"

	// AgentJarKey is the key of the agent's ConfigMap that holds the jar.
	AgentJarKey = "streamweir-agent.jar"

	// AgentOption loads the agent. The options variable of a container with the agent begins with it. It does not stand in the options
	// file: a container that was created without the agent's mount reads the same file, and would not start with it.
	AgentOption = "-javaagent:" + AgentMountPath + "/" + AgentJarKey

	// PodUIDVariable is the environment variable that holds the pod's UID.
	PodUIDVariable = "STREAMWEIR_POD_UID"
)

// JVMOptions is what the options variable of an injected container begins with: a reference to the mounted plan.
// +kubebuilder:validation:Enum="@/etc/streamweir/plan/jvm.options";"-XX:VMOptionsFile=/etc/streamweir/plan/jvm.options"
type JVMOptions string

const (
	// LauncherOptions goes with JDK_JAVA_OPTIONS: the java launcher reads the file (JDK 9 and newer).
	LauncherOptions JVMOptions = "@" + PlanMountPath + "/" + planfile.OptionsKey

	// VMOptions goes with JAVA_TOOL_OPTIONS: every JVM in the container reads the file.
	VMOptions JVMOptions = "-XX:VMOptionsFile=" + PlanMountPath + "/" + planfile.OptionsKey
)
