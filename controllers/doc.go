// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers reconciles StreamApps. One pass has three movements, each in files of its own:
//
//   - gather: observe.go reads everything a pass needs into one value, workload.go and pod.go turn Kubernetes objects into
//     plain facts;
//   - decide: losses.go counts the pods that are lost, convert.go asks the planner, desired.go says which objects and which
//     limits should be there, conditions.go what there is to tell. All of it is pure;
//   - act: apply.go and resize.go write what differs, status.go writes the status once, events.go tells after the write.
//
// No pass relies on what an earlier one remembered: what must outlive a pass (since when pods are missing, what was withdrawn
// and why) stands in the status of the StreamApp or on the object that it is about. Refused resizes alone are kept in memory, and are
// asked for once more after a restart.
package controllers
