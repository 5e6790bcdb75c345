// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

const (
	// FieldOwner is the field manager of everything that the operator applies. GitOps tools may name it in their ignore rules,
	// so it is part of the interface.
	FieldOwner = "streamweir"

	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "streamweir"
	// labelStreamApp on a ConfigMap is the name of its StreamApp.
	labelStreamApp = "streamweir.dev/streamapp"

	annotationPrefix = "streamweir.dev/"
	// annotationUnused on a ConfigMap is the time (RFC 3339) since which it is unneeded.
	annotationUnused = "streamweir.dev/unused-since"
)
