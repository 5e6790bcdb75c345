// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// oldestAgentJava is the Java that the agent's classes are compiled for.
const oldestAgentJava = 11

// observeAgent finds out which agent new pods are to get, and which ConfigMaps with agents there are.
func (r *StreamAppReconciler) observeAgent(ctx context.Context, obs *observation) error {
	if version := obs.app.Spec.JVM.Version; len(r.AgentJar) > 0 && (version == 0 || version >= oldestAgentJava) {
		obs.agentName = agentConfigMapName(obs.app.Name, r.AgentJar)
	}
	maps, err := r.agentMaps(ctx, client.ObjectKeyFromObject(obs.app))
	obs.agentMaps = maps
	return err
}

// agentMaps lists the ConfigMaps with agents of a StreamApp, without their content.
func (r *StreamAppReconciler) agentMaps(ctx context.Context, key client.ObjectKey) ([]corev1.ConfigMap, error) {
	var all corev1.ConfigMapList
	if err := r.List(ctx, &all, client.InNamespace(key.Namespace), client.MatchingLabels{labelManagedBy: managedBy, labelStreamApp: key.Name}); err != nil {
		return nil, err
	}
	var maps []corev1.ConfigMap
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, v1alpha1.ConfigMapPrefix+"agent-") {
			maps = append(maps, all.Items[i])
		}
	}
	return maps, nil
}

// agentMap is the ConfigMap of this name, nil if there is none.
func (o *observation) agentMap(name string) *corev1.ConfigMap {
	for i := range o.agentMaps {
		if o.agentMaps[i].Name == name {
			return &o.agentMaps[i]
		}
	}
	return nil
}

// applyAgent sees to it that the ConfigMap which the injection is to name holds the operator's own jar, before it is named. What is named
// already was read then, and cannot be changed. If something else is there, the injection keeps the agent that it has.
func (r *StreamAppReconciler) applyAgent(ctx context.Context, obs *observation, want *desired, done *applied) error {
	name := want.injection.AgentConfigMap
	if name == "" {
		return nil
	}
	found := obs.agentMap(name)
	inForce := obs.injection != nil && obs.injection.Spec.AgentConfigMap == name
	if inForce && found != nil && ownedBy(found, obs.workload.uid) && found.Annotations[annotationUnused] == "" {
		return nil
	}
	stored, err := r.storedAgent(ctx, obs, name)
	if err != nil {
		return err
	}
	if stored == nil || bytes.Equal(stored.BinaryData[v1alpha1.AgentJarKey], r.AgentJar) {
		log.FromContext(ctx).V(1).Info("Writing agent", "configMap", name)
		if err := r.writeAgent(ctx, obs, name); err != nil {
			return err
		}
		if stored, err = r.storedAgent(ctx, obs, name); err != nil {
			return err
		}
	}
	if stored == nil || !bytes.Equal(stored.BinaryData[v1alpha1.AgentJarKey], r.AgentJar) || stored.Immutable == nil || !*stored.Immutable {
		done.agent = fault{v1alpha1.ReasonConflict, fmt.Sprintf(
			"ConfigMap %s does not hold the agent of this operator: someone else has written it, so it is not used; delete it", name)}
		want.injection.AgentConfigMap = ""
		if obs.injection != nil && obs.agentMap(obs.injection.Spec.AgentConfigMap) != nil && !inForce {
			want.injection.AgentConfigMap = obs.injection.Spec.AgentConfigMap
		}
		done.recheck(refusalRetry)
	}
	return nil
}

// storedAgent reads a ConfigMap at the source, jar included; nil if it is not there.
func (r *StreamAppReconciler) storedAgent(ctx context.Context, obs *observation, name string) (*corev1.ConfigMap, error) {
	stored := &corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: obs.app.Namespace, Name: name}, stored)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent back from ConfigMap %s: %w", name, err)
	}
	return stored, nil
}

// writeAgent writes the agent's ConfigMap. As the plan's it belongs to the workload.
func (r *StreamAppReconciler) writeAgent(ctx context.Context, obs *observation, name string) error {
	intent := corev1ac.ConfigMap(name, obs.app.Namespace).
		WithLabels(map[string]string{labelManagedBy: managedBy, labelStreamApp: obs.app.Name}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("apps/v1").WithKind(string(obs.workload.kind)).
			WithName(obs.workload.name).WithUID(obs.workload.uid)).
		WithImmutable(true).
		WithBinaryData(map[string][]byte{v1alpha1.AgentJarKey: r.AgentJar})
	if err := r.Apply(ctx, intent, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the agent to ConfigMap %s: %w", name, err)
	}
	found := obs.agentMap(name)
	if found == nil || found.Annotations[annotationUnused] == "" {
		return nil
	}
	return r.noteNeeded(ctx, found)
}

// removeAgents removes agents that are not wanted any more, such as those of older operators, once no pod mounts them. It returns when to
// look again.
func (r *StreamAppReconciler) removeAgents(ctx context.Context, maps []corev1.ConfigMap, keep string, now time.Time) (time.Duration, error) {
	var again time.Duration
	for i := range maps {
		if maps[i].Name == keep {
			continue
		}
		after, err := r.removeUnused(ctx, &maps[i], now)
		if err != nil {
			return 0, err
		}
		again = earliest(again, after)
	}
	return again, nil
}
