// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatorconfig reads the configuration file of the operator, and reads it again when it changes.
package operatorconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/assignment"
)

// Config is the configuration of the operator.
type Config struct {
	// Hold is the reason for which all applications are held as they are; empty if they are not.
	Hold string
	// Clusters are the Kafka clusters that StreamApps may name.
	Clusters []assignment.ClusterConfig
}

// Load reads a configuration file.
func Load(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	return Parse(data)
}

// readOptional reads a file. A missing file is empty: the file in the operator's Deployment is optional.
func readOptional(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Parse parses a configuration: YAML or JSON with the keys hold and clusters. Unknown keys are errors. The error lists all faults of the
// clusters.
func Parse(data []byte) (Config, error) {
	var file struct {
		Hold     string            `json:"hold"`
		Clusters []json.RawMessage `json:"clusters"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return Config{}, fmt.Errorf("must be YAML with the keys hold and clusters: %w", err)
	}
	if file.Hold == noReason {
		return Config{}, errors.New("hold must be a reason: remove the key to hold nothing")
	}
	clusters, err := assignment.ParseClusters(file.Clusters)
	if err != nil {
		return Config{}, err
	}
	return Config{Hold: file.Hold, Clusters: clusters}, nil
}

// noReason is a value of hold that is neither a reason nor a hold that was meant.
const noReason = "false"

// holdOf returns the value of hold in a file with faults elsewhere; empty if it cannot be read.
func holdOf(data []byte) string {
	var file struct {
		Hold string `json:"hold"`
	}
	if yaml.Unmarshal(data, &file) != nil || file.Hold == noReason {
		return ""
	}
	return file.Hold
}
