// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"crypto/sha256"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"streamweir.dev/streamweir/api/v1alpha1"
)

const (
	containerName = "app"
	// partOfLabel selects the pods that the harness watches.
	partOfLabel = "app.kubernetes.io/part-of"
	partOf      = "scale"
	nameLabel   = "app.kubernetes.io/name"
)

// podTemplate returns a template of ordinary size: two containers, 20 variables, two probes, and the volumes of an API server's defaults.
func podTemplate(name, part string) corev1.PodTemplateSpec {
	var variables []corev1.EnvVar
	for i := range 20 {
		variables = append(variables, corev1.EnvVar{
			Name: fmt.Sprintf("APPLICATION_SETTING_%d", i), Value: fmt.Sprintf("kafka-%d.kafka.svc.cluster.local:9092", i),
		})
	}
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 10,
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{partOfLabel: part, nameLabel: name, "app.kubernetes.io/version": "1.2.3", "team": "payments"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "checksum/config": digest(name)},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			Containers: []corev1.Container{
				{
					Name: containerName, Image: "registry.example/streams/" + name + ":1.2.3", Env: variables, LivenessProbe: probe, ReadinessProbe: probe,
					Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Resources:    resources("500m", "512Mi", templateLimit),
					VolumeMounts: []corev1.VolumeMount{{Name: "state", MountPath: "/var/lib/state"}, {Name: "config", MountPath: "/etc/app"}},
				},
				{Name: "proxy", Image: "registry.example/mesh/proxy:3.4.5", Resources: resources("50m", "64Mi", "128Mi")},
			},
			Volumes: []corev1.Volume{
				{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"},
				}}},
			},
		},
	}
}

func resources(cpu, request, limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(request)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
	}
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// runningStatus returns the status that a kubelet writes for a pod that is ready.
func runningStatus(pod *corev1.Pod, ip string, started time.Time) corev1.PodStatus {
	at := metav1.NewTime(started)
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, ObservedGeneration: pod.Generation, StartTime: &at, QOSClass: pod.Status.QOSClass,
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: "192.0.2.1", HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}},
	}
	for _, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: at, ObservedGeneration: pod.Generation,
		})
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		state := corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image + "@sha256:" + digest(container.Image),
			ContainerID: "containerd://" + digest(string(pod.UID)+container.Name), Started: new(true), Ready: true,
			State:     corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			Resources: container.Resources.DeepCopy(), AllocatedResources: container.Resources.Requests.DeepCopy(),
		}
		for _, mount := range container.VolumeMounts {
			state.VolumeMounts = append(state.VolumeMounts, corev1.VolumeMountStatus{
				Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly,
			})
		}
		status.ContainerStatuses = append(status.ContainerStatuses, state)
	}
	return status
}

// statefulSet returns the workload of an application.
func statefulSet(a *application) *appsv1.StatefulSet {
	template := podTemplate(a.name, partOf)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(a.pods)), PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: a.name,
			Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
		},
	}
}

// settledStatus returns the status of a workload whose pods run.
func settledStatus(set *appsv1.StatefulSet) appsv1.StatefulSetStatus {
	replicas := *set.Spec.Replicas
	return appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		CurrentReplicas: replicas, UpdatedReplicas: replicas, CurrentRevision: "r1", UpdateRevision: "r1",
	}
}

// streamApp returns the StreamApp of an application.
func streamApp(a *application) *v1alpha1.StreamApp {
	return &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: a.name},
			Mode:      v1alpha1.ModeEnforce, Container: containerName,
			Memory: v1alpha1.MemorySpec{MinLimit: new(resource.MustParse(minLimit)), MaxLimit: new(resource.MustParse(maxLimit))},
		},
	}
}

// nodeName returns a name of the length that cloud providers give.
func nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250)
}

// nodeStatus returns the status of a healthy node with 20 images.
func nodeStatus() corev1.NodeStatus {
	capacity := corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("512Gi"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourcePods: resource.MustParse("250"),
	}
	status := corev1.NodeStatus{Capacity: capacity, Allocatable: capacity}
	now := metav1.Now()
	status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now},
	}
	for i := range 20 {
		status.Images = append(status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example/image-%d@sha256:%s", i, digest(fmt.Sprint(i)))}, SizeBytes: 1 << 28,
		})
	}
	return status
}
