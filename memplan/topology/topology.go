// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

// Topology is what the description of a topology tells.
type Topology struct {
	// Subtopologies that make tasks, in the order of the text.
	Subtopologies []Subtopology
	// GlobalStores, which every instance holds in full.
	GlobalStores []GlobalStore
}

// Subtopology is a part of the topology that makes a task of each partition.
type Subtopology struct {
	// ID as tasks carry it: "0", or "orders__0" in the named topology orders.
	ID string
	// Line of the text that begins it, from 1.
	Line       int
	Sources    []Source
	Processors []Processor
	Sinks      []Sink
	// Stores of one task, each once, however many processors name it.
	Stores []Store
}

// Source reads topics.
type Source struct {
	Name string
	Line int
	// Topics that it reads; none where it has a pattern. Internal topics are without the application id before them.
	Topics []string
	// Pattern that the topics match, in Java's syntax.
	Pattern string
}

// Processor is a step between sources and sinks.
type Processor struct {
	Name string
	Line int
	// Stores that it is connected to: its own, and those of others that it reads.
	Stores                   []string
	Predecessors, Successors []string
}

// Sink writes to a topic.
type Sink struct {
	Name string
	Line int
	// Topic that it writes, empty where an extractor chooses it by record.
	Topic string
	// Extractor is the topic name extractor, as its toString gives it.
	Extractor string
}

// Store is a state store.
type Store struct {
	Name string
	// Line of the first processor that names it.
	Line int
	// Processors that name it.
	Processors []string
}

// GlobalStore is a store of which every instance holds all partitions.
type GlobalStore struct {
	Name  string
	Line  int
	Topic string
}

// RepartitionTopics are the internal topics that the topology writes and reads, without the application id before them and in the order
// of the text: repartition topics, and the registration and response topics of foreign-key joins.
func (t Topology) RepartitionTopics() []string {
	written := map[string]bool{}
	for _, s := range t.Subtopologies {
		for _, sink := range s.Sinks {
			written[sink.Topic] = true
		}
	}
	var topics []string
	for _, s := range t.Subtopologies {
		for _, topic := range s.topics() {
			if written[topic] && (isRepartition(topic) || isForeignKey(topic)) {
				topics = append(topics, topic)
				written[topic] = false
			}
		}
	}
	return topics
}

// topics are the topics that the sources name, each once.
func (s Subtopology) topics() []string {
	var topics []string
	seen := map[string]bool{}
	for _, source := range s.Sources {
		for _, topic := range source.Topics {
			if !seen[topic] {
				seen[topic] = true
				topics = append(topics, topic)
			}
		}
	}
	return topics
}
