// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"regexp"
	"strings"
)

// match is what matches a pattern of the topics that are known.
type match struct{ topics, largest int }

// matching finds the topics that match a pattern as a whole, as Java's Matcher#matches does. Where none does, or where the pattern has
// what only Java knows (Go's RE2 has no lookahead and no backreferences), the source counts as one topic of the largest size known.
func (c *counter) matching(pattern string) match {
	if m, done := c.matches[pattern]; done {
		return m
	}
	var m match
	if re, err := regexp.Compile(`\A(?:` + pattern + `)\z`); err == nil {
		for topic, n := range c.known.Partitions {
			if re.MatchString(topic) {
				m.topics++
				m.largest = max(m.largest, n)
			}
		}
	}
	if m.topics == 0 {
		m.largest = c.fallback
	}
	c.matches[pattern] = m
	return m
}

// inputs is the number of partitions that a task reads: one of each source topic.
func (c *counter) inputs(i int) int {
	n := len(c.topics[i])
	for _, source := range c.t.Subtopologies[i].Sources {
		if source.Pattern != "" {
			n += max(c.matching(source.Pattern).topics, 1)
		}
	}
	return n
}

// written is the number of partitions of all topics that a subtopology writes. Where an extractor chooses the topic by record, every
// topic that is known counts, but for internal ones.
func (c *counter) written(s Subtopology) int {
	sum := 0
	seen := map[string]bool{}
	for _, sink := range s.Sinks {
		if sink.Topic == "" {
			n := c.reachable(seen)
			sum += n
			c.assume(sink.Line, "sink %s counts %d partitions, those of all topics known that no other sink counts: its extractor chooses the topic by record",
				sink.Name, n)
			continue
		}
		if !seen[sink.Topic] {
			seen[sink.Topic] = true
			sum += c.sinkPartitions(sink)
		}
	}
	return sum
}

// reachable is the number of partitions that a sink with an extractor may write besides those of the topics seen.
func (c *counter) reachable(seen map[string]bool) int {
	sum := 0
	for topic, n := range c.known.Partitions {
		if !seen[topic] && !strings.HasSuffix(topic, "-changelog") && !isRepartition(topic) && !isForeignKey(topic) {
			seen[topic] = true
			sum += n
		}
	}
	if len(c.known.Partitions) == 0 {
		return c.fallback
	}
	return sum
}

// sinkPartitions is the number of partitions of a sink's topic. An internal topic has no more than the subtopologies that read it have
// tasks.
func (c *counter) sinkPartitions(sink Sink) int {
	if n := c.given(sink.Topic); n > 0 {
		return n
	}
	if c.internal(sink.Topic) {
		return c.most(c.readers[sink.Topic])
	}
	c.explainTopic(sink.Line, sink.Topic)
	return c.fallback
}
