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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// unneededFor is how long a ConfigMap of ours stays after nothing needs it any more, so that a kubelet that restarts, or a pod that is
// just being created, still finds it.
const unneededFor = time.Hour

// remove takes back what was written for a StreamApp that wants nothing (any more): the injection at once, so that no new pod gets the
// plan, and plan and agents themselves when they have been unneeded for unneededFor.
func (r *StreamAppReconciler) remove(ctx context.Context, obs *observation, done *applied) error {
	if obs.injection != nil {
		log.FromContext(ctx).V(1).Info("Removing injection", "podInjection", obs.injection.Name)
		if err := r.Delete(ctx, obs.injection); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing PodInjection %s: %w", obs.injection.Name, err)
		}
		done.removed = true
	}
	again, err := r.removeAgents(ctx, obs.agentMaps, "", obs.now)
	if err == nil && obs.planConfigMap != nil {
		var after time.Duration
		after, err = r.removeUnused(ctx, obs.planConfigMap, obs.now)
		again = earliest(again, after)
	}
	done.recheckAfter = again
	return err
}

// removeOrphan is remove for a StreamApp that is gone. The garbage collector removes the injection as well; this is for clusters in
// which it is late.
func (r *StreamAppReconciler) removeOrphan(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	var injection v1alpha1.PodInjection
	if err := r.Get(ctx, key, &injection); client.IgnoreNotFound(err) != nil {
		return 0, err
	} else if err == nil {
		if err := r.Delete(ctx, &injection, client.Preconditions{UID: &injection.UID}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("removing PodInjection %s of a StreamApp that is gone: %w", key.Name, err)
		}
	}
	agents, err := r.agentMaps(ctx, key)
	if err != nil {
		return 0, err
	}
	again, err := r.removeAgents(ctx, agents, "", r.Clock.Now())
	if err != nil {
		return 0, err
	}
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: planConfigMapName(key.Name)}, &configMap); err != nil {
		return again, client.IgnoreNotFound(err)
	}
	after, err := r.removeUnused(ctx, &configMap, r.Clock.Now())
	return earliest(again, after), err
}

// removeUnused notes since when a ConfigMap is not needed, and deletes it when that is long enough ago and a live list shows no pod that
// mounts it. It returns when to look again.
func (r *StreamAppReconciler) removeUnused(ctx context.Context, configMap *corev1.ConfigMap, now time.Time) (time.Duration, error) {
	since, err := time.Parse(time.RFC3339, configMap.Annotations[annotationUnused])
	if err != nil {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotationUnused, now.UTC().Format(time.RFC3339))
		err := r.Patch(ctx, configMap.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(FieldOwner))
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("noting that ConfigMap %s is not needed: %w", configMap.Name, err)
		}
		return unneededFor, nil
	}
	if wait := unneededFor - now.Sub(since); wait > 0 {
		return wait, nil
	}
	var pods corev1.PodList
	if err := r.APIReader.List(ctx, &pods, client.InNamespace(configMap.Namespace)); err != nil {
		return 0, fmt.Errorf("looking for pods that mount ConfigMap %s: %w", configMap.Name, err)
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
