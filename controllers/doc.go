// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers reconciles StreamApps. It reads and writes; package decision decides. One pass has three steps:
//
//   - gather.go reads everything that a pass needs into a [decision.World];
//   - [decision.Decide] decides;
//   - apply.go, agent.go, resize.go and remove.go write the differences, status.go writes the status once and then sends an event.
//
// A pass does not depend on an earlier one, except for [decision.Memory], which is stored in the status and in annotations.
package controllers
