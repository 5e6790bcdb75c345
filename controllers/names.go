// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "streamweir.dev/streamweir/api/v1alpha1"

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
	// annotationWithdrawn on a PodInjection is the limit that had to be withdrawn, since pods could not be created or placed
	// with it, the template limit that it was for, and when: LIMIT for FORLIMIT since TIME, in bytes and RFC 3339.
	annotationWithdrawn = "streamweir.dev/memory-withdrawn"

	// planPropertiesKey is the key of the plan ConfigMap that holds what is read inside the JVM, in the first schema.
	planPropertiesKey = "plan.v1.properties"
)

// planConfigMapName is the ConfigMap that holds the plan of a StreamApp.
func planConfigMapName(app string) string { return v1alpha1.ConfigMapPrefix + "plan-" + app }
