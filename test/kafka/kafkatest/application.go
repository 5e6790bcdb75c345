// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The values of Kafka Streams' config group.protocol.
const (
	Classic = "classic"
	Streams = "streams"
)

const (
	// sessionTimeout, in milliseconds, of the members of both protocols: 6 s is the minimum for classic members
	// (group.min.session.timeout.ms, Kafka 4.4.0). A killed instance is detected after about that time.
	sessionTimeout = "6000"
	// heartbeatInterval, in milliseconds.
	heartbeatInterval = "1000"
)

// Application configures an application. Its topology is fixed (test/java/.../ShopTopology.java):
//   - subtopology 0 reads the orders and payments topics: a key-value store orders-by-customer and a stream-stream join
//     with two window stores (KSTREAM-JOINTHIS-… and KSTREAM-JOINOTHER-…) of 10 minutes;
//   - subtopology 1 reads the clicks topic: a window store clicks-per-minute of 1 minute.
type Application struct {
	// ID is the application.id and the prefix of the topics' names.
	ID string
	// Protocol is Classic or Streams.
	Protocol string
	// OrderPartitions is the number of partitions of orders and of payments, and of the tasks of subtopology 0.
	OrderPartitions int32
	// ClickPartitions is the number of partitions of clicks, and of the tasks of subtopology 1.
	ClickPartitions int32
	// StandbyReplicas is num.standby.replicas, or with the streams protocol the group's streams.num.standby.replicas.
	StandbyReplicas int
	// Configs are additional configs of Kafka Streams or its clients, for all instances.
	Configs map[string]string
}

// RunningApplication is an application with its topics on a broker.
type RunningApplication struct {
	Application
	broker *Broker
}

// CreateApplication creates the application's input topics and, with the streams protocol, the configs of its group.
func (b *Broker) CreateApplication(tb testing.TB, app Application) *RunningApplication {
	tb.Helper()
	a := &RunningApplication{Application: app, broker: b}
	admin := kadm.NewClient(b.client)
	for topic, partitions := range a.topics() {
		if _, err := admin.CreateTopic(tb.Context(), partitions, 1, nil, topic); err != nil {
			tb.Fatalf("create topic %s: %v", topic, err)
		}
	}
	if app.Protocol == Streams {
		a.configureGroup(tb)
	}
	return a
}

// Bootstrap is the address (host:port) of the application's broker for clients in the test's own process.
func (a *RunningApplication) Bootstrap() string { return a.broker.Bootstrap }

// Tasks is the number of active tasks of the application: one for each partition of a subtopology's largest topic.
func (a *RunningApplication) Tasks() int { return int(a.OrderPartitions + a.ClickPartitions) }

// topics returns the numbers of partitions by input topic.
func (a *RunningApplication) topics() map[string]int32 {
	return map[string]int32{
		a.ID + ".orders":   a.OrderPartitions,
		a.ID + ".payments": a.OrderPartitions,
		a.ID + ".clicks":   a.ClickPartitions,
	}
}

func (a *RunningApplication) configureGroup(tb testing.TB) {
	tb.Helper()
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name = "streams.num.standby.replicas"
	config.Value = new(strconv.Itoa(a.StandbyReplicas))
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType = kmsg.ConfigResourceTypeGroupConfig
	resource.ResourceName = a.ID
	resource.Configs = append(resource.Configs, config)
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(tb.Context(), a.broker.client)
	if err != nil {
		tb.Fatalf("configs of group %s: %v", a.ID, err)
	}
	for _, resource := range response.Resources {
		if err := kerr.ErrorForCode(resource.ErrorCode); err != nil {
			tb.Fatalf("configs of group %s: %v", a.ID, err)
		}
	}
}

// configs returns the full configuration of an instance.
func (a *RunningApplication) configs(instance Instance, stateDir string) map[string]string {
	configs := map[string]string{
		"application.id":                     a.ID,
		"bootstrap.servers":                  a.broker.instanceBootstrap,
		"client.id":                          instance.Name,
		"group.protocol":                     a.Protocol,
		"num.stream.threads":                 strconv.Itoa(max(1, instance.Threads)),
		"state.dir":                          stateDir,
		"default.key.serde":                  "org.apache.kafka.common.serialization.Serdes$StringSerde",
		"default.value.serde":                "org.apache.kafka.common.serialization.Serdes$StringSerde",
		"commit.interval.ms":                 "1000",
		"statestore.cache.max.bytes":         "1048576",
		"producer.buffer.memory":             "4194304",
		"consumer.auto.offset.reset":         "earliest",
		"consumer.fetch.max.bytes":           "1048576",
		"consumer.max.partition.fetch.bytes": "65536",
		"app.topology":                       "shop",
		"app.report":                         "tasks",
		"app.orders":                         a.ID + ".orders",
		"app.payments":                       a.ID + ".payments",
		"app.clicks":                         a.ID + ".clicks",
	}
	if a.Protocol == Classic {
		configs["num.standby.replicas"] = strconv.Itoa(a.StandbyReplicas)
		configs["consumer.session.timeout.ms"] = sessionTimeout
		configs["consumer.heartbeat.interval.ms"] = heartbeatInterval
	}
	maps.Copy(configs, a.Configs)
	maps.Copy(configs, instance.Configs)
	return configs
}

// Produce writes that number of records to each input topic, spread over its partitions, each record with another key.
func (a *RunningApplication) Produce(tb testing.TB, records int) {
	tb.Helper()
	var batch []*kgo.Record
	for topic, partitions := range a.topics() {
		for i := range records {
			batch = append(batch, &kgo.Record{
				Topic:     topic,
				Partition: int32(i) % partitions,
				Key:       fmt.Appendf(nil, "customer-%d", i),
				Value:     fmt.Appendf(nil, "%s %d", topic, i),
			})
		}
	}
	if err := a.broker.client.ProduceSync(tb.Context(), batch...).FirstErr(); err != nil {
		tb.Fatalf("produce %d records to the topics of %s: %v", records, a.ID, err)
	}
}
