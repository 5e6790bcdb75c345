// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision decides what one pass of the reconciler changes. It is pure: it has no client, no context, no log and no clock, and the
// linter keeps it so.
//
//		World, Memory ──► Facts ──► Decision ──► (writes by controllers) ──► Outcome ──► conditions, status, events
//
//	  - [World] is everything that one pass has read. It is never changed.
//	  - [Memory] is everything that earlier passes learned and that no source shows any more.
//	  - [Facts] are derived from both: each fact of a pod, the container, the namespace and the application once, with its source.
//	  - [Decide] returns the [Decision]: the plan, the injection, the resizes, the refreshes, and the memory for the next pass.
//	  - [StatusOf] and [EventOf] describe a decision and its [Outcome].
//
// Files named resolve_*.go and planner.go are the border to memplan: only they import it. The texts of all conditions stand in messages.go.
package decision
