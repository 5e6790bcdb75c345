// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reportclient reads the reports of the agents in pods over HTTP.
//
// Each pod has a long poll, a request that the agent answers at the next change, so that a rebalance arrives at once. Pods beyond a limit
// are polled at a fixed interval instead.
package reportclient
