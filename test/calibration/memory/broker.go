// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// broker is a running Kafka broker of one node.
type broker struct {
	address string
	process *process
	client  *kgo.Client
}

// clusterID is any base64 UUID; each broker has a storage folder of its own.
const clusterID = "c3RyZWFtd2Vpci1jYWxpYnI"

// startBroker starts a broker with empty storage in the folder and returns when it serves.
func startBroker(ctx context.Context, classPath, folder string) (*broker, error) {
	addresses, err := freeAddresses(ctx, 2)
	if err != nil {
		return nil, err
	}
	b := &broker{address: addresses[0]}
	properties := filepath.Join(folder, "server.properties")
	if err := os.WriteFile(properties, []byte(brokerProperties(filepath.Join(folder, "storage"), addresses[0], addresses[1])), 0o600); err != nil {
		return nil, err
	}
	argv := []string{"java", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", classPath, "dev.streamweir.kafkatest.Broker", properties, clusterID}
	if b.process, err = start(ctx, folder, "broker", nil, nil, argv...); err != nil {
		return nil, err
	}
	b.client, err = kgo.NewClient(kgo.SeedBrokers(b.address), kgo.ProducerLinger(5*time.Millisecond),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.MaxBufferedRecords(20_000), kgo.DisableIdempotentWrite(),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, err
	}
	return b, eventually(ctx, time.Minute, "the broker serves", func() error {
		if err := b.process.failure(); err != nil {
			return err
		}
		return b.client.Ping(ctx)
	})
}

// stop ends the broker.
func (b *broker) stop() {
	b.client.Close()
	b.process.end(syscall.SIGKILL)
}

// brokerProperties is the broker's configuration. Segments are small, and old ones of the input go, so that hours of load fit a disk.
func brokerProperties(storage, listener, controller string) string {
	lines := []string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@" + controller,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=CLIENTS",
		"listeners=CLIENTS://" + listener + ",CONTROLLER://" + controller, "advertised.listeners=CLIENTS://" + listener,
		"listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT", "log.dirs=" + storage,
		"num.network.threads=2", "num.io.threads=2", "auto.create.topics.enable=false", "log.cleaner.dedupe.buffer.size=33554432",
		"log.segment.bytes=33554432", "log.retention.bytes=1073741824", "log.retention.check.interval.ms=10000",
		"log.initial.task.delay.ms=10000", "log.segment.delete.delay.ms=1000",
		"offsets.topic.num.partitions=1", "offsets.topic.replication.factor=1",
		"transaction.state.log.num.partitions=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		// All instances join before the first assignment, and one that was killed is missed after its session timeout.
		"group.initial.rebalance.delay.ms=5000", "share.coordinator.state.topic.num.partitions=1",
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// createTopics creates the input topics of an application.
func (b *broker) createTopics(ctx context.Context, partitions int, names ...string) error {
	answers, err := kadm.NewClient(b.client).CreateTopics(ctx, int32(partitions), 1, nil, names...)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	return answers.Error()
}

// freeAddresses are host:port with ports that are free at the moment.
func freeAddresses(ctx context.Context, n int) ([]string, error) {
	var all []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		all = append(all, listener.Addr().String())
	}
	return all, nil
}

// finalError is an error after which there is nothing to wait for.
type finalError struct{ error }

// eventually tries until it succeeds, for at most so long, or until it fails with a finalError.
func eventually(ctx context.Context, most time.Duration, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[finalError](err); ok {
			return final.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, most, err)
		case <-ticker.C:
		}
	}
}
