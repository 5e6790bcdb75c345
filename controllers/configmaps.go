// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/controllers/decision"
)

// unneededFor is how long an unneeded ConfigMap stays: a restarting kubelet, or a pod in creation, still finds it.
const unneededFor = time.Hour

// configMapIntent returns a ConfigMap that belongs to the workload.
func configMapIntent(d *decision.Decision, name string) *corev1ac.ConfigMapApplyConfiguration {
	workload := d.Facts.Workload
	return corev1ac.ConfigMap(name, d.Facts.App.Namespace).
		WithLabels(map[string]string{labelManagedBy: managedBy, labelStreamApp: d.Facts.App.Name}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("apps/v1").WithKind(string(workload.Kind)).WithName(workload.Name).WithUID(workload.UID))
}

// ownedBy returns whether an object has an owner with this UID.
func ownedBy(object client.Object, uid types.UID) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.UID == uid {
			return true
		}
	}
	return false
}

// markNeeded removes the annotation of an unneeded ConfigMap.
func (r *StreamAppReconciler) markNeeded(ctx context.Context, configMap *corev1.ConfigMap) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotationUnused)
	if err := r.Patch(ctx, configMap.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("marking ConfigMap %s as needed: %w", configMap.Name, err)
	}
	return nil
}

// removeUnused notes the time since which a ConfigMap is unneeded, and deletes it after unneededFor if a live list shows no pod that mounts it. It
// returns the time after which to look again; 0 for never.
func (r *StreamAppReconciler) removeUnused(ctx context.Context, configMap *corev1.ConfigMap, now time.Time) (time.Duration, error) {
	since, err := time.Parse(time.RFC3339, configMap.Annotations[annotationUnused])
	if err != nil {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotationUnused, now.UTC().Format(time.RFC3339))
		err := r.Patch(ctx, configMap.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(FieldOwner))
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("marking ConfigMap %s as unneeded: %w", configMap.Name, err)
		}
		return unneededFor, nil
	}
	if wait := unneededFor - now.Sub(since); wait > 0 {
		return wait, nil
	}
	var pods corev1.PodList
	if err := r.APIReader.List(ctx, &pods, client.InNamespace(configMap.Namespace)); err != nil {
		return 0, fmt.Errorf("listing the pods that mount ConfigMap %s: %w", configMap.Name, err)
	}
	if slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return mounts(&p, configMap.Name) }) {
		return unneededFor, nil
	}
	log.FromContext(ctx).V(1).Info("Removing ConfigMap that no pod mounts", "configMap", configMap.Name)
	if err := r.Delete(ctx, configMap, client.Preconditions{UID: &configMap.UID}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("removing ConfigMap %s: %w", configMap.Name, err)
	}
	return 0, nil
}

func mounts(pod *corev1.Pod, configMap string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == configMap })
}
