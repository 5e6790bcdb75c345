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
	// fallback is the largest known count: that of topics of unknown size.
	fallback  int
	assumed   []Assumption
	used      map[string]bool  // stores of the description
	explained map[string]bool  // topics with an assumption
	matches   map[string]match // by pattern
}

func newCounter(t Topology, known Known) *counter {
	c := &counter{
		t: t, known: known, tasks: make([]int, len(t.Subtopologies)),
		writers: map[string][]int{}, readers: map[string][]int{}, used: map[string]bool{}, explained: map[string]bool{},
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

// given returns the known count of a topic, or 0.
func (c *counter) given(topic string) int {
	if n := c.known.Partitions[topic]; n > 0 {
		return n
	}
	return c.known.Partitions[c.known.ApplicationID+"-"+topic]
}

func (c *counter) assume(line int, format string, args ...any) {
	c.assumed = append(c.assumed, Assumption{Line: line, Text: fmt.Sprintf(format, args...)})
}

// countTasks sets the tasks of each subtopology. A repartition topic has as many partitions as there are tasks that write it
// (RepartitionTopics), so the count repeats until nothing grows.
func (c *counter) countTasks() error {
	if c.fallback == 0 && len(c.t.Subtopologies) > 0 {
		s := c.t.Subtopologies[0]
		return fmt.Errorf("line %d: the tasks of sub-topology %s are not known: set the partitions of its source topics, or its tasks", s.Line, s.ID)
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
			c.assume(s.Line, "sub-topology %s counts %d tasks, the largest known number: the sizes of its source topics depend on each other", s.ID, c.fallback)
		}
	}
	for _, s := range c.t.Subtopologies {
		if c.known.Tasks[s.ID] == 0 {
			c.explainSources(s)
		}
	}
	return nil
}

// largestSource returns the number of tasks of a subtopology, as far as it is known so far.
func (c *counter) largestSource(i int) int {
	s := &c.t.Subtopologies[i]
	topics := c.topics[i]
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

// sourcePartitions returns the number of partitions of a source topic, as far as it is known so far. The topics of a foreign-key join have
// as many partitions as the joined table, so they count only where they are alone.
func (c *counter) sourcePartitions(topic string, alone bool) int {
	switch n := c.given(topic); {
	case n > 0:
		return n
	case !c.internal(topic):
		return c.fallback
	case isForeignKey(topic) && !alone:
		return 0
	}
	return c.largest(c.writers[topic])
}

// largest returns the largest number of tasks of some subtopologies.
func (c *counter) largest(subtopologies []int) int {
	n := 0
	for _, i := range subtopologies {
		n = max(n, c.tasks[i])
	}
	return n
}

// explainSources adds an assumption for each source topic of unknown size.
func (c *counter) explainSources(s Subtopology) {
	for _, source := range s.Sources {
		if source.Pattern != "" && c.matching(source.Pattern).topics == 0 {
			c.assume(source.Line, "source %s counts as one topic of %d partitions: no known topic matches its pattern %s",
				source.Name, c.fallback, source.Pattern)
		}
		for _, topic := range source.Topics {
			c.explainTopic(source.Line, topic)
		}
	}
}

func (c *counter) explainTopic(line int, topic string) {
	switch {
	case c.given(topic) > 0 || c.explained[topic]:
		return
	case !c.internal(topic):
		c.assume(line, "topic %s counts %d partitions, the largest known number: its own is not known", topic, c.fallback)
	case isRepartition(topic):
		c.assume(line, "topic %s counts %d partitions, the number of tasks that write it: Repartitioned, or a join with another topic, may set another number",
			topic, c.largest(c.writers[topic]))
	}
	c.explained[topic] = true
}
