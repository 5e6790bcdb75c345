// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"maps"
)

// counter counts partitions and tasks.
type counter struct {
	t     Topology
	known Known
	// writers and readers are the subtopologies, by index, of the topology's own internal topics.
	writers, readers map[string][]int
	// topics and tasks are the source topics and the tasks of each subtopology.
	topics [][]string
	tasks  []int
	// fallback is the largest count that is known: topics of unknown size count as it.
	fallback int
	assumed  []Assumption
	used     map[string]bool  // stores of the description
	told     map[string]bool  // topics that an assumption is about
	matches  map[string]match // by pattern
}

func newCounter(t Topology, known Known) *counter {
	c := &counter{
		t: t, known: known, tasks: make([]int, len(t.Subtopologies)),
		writers: map[string][]int{}, readers: map[string][]int{}, used: map[string]bool{}, told: map[string]bool{},
		matches: map[string]match{},
	}
	for _, topic := range t.RepartitionTopics() {
		c.writers[topic] = []int{}
	}
	for i, s := range t.Subtopologies {
		for _, sink := range s.Sinks {
			if c.internal(sink.Topic) {
				c.writers[sink.Topic] = append(c.writers[sink.Topic], i)
			}
		}
		c.topics = append(c.topics, s.topics())
		for _, topic := range c.topics[i] {
			c.readers[topic] = append(c.readers[topic], i)
		}
		c.fallback = max(c.fallback, known.Tasks[s.ID])
	}
	for n := range maps.Values(known.Partitions) {
		c.fallback = max(c.fallback, n)
	}
	return c
}

func (c *counter) internal(topic string) bool {
	_, ok := c.writers[topic]
	return ok
}

// given is the count that is known of a topic, or 0.
func (c *counter) given(topic string) int {
	if n := c.known.Partitions[topic]; n > 0 {
		return n
	}
	return c.known.Partitions[c.known.ApplicationID+"-"+topic]
}

func (c *counter) assume(line int, format string, args ...any) {
	c.assumed = append(c.assumed, Assumption{Line: line, Text: fmt.Sprintf(format, args...)})
}

// countTasks gives each subtopology its tasks. Repartition topics take the count of the tasks that write them (RepartitionTopics), so
// it goes round until nothing grows any more.
func (c *counter) countTasks() error {
	if c.fallback == 0 && len(c.t.Subtopologies) > 0 {
		s := c.t.Subtopologies[0]
		return fmt.Errorf("line %d: the tasks of sub-topology %s are not known: give the partitions of its source topics, or its tasks", s.Line, s.ID)
	}
	for range len(c.tasks) + 1 {
		grown := false
		for i := range c.tasks {
			n := c.largestSource(i)
			grown = grown || n > c.tasks[i]
			c.tasks[i] = max(c.tasks[i], n)
		}
		if !grown {
			break
		}
	}
	for i, s := range c.t.Subtopologies {
		if c.tasks[i] == 0 {
			c.tasks[i] = c.fallback
			c.assume(s.Line, "sub-topology %s counts %d tasks, the largest number known: the sizes of its source topics depend on each other", s.ID, c.fallback)
		}
	}
	for _, s := range c.t.Subtopologies {
		if c.known.Tasks[s.ID] == 0 {
			c.explainSources(s)
		}
	}
	return nil
}

// largestSource is the number of tasks of a subtopology, as far as it is known yet.
func (c *counter) largestSource(i int) int {
	s, topics := &c.t.Subtopologies[i], c.topics[i]
	if n := c.known.Tasks[s.ID]; n > 0 {
		return n
	}
	largest := 0
	for _, topic := range topics {
		largest = max(largest, c.sourcePartitions(topic, len(topics) == 1))
	}
	for _, source := range s.Sources {
		if source.Pattern != "" {
			largest = max(largest, c.matching(source.Pattern).largest)
		}
	}
	return largest
}

// sourcePartitions is the number of partitions of a source topic as far as it is known yet. The topics of a foreign-key join have as
// many partitions as the table that they are joined with, so they count only where they are alone.
func (c *counter) sourcePartitions(topic string, alone bool) int {
	switch n := c.given(topic); {
	case n > 0:
		return n
	case !c.internal(topic):
		return c.fallback
	case isForeignKey(topic) && !alone:
		return 0
	}
	return c.most(c.writers[topic])
}

// most is the largest number of tasks of some subtopologies.
func (c *counter) most(subtopologies []int) int {
	n := 0
	for _, i := range subtopologies {
		n = max(n, c.tasks[i])
	}
	return n
}

// explainSources says how the source topics were counted whose partitions are not known.
func (c *counter) explainSources(s Subtopology) {
	for _, source := range s.Sources {
		if source.Pattern != "" && c.matching(source.Pattern).topics == 0 {
			c.assume(source.Line, "source %s counts as one topic of %d partitions: no topic that is known matches its pattern %s",
				source.Name, c.fallback, source.Pattern)
		}
		for _, topic := range source.Topics {
			c.explainTopic(source.Line, topic)
		}
	}
}

func (c *counter) explainTopic(line int, topic string) {
	switch {
	case c.given(topic) > 0 || c.told[topic]:
		return
	case !c.internal(topic):
		c.assume(line, "topic %s counts %d partitions, the largest number known: its own is not known", topic, c.fallback)
	case isRepartition(topic):
		c.assume(line, "topic %s counts %d partitions, the tasks that write it: Repartitioned, or a join with another topic, may set another number",
			topic, c.most(c.writers[topic]))
	}
	c.told[topic] = true
}
