// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/operatorconfig"
)

// Poller reads a source in the background. Its keys are the names of StreamApps.
type Poller[Target, State any] interface {
	// Track replaces the target of a key.
	Track(key string, target Target)
	// Forget drops a key and its state.
	Forget(key string)
	// Latest returns the latest state of the target of a key.
	Latest(key string) State
	// Changes returns the channel of the keys whose state has changed.
	Changes() <-chan string
}

// Groups polls Kafka groups. [assignment.Monitor] implements it.
type Groups interface {
	Poller[assignment.Ref, assignment.Observation]
	// Cluster returns a configured cluster by name.
	Cluster(name string) (assignment.ClusterConfig, bool)
	// Hurry polls the group of a key quickly for a while.
	Hurry(key string)
}

// Configuration is the configuration of the operator. [operatorconfig.File] implements it.
type Configuration interface {
	// Current returns the active configuration.
	Current() operatorconfig.Config
	// Fault returns the fault of the file, nil if the active configuration is that of the file.
	Fault() error
	// Changes delivers after each change.
	Changes() <-chan struct{}
}

// Reports polls the agents in pods. Its state is the latest report of each pod by UID. [reportclient.Client] implements it.
type Reports interface {
	Poller[[]reportclient.Endpoint, map[string]report.PodReport]
}
