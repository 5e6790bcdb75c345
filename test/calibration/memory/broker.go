// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// startBroker starts a broker with empty storage in the folder and returns when it serves.
func startBroker(ctx context.Context, classPath, folder string) (*localkafka.Broker, error) {
	return localkafka.StartBroker(ctx, localkafka.BrokerOptions{
		Folder: folder, ClassPath: classPath, Heap: "768m", Properties: brokerProperties(),
		Client: []kgo.Opt{
			kgo.ProducerLinger(5 * time.Millisecond), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.MaxBufferedRecords(20_000),
			kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		},
	})
}

// brokerProperties configure small segments and a short retention of the input, so that hours of load fit on a disk.
func brokerProperties() map[string]string {
	return map[string]string{
		"log.cleaner.dedupe.buffer.size":  "33554432",
		"log.segment.bytes":               "33554432",
		"log.retention.bytes":             "1073741824",
		"log.retention.check.interval.ms": "10000",
		"log.initial.task.delay.ms":       "10000",
		"log.segment.delete.delay.ms":     "1000",
		// All instances join before the first assignment.
		"group.initial.rebalance.delay.ms": "5000",
	}
}
