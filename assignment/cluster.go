// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Cluster is the client of one Kafka cluster. It implements [Describer].
type Cluster struct {
	config ClusterConfig
	client *kgo.Client
}

// NewCluster makes a client. It connects when first used. A file of the configuration that cannot be read is an
// [*Error].
func NewCluster(config ClusterConfig) (*Cluster, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(config.BootstrapServers...))
	if err != nil {
		return nil, clusterError(err)
	}
	return &Cluster{config: config, client: client}, nil
}

// Close ends all connections.
func (c *Cluster) Close() { c.client.Close() }

// Describe implements [Describer].
func (c *Cluster) Describe(ctx context.Context, groups []string) map[string]Result {
	return resultsOf(groups, clusterError(c.client.Ping(ctx)))
}

// clusterError makes an error that concerns the whole cluster.
func clusterError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: classify(err), Err: err}
}
