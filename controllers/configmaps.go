// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/tracker"
)

// unneededFor is how long an unneeded object stays. A restarting kubelet, or a pod in creation, still finds an unneeded ConfigMap, and a
// workload that is created again still finds its injection.
const unneededFor = time.Hour

// configMapIntent returns a ConfigMap with two owners, the workload and the StreamApp: either may be deleted and created again without it.
// Neither is its controller. It is garbage once both are gone.
func configMapIntent(d *decision.Decision, name string) *corev1ac.ConfigMapApplyConfiguration {
	app, workload := d.Facts.App, d.Facts.Workload
	owner := metav1ac.OwnerReference
	return corev1ac.ConfigMap(name, app.Namespace).
		WithLabels(map[string]string{labelManagedBy: managedBy, labelStreamApp: app.Name}).
		WithOwnerReferences(
			owner().WithAPIVersion("apps/v1").WithKind(string(workload.Kind)).WithName(workload.Name).WithUID(workload.UID),
			owner().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("StreamApp").WithName(app.Name).WithUID(app.UID))
}

// hasOwners returns whether an object has the owners of [configMapIntent].
func hasOwners(object client.Object, d *decision.Decision) bool {
	return ownedBy(object, d.Facts.Workload.UID) && ownedBy(object, d.Facts.App.UID)
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

// unneeded returns whether an object is marked as unneeded.
func unneeded(object client.Object) bool { return object.GetAnnotations()[annotationUnused] != "" }

// markNeeded removes the annotation of an unneeded object.
func (r *StreamAppReconciler) markNeeded(ctx context.Context, object client.Object) error {
	if err := r.annotateUnused(ctx, object, "null"); err != nil {
		return fmt.Errorf("marking %s as needed: %w", object.GetName(), err)
	}
	return nil
}

// unneededLeft returns the time until an unneeded object may be deleted; 0 if it may be deleted now. The first call notes the time.
func (r *StreamAppReconciler) unneededLeft(ctx context.Context, object client.Object, now time.Time) (time.Duration, error) {
	since, err := time.Parse(time.RFC3339, object.GetAnnotations()[annotationUnused])
	if err == nil {
		return max(0, unneededFor-now.Sub(since)), nil
	}
	if err := r.annotateUnused(ctx, object, strconv.Quote(now.UTC().Format(time.RFC3339))); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("marking %s as unneeded: %w", object.GetName(), err)
	}
	return tracker.Jitter(unneededFor), nil
}

// annotateUnused sets annotationUnused to a JSON value.
func (r *StreamAppReconciler) annotateUnused(ctx context.Context, object client.Object, value string) error {
	copied, ok := object.DeepCopyObject().(client.Object) // the object is the cache's
	if !ok {
		return fmt.Errorf("%T is not an object", object)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotationUnused, value)
	return r.Patch(ctx, copied, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(FieldOwner))
}

// removeUnused deletes a ConfigMap that has been unneeded for unneededFor, if neither a pod mounts it nor a PodInjection names it as the agent.
// Both are looked up at the source before the deletion, which fails if the ConfigMap was changed since. It returns the time after which to look
// again; 0 for never.
func (r *StreamAppReconciler) removeUnused(ctx context.Context, configMap *corev1.ConfigMap, now time.Time) (time.Duration, error) {
	wait, err := r.unneededLeft(ctx, configMap, now)
	if wait > 0 || err != nil {
		return wait, err
	}
	for _, used := range []func(context.Context, *corev1.ConfigMap) (bool, error){r.mountedInCache, r.mounted, r.namedAsAgent} {
		if is, err := used(ctx, configMap); is || err != nil {
			return tracker.Jitter(unneededFor), err
		}
	}
	log.FromContext(ctx).V(1).Info("Removing ConfigMap that no pod mounts", "configMap", configMap.Name)
	unchanged := client.Preconditions{UID: &configMap.UID, ResourceVersion: &configMap.ResourceVersion}
	if err := r.Delete(ctx, configMap, unchanged); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("removing ConfigMap %s: %w", configMap.Name, err)
	}
	return 0, nil
}

// mountedInCache returns whether a pod in the cache mounts a ConfigMap, which spares the look at the source.
func (r *StreamAppReconciler) mountedInCache(ctx context.Context, configMap *corev1.ConfigMap) (bool, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(configMap.Namespace), client.MatchingFields{indexPodConfigMap: configMap.Name}, client.Limit(1))
	return len(pods.Items) > 0, err
}

// podPage is the number of pods in one response of the API server. A page of pods with two containers has about 7 MB.
const podPage = 500

// mounted returns whether a pod mounts a ConfigMap. It reads the pods of the namespace at the source, page by page.
func (r *StreamAppReconciler) mounted(ctx context.Context, configMap *corev1.ConfigMap) (bool, error) {
	mounts := func(p corev1.Pod) bool { return slices.Contains(mountedConfigMaps(&p), configMap.Name) }
	page := ""
	for {
		var pods corev1.PodList
		if err := r.APIReader.List(ctx, &pods, client.InNamespace(configMap.Namespace), client.Limit(podPage), client.Continue(page)); err != nil {
			return false, fmt.Errorf("listing the pods that mount ConfigMap %s: %w", configMap.Name, err)
		}
		if slices.ContainsFunc(pods.Items, mounts) {
			return true, nil
		}
		if page = pods.Continue; page == "" {
			return false, nil
		}
	}
}

// namedAsAgent returns whether a PodInjection names a ConfigMap as its agent, at the source.
func (r *StreamAppReconciler) namedAsAgent(ctx context.Context, configMap *corev1.ConfigMap) (bool, error) {
	if !isAgent(configMap) {
		return false, nil
	}
	return named(ctx, r.APIReader, configMap)
}

// mountedConfigMaps returns the names of the ConfigMaps that a pod mounts.
func mountedConfigMaps(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].ConfigMap; source != nil {
			names = append(names, source.Name)
		}
	}
	return names
}
