// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif answers questions about an application without changing anything: does it fit, and would it fit if pods failed or numbers were
// different. A question is turned into a [decision.World] with the change applied, and decided like any other. A diff decides with the mode of
// the StreamApp, or another one, and compares the result with the stored objects.
package whatif
