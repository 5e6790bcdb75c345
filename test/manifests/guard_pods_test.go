// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Parts of the messages of the policy about pods.
const (
	byAllowedActions  = "Streamweir may only annotate pods and resize their memory"
	byOnlyAnnotations = "Streamweir may only change annotations of pods"
	byOwnAnnotations  = "Streamweir may only change its own annotations of pods"
	byInjected        = "Streamweir may only resize pods that mount a plan"
	byMemory          = "Streamweir may only resize the memory of containers"
)

// storedPod creates a pod of a StatefulSet in the API server. It has no node, so a resize is not checked against a node.
func storedPod(t *testing.T, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := changePod(aPod(annotated("example.com/theirs", "1"), app(cpu)), change...)
	pod.Namespace = newNamespace(t)
	if err := admin.Create(t.Context(), pod); err != nil {
		t.Fatalf("creating the pod: %v", err)
	}
	return pod
}

func injectedPod(t *testing.T, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	return storedPod(t, append(change, markedInjected, mountsPlan(planName))...)
}

// markedInjected sets the annotations of an injected pod, as a copied template may have them.
func markedInjected(pod *corev1.Pod) {
	annotated(v1alpha1.PlanAnnotation, revision)(pod)
	annotated(v1alpha1.InjectAnnotation, "true")(pod)
}

// mountsPlan mounts a ConfigMap as the plan in the container of the application.
func mountsPlan(configMap string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		volume(v1alpha1.PlanVolume, configMapVolume(configMap))(pod)
		app(withMount(v1alpha1.PlanVolume, v1alpha1.PlanMountPath))(pod)
	}
}

func TestOperatorPatchesOwnAnnotationsOnly(t *testing.T) {
	pod := injectedPod(t, labelled(map[string]string{"app": "orders"}))
	operator := as(t, operatorUser)
	patch := func(object client.Object, patch string) error {
		return operator.Patch(t.Context(), object, client.RawPatch("application/strategic-merge-patch+json", []byte(patch)), client.DryRunAll)
	}
	for name, allowed := range map[string]string{
		"sets its annotation":          `{"metadata":{"annotations":{"streamweir.dev/published":"g2"}}}`,
		"removes a missing annotation": `{"metadata":{"annotations":{"streamweir.dev/published":null}}}`,
		"writes unchanged annotations": `{"metadata":{"annotations":{"streamweir.dev/plan":"g1","example.com/theirs":"1"}}}`,
	} {
		t.Run(name, func(t *testing.T) { wantAllowed(t, patch(pod.DeepCopy(), allowed)) })
	}
	for name, tc := range map[string]struct{ patch, by string }{
		"adds a foreign annotation":     {`{"metadata":{"annotations":{"example.com/more":"1"}}}`, byOwnAnnotations},
		"changes a foreign annotation":  {`{"metadata":{"annotations":{"example.com/theirs":"2"}}}`, byOwnAnnotations},
		"removes a foreign annotation":  {`{"metadata":{"annotations":{"example.com/theirs":null}}}`, byOwnAnnotations},
		"removes all annotations":       {`{"metadata":{"annotations":null}}`, byOwnAnnotations},
		"changes the plan annotation":   {`{"metadata":{"annotations":{"streamweir.dev/plan":"g2"}}}`, byOwnAnnotations},
		"removes the plan annotation":   {`{"metadata":{"annotations":{"streamweir.dev/plan":null}}}`, byOwnAnnotations},
		"removes the user's annotation": {`{"metadata":{"annotations":{"streamweir.dev/inject":null}}}`, byOwnAnnotations},
		"adds a label":                  {`{"metadata":{"labels":{"streamweir.dev/a":"1"}}}`, byOnlyAnnotations},
		"removes a label":               {`{"metadata":{"labels":{"app":null}}}`, byOnlyAnnotations},
		"removes owners":                {`{"metadata":{"ownerReferences":null}}`, byOnlyAnnotations},
		"adds a finalizer":              {`{"metadata":{"finalizers":["streamweir.dev/wait"]}}`, byOnlyAnnotations},
		"changes the image":             {`{"spec":{"containers":[{"name":"app","image":"example.com/other:1"}]}}`, byOnlyAnnotations},
		"changes its annotation and the deadline": {
			`{"metadata":{"annotations":{"streamweir.dev/published":"g2"}},"spec":{"activeDeadlineSeconds":1}}`, byOnlyAnnotations,
		},
	} {
		t.Run(name, func(t *testing.T) { wantDenied(t, tc.by, func() error { return patch(pod.DeepCopy(), tc.patch) }) })
	}

	t.Run("adds the plan annotation to a pod that was not injected", func(t *testing.T) {
		plain := storedPod(t)
		wantDenied(t, byOwnAnnotations, func() error {
			return patch(plain.DeepCopy(), `{"metadata":{"annotations":{"streamweir.dev/plan":"g1"}}}`)
		})
	})
}

func TestOperatorResizesMemoryOfInjectedPodsOnly(t *testing.T) {
	operator := as(t, operatorUser)
	resize := func(pod *corev1.Pod, change ...func(*corev1.Container)) func() error {
		return func() error {
			pod := changePod(pod.DeepCopy(), app(change...))
			return operator.SubResource("resize").Update(t.Context(), pod, client.DryRunAll)
		}
	}
	raise := func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("2Gi") }
	request := func(c *corev1.Container) { c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("700Mi") }
	moreCPU := func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2") }
	addCPU := func(c *corev1.Container) {
		raise(c)
		c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	}
	grantUpdateOfResize(t)

	pod := injectedPod(t)
	plain := injectedPod(t, app(memory("512Mi", "1Gi")))
	for name, tc := range map[string]struct {
		request func() error
		by      string
	}{
		"a higher limit":                  {request: resize(pod, raise)},
		"a higher request":                {request: resize(pod, raise, request)},
		"more CPU":                        {resize(pod, moreCPU), byMemory},
		"more CPU and memory":             {resize(pod, raise, moreCPU), byMemory},
		"CPU for a container without CPU": {resize(plain, addCPU), byMemory},
		"a pod that was not injected":     {resize(storedPod(t), raise), byInjected},
		"a pod with copied annotations":   {resize(storedPod(t, markedInjected), raise), byInjected},
		"a plan of another name":          {resize(storedPod(t, markedInjected, mountsPlan("my-plan")), raise), byInjected},
		"a volume without a mount": {
			resize(storedPod(t, markedInjected, volume(v1alpha1.PlanVolume, configMapVolume(planName))), raise), byInjected,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.by == "" {
				wantAllowed(t, tc.request())
				return
			}
			wantDenied(t, tc.by, tc.request)
		})
	}

	t.Run("a container that does not mount the plan", func(t *testing.T) {
		pod := injectedPod(t, sidecar(container("sidecar", guaranteed("64Mi"))))
		wantDenied(t, byMemory, func() error {
			pod := pod.DeepCopy()
			raise(&pod.Spec.Containers[0])
			return operator.SubResource("resize").Update(t.Context(), pod, client.DryRunAll)
		})
	})
	t.Run("a native sidecar", func(t *testing.T) {
		native := container("native", guaranteed("64Mi"))
		restartsAlways(&native)
		pod := injectedPod(t, initContainer(native))
		wantDenied(t, byMemory, func() error {
			pod := pod.DeepCopy()
			raise(&pod.Spec.InitContainers[0])
			return operator.SubResource("resize").Update(t.Context(), pod, client.DryRunAll)
		})
	})
}

func TestOperatorResizesByPatch(t *testing.T) {
	pod := injectedPod(t)
	raise := `{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"2Gi"}}}]}}`
	patch := client.RawPatch("application/strategic-merge-patch+json", []byte(raise))
	wantAllowed(t, as(t, operatorUser).SubResource("resize").Patch(t.Context(), pod, patch))
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatalf("reading the pod: %v", err)
	}
	if got := pod.Spec.Containers[0].Resources.Limits.Memory().String(); got != "2Gi" {
		t.Errorf("the limit is %s, want 2Gi", got)
	}
}

// The policy restricts the operator even if it has more permissions than its own role.
func TestOperatorChangesNothingElseOfPodsWithMorePermissions(t *testing.T) {
	pod := injectedPod(t)
	grant(t, pod.Namespace, operatorUser, "cluster-admin")
	operator := as(t, operatorUser)
	for name, request := range map[string]func() error{
		"create": func() error {
			other := aPod()
			other.Namespace, other.Name = pod.Namespace, "other"
			return operator.Create(t.Context(), other, client.DryRunAll)
		},
		"delete": func() error { return operator.Delete(t.Context(), pod.DeepCopy(), client.DryRunAll) },
		"delete all": func() error {
			return operator.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(pod.Namespace), client.DryRunAll)
		},
		"evict": func() error {
			eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}
			return operator.SubResource("eviction").Create(t.Context(), pod.DeepCopy(), eviction)
		},
		"bind": func() error {
			binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
			return operator.SubResource("binding").Create(t.Context(), pod.DeepCopy(), binding, client.DryRunAll)
		},
		"write status": func() error {
			changed := pod.DeepCopy()
			changed.Status.Phase = corev1.PodFailed
			return operator.Status().Update(t.Context(), changed, client.DryRunAll)
		},
		"add an ephemeral container": func() error {
			changed := pod.DeepCopy()
			changed.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "example.com/debug:1"},
			}}
			return operator.SubResource("ephemeralcontainers").Update(t.Context(), changed, client.DryRunAll)
		},
		"exec": func() error { return connect(t, pod, "exec") },
	} {
		t.Run(name, func(t *testing.T) { wantDenied(t, byAllowedActions, request) })
	}
}
