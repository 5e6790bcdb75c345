// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
)

// templateHash returns a hash of a pod template in the form of a pod-template-hash. The real controllers hash another
// encoding and use the same letters.
func templateHash(template corev1.PodTemplateSpec) (string, error) {
	encoded, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("hashing the pod template: %w", err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write(encoded) // A hash never fails to write.
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32())), nil
}

// podFromTemplate returns the pod that owner's controller would create, without a name.
func podFromTemplate(owner metav1.Object, kind schema.GroupVersionKind, template corev1.PodTemplateSpec) *corev1.Pod {
	template = *template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       owner.GetNamespace(),
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	return pod
}

// createPod creates a pod through the API. It reports a refusal as the real controllers do: with an event.
func (c *Cluster) createPod(ctx context.Context, owner metav1.Object, kind schema.GroupVersionKind, pod *corev1.Pod) error {
	_, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return errors.Join(err, c.reportFailedCreate(ctx, owner, kind, pod, err))
}

// reportFailedCreate writes the FailedCreate event, once for each owner and class of error.
func (c *Cluster) reportFailedCreate(
	ctx context.Context, owner metav1.Object, kind schema.GroupVersionKind, pod *corev1.Pod, cause error,
) error {
	message := fmt.Sprintf("Error creating: %v", cause)
	if kind.Kind == "StatefulSet" {
		message = fmt.Sprintf("create Pod %s in StatefulSet %s failed error: %v", pod.Name, owner.GetName(), cause)
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, owner.GetUID(), apierrors.ReasonForError(cause)) // A hash never fails to write.
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: fmt.Sprintf("%s.%x", owner.GetName(), hash.Sum64()),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind,
			Namespace: owner.GetNamespace(), Name: owner.GetName(), UID: owner.GetUID(),
		},
		Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: message,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	_, err := c.client.CoreV1().Events(owner.GetNamespace()).Create(ctx, event, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// isReady reports whether the pod's Ready condition is true.
func isReady(pod *corev1.Pod) bool {
	condition := findCondition(pod.Status.Conditions, corev1.PodReady)
	return condition != nil && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
}

// isTerminal reports whether the pod has failed or succeeded.
func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
