// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// Broker is a running Kafka broker.
type Broker struct {
	// Bootstrap is the address (host:port) for clients in the test's own process.
	Bootstrap string
	// instanceBootstrap is the address for instances, on the bridge.
	instanceBootstrap string
	network           *network
	client            *kgo.Client
}

// TopologyDescriptions is a line for StartBroker. It makes the broker store the topologies of the instances (KIP-1331; off by
// default), so that StreamsGroupDescribe 1 can return them.
const TopologyDescriptions = "group.streams.topology.description.plugin.class=" +
	"org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"

// StartBroker starts a broker with empty storage and returns when it serves. The broker ends with the test. The lines
// (key=value) are added to its configuration.
func StartBroker(tb testing.TB, lines ...string) *Broker {
	tb.Helper()
	require(tb)
	classes := classPath(tb)
	network := newNetwork(tb)
	broker, err := localkafka.StartBroker(tb.Context(), localkafka.BrokerOptions{
		Folder: tb.TempDir(), ClassPath: classes, Heap: "512m", InstanceHost: network.address(1).String(), Properties: properties(lines),
		// On a busy machine it may take a moment until the broker knows a new topic.
		Client: []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1)},
	})
	if err != nil {
		tb.Fatalf("start the broker: %v", err)
	}
	endWithTest(tb, broker.Process)
	tb.Cleanup(broker.Client.Close)
	return &Broker{Bootstrap: broker.Address, instanceBootstrap: broker.InstanceAddress, network: network, client: broker.Client}
}

// properties returns the configs that differ from the defaults: short timeouts, so that a killed instance is detected within seconds (the
// session timeouts of its members are sessionTimeout), and no wait for more members before a rebalance.
func properties(lines []string) map[string]string {
	all := map[string]string{
		"log.cleaner.dedupe.buffer.size": "2097152",

		"group.initial.rebalance.delay.ms":         "0",
		"group.streams.initial.rebalance.delay.ms": "0",
		"group.streams.min.session.timeout.ms":     sessionTimeout,
		"group.streams.session.timeout.ms":         sessionTimeout,
		"group.streams.min.heartbeat.interval.ms":  heartbeatInterval,
		"group.streams.heartbeat.interval.ms":      heartbeatInterval,
		"group.streams.assignment.interval.ms":     "0",
	}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		all[key] = value
	}
	return all
}
