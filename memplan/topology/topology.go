// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

// Topology is a parsed description of a topology.
type Topology struct {
	// Subtopologies are the parts with tasks, in the order of the text.
	Subtopologies []Subtopology
	// GlobalStores are held in full by every instance.
	GlobalStores []GlobalStore
}

// Subtopology is a part of the topology with a task for each partition.
type Subtopology struct {
	// ID is the id in the names of tasks: "0", or "orders__0" in the named topology orders.
	ID string
	// Line is its first line in the text, from 1.
	Line       int
	Sources    []Source
	Processors []Processor
	Sinks      []Sink
	// Stores are the stores of one task, each once.
	Stores []Store
}

// Source reads topics.
type Source struct {
	Name string
	Line int
	// Topics are its topics; none for a source with a pattern. Internal topics are without the prefix of the application id.
	Topics []string
	// Pattern is the pattern of its topics, in Java's syntax.
	Pattern string
}

// Processor is a step between sources and sinks.
type Processor struct {
	Name string
	Line int
	// Stores are the connected stores: its own, and those of other processors.
	Stores                   []string
	Predecessors, Successors []string
}

// Sink writes to a topic.
type Sink struct {
	Name string
	Line int
	// Topic is the written topic; empty if an extractor chooses it by record.
	Topic string
	// Extractor is the toString of the topic name extractor.
	Extractor string
}

// Store is a state store.
type Store struct {
	Name string
	// Line is that of its first processor.
	Line int
	// Processors are the processors connected to it.
	Processors []string
}

// GlobalStore is a store with all partitions in every instance.
type GlobalStore struct {
	Name  string
	Line  int
	Topic string
}

// RepartitionTopics returns the internal topics that the topology writes and reads, without the prefix of the application id, in the order
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

// topics returns the topics of the sources, each once.
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
