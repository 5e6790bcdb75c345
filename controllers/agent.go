// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// oldestAgentJava is the Java version that the agent's classes are compiled for.
const oldestAgentJava = 11

// agentConfigMapFor returns the name of the ConfigMap of the agent for new pods; empty if they get no agent. The name contains a hash of the
// jar, so another jar has another name.
func (r *StreamAppReconciler) agentConfigMapFor(app *v1alpha1.StreamApp) string {
	version := app.Spec.JVM.Version
	tooOld := version != 0 && version < oldestAgentJava
	if len(r.AgentJar) == 0 || tooOld {
		return ""
	}
	sum := sha256.Sum256(r.AgentJar)
	return fmt.Sprintf("%s%s-%x", v1alpha1.AgentConfigMapPrefix, app.Name, sum[:5])
}

// agentConfigMaps lists the ConfigMaps with agents of a StreamApp, of any version and without their content.
func (r *StreamAppReconciler) agentConfigMaps(ctx context.Context, key client.ObjectKey) ([]corev1.ConfigMap, error) {
	var all corev1.ConfigMapList
	if err := r.List(ctx, &all, client.InNamespace(key.Namespace), client.MatchingLabels{labelManagedBy: managedBy, labelStreamApp: key.Name}, anyVersion); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps of the agent: %w", err)
	}
	var agents []corev1.ConfigMap
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, v1alpha1.AgentConfigMapPrefix) {
			agents = append(agents, all.Items[i])
		}
	}
	return agents, nil
}

// findConfigMap returns the ConfigMap with this name; nil if there is none.
func findConfigMap(configMaps []corev1.ConfigMap, name string) *corev1.ConfigMap {
	for i := range configMaps {
		if configMaps[i].Name == name {
			return &configMaps[i]
		}
	}
	return nil
}

// applyAgent ensures that the ConfigMap with the agent contains the operator's own jar before the injection names it. A ConfigMap that is named
// already was read then, and is immutable. If it has other content, the injection keeps the agent that it has.
func (r *StreamAppReconciler) applyAgent(ctx context.Context, d *decision.Decision, agents []corev1.ConfigMap, outcome *decision.Outcome) error {
	name := d.Injection.AgentConfigMap
	if name == "" {
		return nil
	}
	found := findConfigMap(agents, name)
	injected := d.Facts.Injection != nil && d.Facts.Injection.Spec.AgentConfigMap == name
	needed := found != nil && ownedBy(found, d.Facts.Workload.UID) && found.Annotations[annotationUnused] == ""
	if injected && needed {
		return nil
	}
	namespace := d.Facts.App.Namespace
	stored, err := r.storedAgent(ctx, namespace, name)
	if err != nil {
		return err
	}
	if stored == nil || r.containsAgent(stored) {
		log.FromContext(ctx).V(1).Info("Writing agent", "configMap", name)
		if err := r.writeAgent(ctx, d, name, found); err != nil {
			return err
		}
		if stored, err = r.storedAgent(ctx, namespace, name); err != nil {
			return err
		}
	}
	if stored != nil && r.containsAgent(stored) && stored.Immutable != nil && *stored.Immutable {
		return nil
	}
	outcome.AgentNotInjected = decision.Problem{Reason: v1alpha1.ReasonConflict, Message: decision.AgentConflictText(name)}
	outcome.Recheck(decision.RefusalRetry)
	d.Injection.AgentConfigMap = ""
	if current := d.Facts.Injection; current != nil && !injected && findConfigMap(agents, current.Spec.AgentConfigMap) != nil {
		d.Injection.AgentConfigMap = current.Spec.AgentConfigMap
	}
	return nil
}

func (r *StreamAppReconciler) containsAgent(configMap *corev1.ConfigMap) bool {
	return bytes.Equal(configMap.BinaryData[v1alpha1.AgentJarKey], r.AgentJar)
}

// storedAgent reads a ConfigMap at the source, jar included; nil if it does not exist.
func (r *StreamAppReconciler) storedAgent(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	stored := &corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, stored)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing ConfigMap is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent back from ConfigMap %s: %w", name, err)
	}
	return stored, nil
}

// writeAgent writes the ConfigMap with the agent. Like the plan it belongs to the workload. found is the ConfigMap as the cache has it; nil if
// it does not exist.
func (r *StreamAppReconciler) writeAgent(ctx context.Context, d *decision.Decision, name string, found *corev1.ConfigMap) error {
	intent := configMapIntent(d, name).WithImmutable(true).WithBinaryData(map[string][]byte{v1alpha1.AgentJarKey: r.AgentJar})
	if err := r.Apply(ctx, intent, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the agent to ConfigMap %s: %w", name, err)
	}
	if found == nil || found.Annotations[annotationUnused] == "" {
		return nil
	}
	return r.markNeeded(ctx, found)
}

// removeAgents removes agents that are no longer needed, such as those of older operators, once no pod mounts them. It returns the time after
// which to look again; 0 for never.
func (r *StreamAppReconciler) removeAgents(ctx context.Context, agents []corev1.ConfigMap, keep string, now time.Time) (time.Duration, error) {
	var again time.Duration
	var errs []error
	for i := range agents {
		if agents[i].Name == keep {
			continue
		}
		after, err := r.removeUnused(ctx, &agents[i], now)
		errs = append(errs, err)
		again = decision.Earliest(again, after)
	}
	return again, utilerrors.NewAggregate(errs)
}
