// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// node is a source, a processor or a sink while it is read.
type node struct {
	kind, name string
	line       int
	// list holds topics or stores, text a pattern, a topic or an extractor.
	list                     []string
	text                     string
	dynamic                  bool
	successors, predecessors []string
	forward, back            bool // whether the text says where it leads, and where it comes from
}

// topicName is what Kafka allows as the name of a topic (org.apache.kafka.common.internals.Topic).
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// node begins a node. Kafka 0.11 to 1.1 put its arrows on the same line.
func (p *parser) node(kind, rest string) error {
	if len(p.parts) == 0 {
		return fmt.Errorf("a %s before the first \"Sub-topology: \" line: give the whole text", strings.ToLower(kind))
	}
	part := p.parts[len(p.parts)-1]
	n := &node{kind: kind, line: p.line}
	name, inside, arrows, err := n.cut(rest)
	if err != nil {
		return err
	}
	n.name = strings.TrimSpace(name)
	if n.name == "" {
		return fmt.Errorf("a %s without a name", strings.ToLower(kind))
	}
	n.fill(inside, n.name == name)
	if n.kind != "Processor" && len(n.list) == 0 && n.text == "" || slices.Contains(n.list, "") {
		return fmt.Errorf("%s %s has an empty name in parentheses: the line is cut off", strings.ToLower(kind), quoted(n.name))
	}
	part.nodes = append(part.nodes, n)
	if arrows == "" {
		return nil
	}
	return n.readArrows(arrows)
}

// markers begin what stands in parentheses, by kind of node.
var markers = map[string]string{"Source": "(topics: ", "Processor": "(stores: ", "Sink": "(topic: "}

const extractorMarker = "(extractor class: "

// cut cuts the line of a node into its name with the space that follows, what is in parentheses, and its arrows.
func (n *node) cut(rest string) (name, inside, arrows string, err error) {
	marker := markers[n.kind]
	at := strings.LastIndex(rest, marker)
	if n.kind == "Sink" {
		if e := strings.Index(rest, extractorMarker); e >= 0 { // what an extractor's toString gives may hold anything
			at, marker, n.dynamic = e, extractorMarker, true
		}
	}
	if at < 0 {
		return "", "", "", fmt.Errorf("%s %s has no \"%s...)\"", strings.ToLower(n.kind), quoted(rest), marker)
	}
	name, inside = rest[:at], rest[at+len(marker):]
	end := len(inside)
	for _, arrow := range []string{") -->", ") <--"} {
		if i := strings.Index(inside, arrow); i >= 0 && !n.dynamic { // extractors came with the format of 2.0
			end = min(end, i)
		}
	}
	if end < len(inside) {
		return name, inside[:end], inside[end+len(") "):], nil
	}
	inside, closed := strings.CutSuffix(inside, ")")
	if !closed {
		return "", "", "", fmt.Errorf("%s %s has no \")\" at its end: the line is cut off", strings.ToLower(n.kind), quoted(rest))
	}
	return name, inside, "", nil
}

// fill keeps what stands in parentheses. A list has brackets, except for topics in the old format: there a pattern is what cannot be
// names of topics.
func (n *node) fill(inside string, old bool) {
	trimmed, bracket := strings.CutPrefix(inside, "[")
	trimmed, bracket2 := strings.CutSuffix(trimmed, "]")
	items := names(trimmed)
	switch {
	case n.kind == "Processor":
		n.list = items
	case n.kind == "Source" && bracket && bracket2 && areTopics(items):
		n.list = items
	case n.kind == "Source" && old && areTopics(names(inside)):
		n.list = names(inside)
	default:
		n.text = inside
	}
}

func areTopics(list []string) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool { return !topicName.MatchString(s) })
}

// arrowLine reads a line of arrows: it belongs to the node before it.
func (p *parser) arrowLine(line string) error {
	if len(p.parts) == 0 || len(p.parts[len(p.parts)-1].nodes) == 0 {
		return errors.New("an arrow before the first node of its sub-topology: give the whole text")
	}
	nodes := p.parts[len(p.parts)-1].nodes
	return nodes[len(nodes)-1].readArrows(line)
}

// readArrows reads "--> A, B", "<-- C", or both.
func (n *node) readArrows(text string) error {
	ahead, behind, back := strings.Cut(text, "<--")
	ahead, forward := strings.CutPrefix(strings.TrimSpace(ahead), "-->")
	switch {
	case forward && n.kind == "Sink":
		return fmt.Errorf("sink %s has a \"-->\": a sink leads nowhere", quoted(n.name))
	case back && n.kind == "Source":
		return fmt.Errorf("source %s has a \"<--\": a source comes from nowhere", quoted(n.name))
	case forward && n.forward, back && n.back:
		return fmt.Errorf("%s %s has its arrow twice", strings.ToLower(n.kind), quoted(n.name))
	}
	if forward {
		n.forward, n.successors = true, arrowNames(ahead)
	}
	if back {
		n.back, n.predecessors = true, arrowNames(behind)
	}
	return nil
}

// arrowNames are the nodes of an arrow. Where there are none, the text says "none" (0.11: nothing).
func arrowNames(text string) []string {
	text = strings.TrimSpace(text)
	if text == "none" {
		return nil
	}
	return names(text)
}

// names splits a list of names.
func names(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}
