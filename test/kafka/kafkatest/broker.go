// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Broker is a running Kafka broker.
type Broker struct {
	// Bootstrap is the address (host:port) for clients in the test's own process.
	Bootstrap string
	// instanceBootstrap is the address for instances, on the bridge.
	instanceBootstrap string
	network           *network
	child             *child
	client            *kgo.Client
}

// clusterID is any base64 UUID; each broker has a storage folder of its own.
const clusterID = "c3RyZWFtd2Vpci10ZXN0cw"

// TopologyDescriptions is a line for StartBroker with which the broker stores the topologies that instances send it
// (KIP-1331; Kafka has none by default), so that StreamsGroupDescribe 1 can return them.
const TopologyDescriptions = "group.streams.topology.description.plugin.class=" +
	"org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"

// StartBroker starts a broker with empty storage and returns when it serves. It ends with the test. The lines
// (key=value) are added to its configuration.
func StartBroker(tb testing.TB, lines ...string) *Broker {
	tb.Helper()
	require(tb)
	classes := classPath(tb)
	b := &Broker{network: newNetwork(tb)}
	bridge := b.network.address(1).String()
	b.Bootstrap = freeAddress(tb, "127.0.0.1")
	b.instanceBootstrap = freeAddress(tb, bridge)

	folder := tb.TempDir()
	properties := filepath.Join(folder, "server.properties")
	text := b.properties(filepath.Join(folder, "storage"), freeAddress(tb, "127.0.0.1")) + strings.Join(lines, "\n")
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		tb.Fatalf("configuration of the broker: %v", err)
	}
	argv := java(classes, "512m", "dev.streamweir.kafkatest.Broker", properties, clusterID)
	b.child = startChild(tb, "broker", false, nil, argv...)
	b.connect(tb)
	Eventually(tb, "the broker serves", func(ctx context.Context) error {
		return errors.Join(b.child.failure(), b.client.Ping(ctx))
	})
	return b
}

func (b *Broker) connect(tb testing.TB) {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.UnknownTopicRetries(-1)) // a topic that was just created may take a moment to be known, on a busy machine
	if err != nil {
		tb.Fatalf("client of the broker: %v", err)
	}
	b.client = client
	tb.Cleanup(client.Close)
}

// properties is the broker's configuration: one node, short timeouts so that a killed instance is missed after seconds
// (its members' session timeouts are sessionTimeout), no waiting for more members before a rebalance.
func (b *Broker) properties(storage, controller string) string {
	values := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@" + controller,
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "TEST",
		"listeners":                      fmt.Sprintf("TEST://%s,INSTANCES://%s,CONTROLLER://%s", b.Bootstrap, b.instanceBootstrap, controller),
		"advertised.listeners":           fmt.Sprintf("TEST://%s,INSTANCES://%s", b.Bootstrap, b.instanceBootstrap),
		"listener.security.protocol.map": "TEST:PLAINTEXT,INSTANCES:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       storage,
		"num.network.threads":            "2",
		"num.io.threads":                 "2",
		"log.cleaner.dedupe.buffer.size": "2097152",
		"auto.create.topics.enable":      "false",

		"offsets.topic.num.partitions":             "1",
		"offsets.topic.replication.factor":         "1",
		"transaction.state.log.num.partitions":     "1",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",

		"group.initial.rebalance.delay.ms":             "0",
		"group.streams.initial.rebalance.delay.ms":     "0",
		"group.streams.min.session.timeout.ms":         sessionTimeout,
		"group.streams.session.timeout.ms":             sessionTimeout,
		"group.streams.min.heartbeat.interval.ms":      heartbeatInterval,
		"group.streams.heartbeat.interval.ms":          heartbeatInterval,
		"group.streams.assignment.interval.ms":         "0",
		"share.coordinator.state.topic.num.partitions": "1",
	}
	lines := make([]string, 0, len(values))
	for key, value := range values {
		lines = append(lines, key+"="+value)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n") + "\n"
}

// java is the command line of a short-lived JVM on few cores: serial collector, first compiler only.
func java(classPath, heap, class string, args ...string) []string {
	argv := []string{
		"java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", classPath, class,
	}
	return append(argv, args...)
}

// freeAddress is host:port with a port that is free at the moment.
func freeAddress(tb testing.TB, host string) string {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		tb.Fatalf("free port on %s: %v", host, err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
