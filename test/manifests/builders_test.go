// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

const (
	appContainer = "app"
	appImage     = "example.com/app:1"
	planName     = "streamweir-plan-orders"
	revision     = "g1"
	options      = "@/etc/streamweir/plan/jvm.options"
	agentName    = "streamweir-agent-0123456789"
	agentOption  = "-javaagent:/etc/streamweir/agent/streamweir-agent.jar"
)

// aPod builds a pod of the StatefulSet orders with one container, app, with a limit of 1Gi and a request of 512Mi.
func aPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-0", Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container(appContainer, memory("512Mi", "1Gi"))}},
	}
	ownedBy("StatefulSet", "orders")(pod)
	return changePod(pod, change...)
}

func changePod(pod *corev1.Pod, change ...func(*corev1.Pod)) *corev1.Pod {
	for _, change := range change {
		change(pod)
	}
	return pod
}

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: "1", Controller: new(true),
		}}
	}
}

func ownedByDeployment(name, hash string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		ownedBy("ReplicaSet", name+"-"+hash)(pod)
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[key] = value }
}

func labelled(labels map[string]string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { maps.Copy(pod.Labels, labels) }
}

// app changes the container of the application.
func app(change ...func(*corev1.Container)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == appContainer {
				changeContainer(&pod.Spec.Containers[i], change...)
			}
		}
	}
}

func sidecar(c corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers = append([]corev1.Container{c}, pod.Spec.Containers...) }
}

func initContainer(c corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.InitContainers = append(pod.Spec.InitContainers, c) }
}

func volume(name string, source corev1.VolumeSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

func configMapVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func container(name string, change ...func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: name, Image: "example.com/" + name + ":1"}
	changeContainer(&c, change...)
	return c
}

func changeContainer(c *corev1.Container, change ...func(*corev1.Container)) {
	for _, change := range change {
		change(c)
	}
}

func withEnv(name, value string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value}) }
}

func withEnvFromSecretKey(name, secret string) func(*corev1.Container) {
	source := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "options",
	}}
	return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: source}) }
}

func withEnvFrom(source corev1.EnvFromSource) func(*corev1.Container) {
	return func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, source) }
}

func withMount(volume, path string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
}

func restartsAlways(c *corev1.Container) { c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways) }

// memory sets a request and a limit of memory; "" sets none.
func memory(request, limit string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		if request != "" {
			c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(request)
		}
		if limit != "" {
			c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
		}
	}
}

// cpu sets request and limit of CPU to the same value.
func cpu(c *corev1.Container) {
	c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
}

// guaranteed sets request and limit of memory and CPU, with request equal to limit.
func guaranteed(amount string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		memory(amount, amount)(c)
		cpu(c)
	}
}

// anInjection builds the PodInjection of the StreamApp orders, with a StatefulSet as the owner and without memory.
func anInjection(change ...func(*v1alpha1.PodInjectionSpec)) v1alpha1.PodInjection {
	injection := v1alpha1.PodInjection{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
		Spec: v1alpha1.PodInjectionSpec{
			Owner:           v1alpha1.WorkloadOwner{Kind: v1alpha1.KindStatefulSet, Name: "orders"},
			Container:       appContainer,
			OptionsVariable: v1alpha1.JDKJavaOptions,
			Options:         v1alpha1.LauncherOptions,
			PlanConfigMap:   planName,
			PlanRevision:    revision,
		},
	}
	for _, change := range change {
		change(&injection.Spec)
	}
	return injection
}

func forOwner(kind v1alpha1.WorkloadKind, name string) func(*v1alpha1.PodInjectionSpec) {
	return func(spec *v1alpha1.PodInjectionSpec) { spec.Owner = v1alpha1.WorkloadOwner{Kind: kind, Name: name} }
}

func ownOptions(value string) func(*v1alpha1.PodInjectionSpec) {
	return func(spec *v1alpha1.PodInjectionSpec) { spec.OwnOptions = &value }
}

func withAgent(spec *v1alpha1.PodInjectionSpec) { spec.AgentConfigMap = agentName }

func excludedImages(images ...string) func(*v1alpha1.PodInjectionSpec) {
	return func(spec *v1alpha1.PodInjectionSpec) { spec.ExcludedImages = images }
}

func everyJVM(spec *v1alpha1.PodInjectionSpec) {
	spec.OptionsVariable, spec.Options = v1alpha1.JavaToolOptions, v1alpha1.VMOptions
}

// injectMemory injects a limit into pods with the limit forLimit, and a request unless it is "".
func injectMemory(forLimit, limit, request string) func(*v1alpha1.PodInjectionSpec) {
	return func(spec *v1alpha1.PodInjectionSpec) {
		spec.Memory = v1alpha1.InjectedMemory{
			ForLimit: new(resource.MustParse(forLimit)), Limit: new(resource.MustParse(limit)),
		}
		if request != "" {
			spec.Memory.Request = new(resource.MustParse(request))
		}
		if spec.Memory.Limit.Cmp(*spec.Memory.ForLimit) < 0 {
			spec.Memory.ForImage = appImage
		}
	}
}
