// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// injected is the expected state of the application's container.
type injected struct {
	revision string
	env      []string
	// memory is "request/limit".
	memory string
}

const (
	noArenas = "MALLOC_ARENA_MAX=2"
	podUID   = v1alpha1.PodUIDVariable + "<metadata.uid"
)

// injectionCase is a pod and the PodInjections of its namespace. Without want the pod must stay unchanged.
type injectionCase struct {
	injections []v1alpha1.PodInjection
	pod        *corev1.Pod
	want       *injected
}

// testInjections creates each pod twice: unchanged, and with a second mutating webhook, after which the API server invokes the
// policy again.
func testInjections(t *testing.T, cases map[string]injectionCase) {
	t.Helper()
	untouched := newNamespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if len(tc.injections) == 0 {
				tc.injections = []v1alpha1.PodInjection{anInjection()}
			}
			namespace := newNamespace(t)
			createInjections(t, namespace, tc.injections)

			got := create(t, namespace, tc.pod)
			if tc.want == nil {
				if diff := cmp.Diff(create(t, untouched, tc.pod).Spec, got.Spec); diff != "" {
					t.Errorf("a pod that must not be injected was changed (-without +with PodInjection):\n%s", diff)
				}
				if diff := cmp.Diff(tc.pod.Annotations[v1alpha1.PlanAnnotation], got.Annotations[v1alpha1.PlanAnnotation]); diff != "" {
					t.Errorf("a pod that must not be injected was annotated (-want +got):\n%s", diff)
				}
			} else {
				checkInjected(t, got, *tc.want, &tc.injections[0].Spec)
				checkRestUntouched(t, create(t, untouched, tc.pod), got, &tc.injections[0].Spec)
			}

			twice := create(t, namespace, changePod(tc.pod.DeepCopy(), labelled(map[string]string{secondWebhookLabel: "true"})))
			if twice.Spec.Containers[0].Name != meshContainer {
				t.Fatalf("the first container is %q: the second webhook was not called", twice.Spec.Containers[0].Name)
			}
			twice.Spec.Containers = twice.Spec.Containers[1:]
			if diff := cmp.Diff(got.Spec, twice.Spec); diff != "" {
				t.Errorf("a second invocation of the policy has another result (-once +twice):\n%s", diff)
			}
			if want := got.Annotations[v1alpha1.PlanAnnotation]; tc.want != nil && twice.Annotations[v1alpha1.PlanAnnotation] != want {
				t.Errorf("after the second webhook the plan's annotation is %q, want %q: the policy was not invoked again",
					twice.Annotations[v1alpha1.PlanAnnotation], want)
			}
		})
	}
}

// createInjections creates PodInjections as the operator, and waits until the policy uses all of them.
func createInjections(t *testing.T, namespace string, injections []v1alpha1.PodInjection) {
	t.Helper()
	g := gomega.NewWithT(t)
	operator := as(t, operatorUser)
	for _, injection := range injections {
		injection = *injection.DeepCopy()
		injection.Namespace = namespace
		if err := operator.Create(t.Context(), &injection); err != nil {
			t.Fatalf("creating the PodInjection %s: %v", injection.Name, err)
		}
		g.Eventually(func() string {
			return create(t, namespace, canaryFor(injection)).Annotations[v1alpha1.PlanAnnotation]
		}, eventually, polling).Should(gomega.Equal(injection.Spec.PlanRevision))
	}
}

// canaryFor builds a minimal pod for a PodInjection.
func canaryFor(injection v1alpha1.PodInjection) *corev1.Pod {
	pod := aPod(ownedBy("StatefulSet", injection.Spec.Owner.Name))
	if injection.Spec.Owner.Kind == v1alpha1.KindDeployment {
		pod = aPod(ownedByDeployment(injection.Spec.Owner.Name, "canary"))
	}
	pod.Spec.Containers = []corev1.Container{container(injection.Spec.Container, func(c *corev1.Container) { c.Image = "example.com/canary:1" })}
	return pod
}

// create sends a new pod to the API server as a dry run: the server does everything but store it.
func create(t *testing.T, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	pod.Namespace = namespace
	if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatalf("creating the pod: %v", err)
	}
	return pod
}

// mountsOf returns the volumes and mounts of a PodInjection, in their order.
func mountsOf(spec *v1alpha1.PodInjectionSpec) (configMaps []string, mounts []corev1.VolumeMount) {
	configMaps = []string{spec.PlanConfigMap}
	mounts = []corev1.VolumeMount{{Name: v1alpha1.PlanVolume, MountPath: v1alpha1.PlanMountPath, ReadOnly: true}}
	if spec.AgentConfigMap != "" {
		configMaps = append(configMaps, spec.AgentConfigMap)
		mounts = append(mounts, corev1.VolumeMount{Name: v1alpha1.AgentVolume, MountPath: v1alpha1.AgentMountPath, ReadOnly: true})
	}
	return configMaps, mounts
}

func checkInjected(t *testing.T, pod *corev1.Pod, want injected, spec *v1alpha1.PodInjectionSpec) {
	t.Helper()
	if want.revision == "" {
		want.revision = revision
	}
	c := appOf(t, pod)
	got := injected{revision: pod.Annotations[v1alpha1.PlanAnnotation], env: envOf(c)}
	if want.memory != "" {
		got.memory = c.Resources.Requests.Memory().String() + "/" + c.Resources.Limits.Memory().String()
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(injected{})); diff != "" {
		t.Errorf("injected (-want +got):\n%s", diff)
	}
	wantMaps, wantMounts := mountsOf(spec)
	if mounts := c.VolumeMounts; !cmp.Equal(mounts[max(0, len(mounts)-len(wantMounts)):], wantMounts) {
		t.Errorf("mounts of the container are %v, want %v as the last", mounts, wantMounts)
	}
	var maps []string
	for _, v := range pod.Spec.Volumes[max(0, len(pod.Spec.Volumes)-len(wantMaps)):] {
		if v.ConfigMap != nil {
			maps = append(maps, v.ConfigMap.Name)
		}
	}
	if diff := cmp.Diff(wantMaps, maps); diff != "" {
		t.Errorf("ConfigMaps of the last volumes (-want +got):\n%s", diff)
	}
}

// checkRestUntouched compares everything except the fields that the policy may change.
func checkRestUntouched(t *testing.T, without, with *corev1.Pod, spec *v1alpha1.PodInjectionSpec) {
	t.Helper()
	with = with.DeepCopy()
	added, _ := mountsOf(spec)
	with.Spec.Volumes = with.Spec.Volumes[:len(with.Spec.Volumes)-len(added)]
	if len(with.Spec.Volumes) == 0 {
		with.Spec.Volumes = nil
	}
	was, is := appOf(t, without), appOf(t, with)
	is.Env, is.VolumeMounts = was.Env, was.VolumeMounts
	for list, before := range map[*corev1.ResourceList]corev1.ResourceList{
		&is.Resources.Limits: was.Resources.Limits, &is.Resources.Requests: was.Resources.Requests,
	} {
		if amount, found := before[corev1.ResourceMemory]; found {
			(*list)[corev1.ResourceMemory] = amount
		}
	}
	if diff := cmp.Diff(without.Spec, with.Spec); diff != "" {
		t.Errorf("other fields were changed (-without +with PodInjection):\n%s", diff)
	}
	if without.Status.QOSClass != with.Status.QOSClass {
		t.Errorf("the QoS class became %s, want %s", with.Status.QOSClass, without.Status.QOSClass)
	}
}

func appOf(t *testing.T, pod *corev1.Pod) *corev1.Container {
	t.Helper()
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == appContainer {
			return &pod.Spec.Containers[i]
		}
	}
	t.Fatalf("the pod has no container %s", appContainer)
	return nil
}

// envOf formats the environment in its order: NAME=value, or NAME<source of the value.
func envOf(c *corev1.Container) []string {
	var env []string
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			env = append(env, e.Name+"="+e.Value)
		case e.ValueFrom.FieldRef != nil:
			env = append(env, e.Name+"<"+e.ValueFrom.FieldRef.FieldPath)
		case e.ValueFrom.SecretKeyRef != nil:
			env = append(env, e.Name+"<"+e.ValueFrom.SecretKeyRef.Name)
		default:
			env = append(env, e.Name+"<?")
		}
	}
	return env
}
