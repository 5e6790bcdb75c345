// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	apiac "streamweir.dev/streamweir/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// apply writes the differences, in an order in which each write is safe if the next one never happens: the agent and the plan first, both read
// back; then the injection naming them; then the limits of running pods; and last the refreshes that make the kubelet load the
// plan.
func (r *StreamAppReconciler) apply(ctx context.Context, d *decision.Decision) (*decision.Outcome, error) {
	outcome := &decision.Outcome{}
	for _, refused := range d.Refused {
		outcome.Refuse(refused, d.Facts.Now)
	}
	if d.Frozen.Found() {
		if d.Injection == nil {
			return outcome, nil
		}
		return outcome, r.applyInjection(ctx, d)
	}
	if d.Injection == nil {
		return outcome, r.remove(ctx, d, outcome)
	}
	if err := r.applyAgent(ctx, d, outcome); err != nil {
		return outcome, err
	}
	if err := r.applyPlan(ctx, d, outcome); err != nil {
		return outcome, err
	}
	if err := r.applyInjection(ctx, d); err != nil {
		return outcome, err
	}
	resizeErr := r.applyResizes(ctx, d, outcome)
	refreshErr := r.refresh(ctx, d) // the published plan is safe for every limit, raised or not
	return outcome, utilerrors.NewAggregate([]error{resizeErr, refreshErr})
}

// applyPlan writes the plan's ConfigMap. Pods mount it, and must find it for as long as the workload or the StreamApp exists.
func (r *StreamAppReconciler) applyPlan(ctx context.Context, d *decision.Decision, outcome *decision.Outcome) error {
	name := decision.PlanConfigMapName(d.Facts.App.Name)
	found := d.Facts.PlanConfigMap
	wasUnneeded := found != nil && unneeded(found)
	files, err := r.withToken(ctx, d, found)
	if err != nil {
		return err
	}
	memory := d.MemoryText()
	published := found != nil && maps.Equal(found.Data, files) && hasOwners(found, d) && !wasUnneeded
	if published && (d.ReplacedSoon || found.Annotations[decision.AnnotationMemory] == memory) {
		return nil
	}
	log.FromContext(ctx).V(1).Info("Publishing plan", "configMap", name, "revision", d.Revision)
	intent := configMapIntent(d, name).WithData(files).WithAnnotations(map[string]string{decision.AnnotationMemory: memory})
	if err := r.Apply(ctx, intent, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the plan to ConfigMap %s: %w", name, err)
	}
	if wasUnneeded {
		if err := r.markNeeded(ctx, found); err != nil {
			return err
		}
	}
	var stored corev1.ConfigMap
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: d.Facts.App.Namespace, Name: name}, &stored); err != nil {
		return fmt.Errorf("reading the plan back from ConfigMap %s: %w", name, err)
	}
	if !maps.Equal(stored.Data, files) {
		return fmt.Errorf("ConfigMap %s does not contain the written plan: another client writes it", name)
	}
	outcome.Published = !published // else only the memory has changed
	return nil
}

// withToken returns the files of the plan with the token of its ConfigMap. A ConfigMap that is not in the cache is read at the source: a pass
// right after the one that created it must keep its token.
func (r *StreamAppReconciler) withToken(ctx context.Context, d *decision.Decision, cached *corev1.ConfigMap) (map[string]string, error) {
	if cached != nil {
		return planfile.WithToken(d.Files, cached.Data), nil
	}
	var stored corev1.ConfigMap
	key := client.ObjectKey{Namespace: d.Facts.App.Namespace, Name: decision.PlanConfigMapName(d.Facts.App.Name)}
	if err := r.APIReader.Get(ctx, key, &stored); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the token in ConfigMap %s: %w", key.Name, err)
	}
	return planfile.WithToken(d.Files, stored.Data), nil
}

// applyInjection writes the PodInjection. It has the name of the StreamApp and is deleted with it.
func (r *StreamAppReconciler) applyInjection(ctx context.Context, d *decision.Decision) error {
	app := d.Facts.App
	found := d.Facts.Injection
	withdrawal := withdrawalAnnotation(d)
	if found != nil && unneeded(found) {
		if err := r.markNeeded(ctx, found); err != nil {
			return err
		}
	}
	if found != nil && equality.Semantic.DeepEqual(found.Spec, *d.Injection) && ownedBy(found, app.UID) &&
		found.Annotations[decision.AnnotationWithdrawal] == withdrawal {
		return nil
	}
	intent := apiac.PodInjection(app.Name, app.Namespace).
		WithLabels(map[string]string{labelManagedBy: managedBy}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("StreamApp").
			WithName(app.Name).WithUID(app.UID).WithController(true)).
		WithSpec(injectionIntent(d.Injection))
	if withdrawal != "" {
		intent.WithAnnotations(map[string]string{decision.AnnotationWithdrawal: withdrawal})
	}
	if err := r.Apply(ctx, intent, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing PodInjection %s: %w", app.Name, err)
	}
	return nil
}

func withdrawalAnnotation(d *decision.Decision) string {
	if d.Memory.Withdrawal == nil {
		return ""
	}
	return d.Memory.Withdrawal.String()
}

func injectionIntent(spec *v1alpha1.PodInjectionSpec) *apiac.PodInjectionSpecApplyConfiguration {
	intent := apiac.PodInjectionSpec().
		WithOwner(apiac.WorkloadOwner().WithKind(spec.Owner.Kind).WithName(spec.Owner.Name)).
		WithContainer(spec.Container).WithOptionsVariable(spec.OptionsVariable).WithOptions(spec.Options).
		WithPlanConfigMap(spec.PlanConfigMap).WithPlanRevision(spec.PlanRevision)
	if spec.OwnOptions != nil {
		intent.WithOwnOptions(*spec.OwnOptions)
	}
	if spec.AgentConfigMap != "" {
		intent.WithAgentConfigMap(spec.AgentConfigMap)
	}
	intent.WithExcludedImages(spec.ExcludedImages...)
	if m := spec.Memory; m.Limit != nil {
		memory := apiac.InjectedMemory().WithForLimit(*m.ForLimit).WithLimit(*m.Limit)
		if m.ForImage != "" {
			memory.WithForImage(m.ForImage)
		}
		if m.Request != nil {
			memory.WithRequest(*m.Request)
		}
		intent.WithMemory(memory)
	}
	return intent
}

// refresh changes annotations of the pods that have not been notified of the published plan, or have not loaded it since. The kubelet then
// updates the mounted ConfigMap at once (measured: within 0.2 s, up to 85 s without). An error of one pod does not affect the others.
func (r *StreamAppReconciler) refresh(ctx context.Context, d *decision.Decision) error {
	results := make([]error, len(d.Refreshes))
	leftErr := r.eachPod(ctx, len(d.Refreshes), func(i int) { results[i] = r.refreshPod(ctx, d, d.Refreshes[i]) })
	return utilerrors.NewAggregate(append(results, leftErr))
}

// refreshPod changes the annotations of one pod. A pod that is gone needs none.
func (r *StreamAppReconciler) refreshPod(ctx context.Context, d *decision.Decision, refresh decision.PodRefresh) error {
	pod := &corev1.Pod{}
	pod.Namespace = d.Facts.App.Namespace
	pod.Name = refresh.Pod
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%q}}}`, v1alpha1.PublishedAnnotation, d.Revision,
		decision.AnnotationRefresh, refresh.String())
	err := r.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("notifying pod %s of the plan: %w", refresh.Pod, err)
	}
	return nil
}
