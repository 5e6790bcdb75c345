// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"crypto/sha256"
	"fmt"

	"streamweir.dev/streamweir/api/v1alpha1"
)

const (
	// FieldOwner is the field manager of everything that the operator applies. GitOps tools may name it in their ignore rules,
	// so it is part of the interface.
	FieldOwner = "streamweir"

	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "streamweir"
	// labelStreamApp on a ConfigMap names the StreamApp that it was written for.
	labelStreamApp = "streamweir.dev/streamapp"

	annotationPrefix = "streamweir.dev/"
	// annotationUnused on a ConfigMap is the time (RFC 3339) since when nothing needs it.
	annotationUnused = "streamweir.dev/unused-since"
	// annotationTouched on a pod says how often it was touched for the plan that it was told of last, and when: COUNT TIME, in
	// RFC 3339.
	annotationTouched = "streamweir.dev/touched"
	// annotationWithdrawn on a PodInjection is the limit that had to be withdrawn, since pods could not be created or placed
	// with it, the template limit that it was for, and when: LIMIT for FORLIMIT since TIME, in bytes and RFC 3339.
	annotationWithdrawn = "streamweir.dev/memory-withdrawn"
)

// agentConfigMapName is the ConfigMap that holds a jar for a StreamApp. The name tells the content: another jar has another.
func agentConfigMapName(app string, jar []byte) string {
	sum := sha256.Sum256(jar)
	return fmt.Sprintf("%sagent-%s-%x", v1alpha1.ConfigMapPrefix, app, sum[:5])
}

// planConfigMapName is the ConfigMap that holds the plan of a StreamApp.
func planConfigMapName(app string) string { return v1alpha1.ConfigMapPrefix + "plan-" + app }
