// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"regexp"
	"strings"
)

// match is the result of a pattern among the known topics.
type match struct{ topics, largest int }

// matching counts the topics that match a whole pattern, as Java's Matcher#matches does. If none does, or if only Java supports the pattern
// (Go's RE2 has no lookahead and no backreferences), the source counts as one topic of the largest known size.
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

// inputs returns the number of partitions that a task reads: one of each source topic.
func (c *counter) inputs(i int) int {
	n := len(c.topics[i])
	for _, source := range c.t.Subtopologies[i].Sources {
		if source.Pattern != "" {
			n += max(c.matching(source.Pattern).topics, 1)
		}
	}
	return n
}

// written returns the number of partitions of all topics that a subtopology writes. If an extractor chooses the topic by record, every known
// topic counts, except internal ones.
func (c *counter) written(s Subtopology) int {
	sum := 0
	seen := map[string]bool{}
	for _, sink := range s.Sinks {
		if sink.Topic == "" {
			n := c.reachable(seen)
			sum += n
			c.assume(sink.Line, "sink %s counts %d partitions, those of all known topics without another sink: its extractor chooses the topic by record",
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

// reachable returns the number of partitions that a sink with an extractor may write, besides those of the topics seen.
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

// sinkPartitions returns the number of partitions of a sink's topic. An internal topic has no more partitions than its readers have tasks.
func (c *counter) sinkPartitions(sink Sink) int {
	if n := c.given(sink.Topic); n > 0 {
		return n
	}
	if c.internal(sink.Topic) {
		return c.largest(c.readers[sink.Topic])
	}
	c.explainTopic(sink.Line, sink.Topic)
	return c.fallback
}
