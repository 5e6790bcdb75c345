// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"slices"
)

// TopicPartition is a partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// compareTopicPartitions orders partitions by topic, then by number: the order in which Kafka Streams pairs them with tasks
// (PARTITION_COMPARATOR of StreamsPartitionAssignor).
func compareTopicPartitions(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// decodeSubscriptionLayer returns the user data of a member's metadata in the consumer protocol (ConsumerProtocolSubscription, versions 0
// to 3). It ignores the fields after the user data.
func decodeSubscriptionLayer(data []byte) ([]byte, error) {
	r := &reader{data: data}
	r.version("subscription.version")
	for range r.count("subscription.topics", 2) {
		r.text("subscription.topics", false)
	}
	userData := r.bytes("subscription.userData", true)
	return userData, r.err
}

// decodeAssignmentLayer returns the sorted partitions and the user data of a member's assignment in the consumer protocol
// (ConsumerProtocolAssignment, versions 0 to 3).
func decodeAssignmentLayer(data []byte) ([]TopicPartition, []byte, error) {
	r := &reader{data: data}
	r.version("assignment.version")
	var partitions []TopicPartition
	for range r.count("assignment.partitions", 6) {
		topic := r.text("assignment.topic", false)
		for range r.count("assignment.partitions", 4) {
			partitions = append(partitions, TopicPartition{topic, r.int32("assignment.partition")})
		}
	}
	userData := r.bytes("assignment.userData", true)
	slices.SortFunc(partitions, compareTopicPartitions)
	return partitions, userData, r.err
}

// version reads the version of the consumer protocol. The first fields are the same in all versions.
func (r *reader) version(field string) {
	if v := r.int16(field); v < 0 {
		r.at -= 2
		r.fail(field, "version %d must not be negative", v)
	}
}
