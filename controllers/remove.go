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
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// unneededFor is how long an unneeded ConfigMap stays: a restarting kubelet, or a pod in creation, still finds it.
const unneededFor = time.Hour

// remove removes the objects of a StreamApp that wants none: the injection at once, so that no new pod gets the plan; plan and agents after
// unneededFor.
func (r *StreamAppReconciler) remove(ctx context.Context, d *decision.Decision, agents []corev1.ConfigMap, outcome *decision.Outcome) error {
	if injection := d.Facts.Injection; injection != nil {
		log.FromContext(ctx).V(1).Info("Removing injection", "podInjection", injection.Name)
		if err := r.Delete(ctx, injection); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing PodInjection %s: %w", injection.Name, err)
		}
		outcome.Removed = true
	}
	again, err := r.removeConfigMaps(ctx, agents, d.Facts.PlanConfigMap, d.Facts.Now)
	outcome.RecheckAfter = again
	return err
}

// removeOrphan removes the objects of a StreamApp that is gone. The garbage collector removes the injection as well; this is for clusters in
// which it is late.
func (r *StreamAppReconciler) removeOrphan(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	var injection v1alpha1.PodInjection
	if err := r.Get(ctx, key, &injection); client.IgnoreNotFound(err) != nil {
		return 0, err
	} else if err == nil {
		if err := r.Delete(ctx, &injection, client.Preconditions{UID: &injection.UID}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("removing PodInjection %s of a deleted StreamApp: %w", key.Name, err)
		}
	}
	agents, err := r.agentConfigMaps(ctx, key)
	if err != nil {
		return 0, err
	}
	var plan *corev1.ConfigMap
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: decision.PlanConfigMapName(key.Name)}, &configMap); client.IgnoreNotFound(err) != nil {
		return 0, err
	} else if err == nil {
		plan = &configMap
	}
	return r.removeConfigMaps(ctx, agents, plan, r.Clock.Now())
}

// removeConfigMaps removes agents and plan, which may be nil. It returns the time after which to look again; 0 for never.
func (r *StreamAppReconciler) removeConfigMaps(ctx context.Context, agents []corev1.ConfigMap, plan *corev1.ConfigMap, now time.Time) (time.Duration, error) {
	again, err := r.removeAgents(ctx, agents, "", now)
	if plan == nil {
		return again, err
	}
	after, planErr := r.removeUnused(ctx, plan, now)
	return decision.Earliest(again, after), utilerrors.NewAggregate([]error{err, planErr})
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
