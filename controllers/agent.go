// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// agentConfigMapFor returns the name of the ConfigMap of the agent for new pods; empty if they get no agent. All StreamApps of a namespace share
// it. The name contains a hash of the jar, so another jar has another name.
func (r *StreamAppReconciler) agentConfigMapFor(app *v1alpha1.StreamApp) string {
	if len(r.AgentJar) == 0 || !decision.RunsAgent(app) {
		return ""
	}
	sum := sha256.Sum256(r.AgentJar)
	return fmt.Sprintf("%s%x", v1alpha1.AgentConfigMapPrefix, sum[:5])
}

// isAgent returns whether an object is a ConfigMap of the agent, of any version.
func isAgent(object client.Object) bool {
	return strings.HasPrefix(object.GetName(), v1alpha1.AgentConfigMapPrefix)
}

// applyAgent ensures that the ConfigMap with the agent contains the operator's own jar before the injection names it. A ConfigMap that is named
// already was read then, and is immutable. If it has other content, the injection keeps the agent that it has.
func (r *StreamAppReconciler) applyAgent(ctx context.Context, d *decision.Decision, outcome *decision.Outcome) error {
	name := d.Injection.AgentConfigMap
	if name == "" {
		return nil
	}
	namespace := d.Facts.App.Namespace
	current := ""
	if d.Facts.Injection != nil {
		current = d.Facts.Injection.Spec.AgentConfigMap
	}
	if current == name {
		var cached corev1.ConfigMap
		err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &cached)
		if client.IgnoreNotFound(err) != nil || (err == nil && !unneeded(&cached)) {
			return err
		}
	}
	verified, err := r.ensureAgent(ctx, namespace, name)
	if verified || err != nil {
		return err
	}
	outcome.AgentNotInjected = decision.Problem{Reason: v1alpha1.ReasonConflict, Message: decision.AgentConflictText(name)}
	outcome.Recheck(decision.RefusalRetry)
	d.Injection.AgentConfigMap = ""
	if current != name && current != "" {
		older, err := r.storedAgent(ctx, namespace, current)
		if err != nil {
			return err
		}
		if older != nil {
			d.Injection.AgentConfigMap = current
		}
	}
	return nil
}

// ensureAgent writes the ConfigMap with the agent if it is missing or incomplete, and returns whether it has the operator's own jar. Several
// StreamApps may write it at the same time: all write the same. The mark of an unneeded ConfigMap is removed here, before an injection names
// it: its deletion, which requires the version with the mark, then fails.
func (r *StreamAppReconciler) ensureAgent(ctx context.Context, namespace, name string) (bool, error) {
	stored, err := r.storedAgent(ctx, namespace, name)
	if err != nil {
		return false, err
	}
	if stored != nil && !r.containsAgent(stored) {
		return false, nil
	}
	if !complete(stored) {
		log.FromContext(ctx).V(1).Info("Writing agent", "configMap", name)
		intent := corev1ac.ConfigMap(name, namespace).WithLabels(map[string]string{labelManagedBy: managedBy}).
			WithImmutable(true).WithBinaryData(map[string][]byte{v1alpha1.AgentJarKey: r.AgentJar})
		if err := r.Apply(ctx, intent, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
			return false, fmt.Errorf("writing the agent to ConfigMap %s: %w", name, err)
		}
		if stored, err = r.storedAgent(ctx, namespace, name); err != nil {
			return false, err
		}
	}
	if !complete(stored) || !r.containsAgent(stored) {
		return false, nil
	}
	if unneeded(stored) {
		return true, r.markNeeded(ctx, stored)
	}
	return true, nil
}

// complete returns whether a ConfigMap of the agent is immutable and in the cache of the operator.
func complete(stored *corev1.ConfigMap) bool {
	return stored != nil && stored.Immutable != nil && *stored.Immutable && stored.Labels[labelManagedBy] == managedBy
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
