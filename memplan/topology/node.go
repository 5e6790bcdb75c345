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

// node is a source, a processor or a sink during parsing.
type node struct {
	kind, name string
	line       int
	// list has topics or stores, text a pattern, a topic or an extractor.
	list                     []string
	text                     string
	dynamic                  bool
	successors, predecessors []string
	forward, back            bool // the text has its successors, and its predecessors
}

// topicName matches valid names of topics (org.apache.kafka.common.internals.Topic).
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// node begins a node. In Kafka 0.11 to 1.1 its arrows are on the same line.
func (p *parser) node(kind, rest string) error {
	if len(p.parts) == 0 {
		return fmt.Errorf("a %s before the first \"Sub-topology: \" line: the text is incomplete", strings.ToLower(kind))
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
	empty := n.kind != "Processor" && len(n.list) == 0 && n.text == ""
	if empty || slices.Contains(n.list, "") {
		return fmt.Errorf("%s %s has an empty name in parentheses: the line is cut off", strings.ToLower(kind), quoted(n.name))
	}
	part.nodes = append(part.nodes, n)
	if arrows == "" {
		return nil
	}
	return n.readArrows(arrows)
}

// markers begin the text in parentheses, by kind of node.
var markers = map[string]string{"Source": "(topics: ", "Processor": "(stores: ", "Sink": "(topic: "}

const extractorMarker = "(extractor class: "

// cut splits the line of a node into its name with the space after it, the text in parentheses, and its arrows.
func (n *node) cut(rest string) (name, inside, arrows string, err error) {
	marker := markers[n.kind]
	at := strings.LastIndex(rest, marker)
	if n.kind == "Sink" {
		if e := strings.Index(rest, extractorMarker); e >= 0 { // the toString of an extractor may contain anything
			at = e
			marker = extractorMarker
			n.dynamic = true
		}
	}
	if at < 0 {
		return "", "", "", fmt.Errorf("%s %s has no \"%s...)\"", strings.ToLower(n.kind), quoted(rest), marker)
	}
	name = rest[:at]
	inside = rest[at+len(marker):]
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

// fill sets the text in parentheses. A list has brackets, except for topics in the old format: there a text of invalid topic names is a
// pattern.
func (n *node) fill(inside string, old bool) {
	items := names(strings.TrimSuffix(strings.TrimPrefix(inside, "["), "]"))
	inBrackets := strings.HasPrefix(inside, "[") && strings.HasSuffix(inside, "]") && len(inside) > 1
	switch {
	case n.kind == "Processor":
		n.list = items
	case n.kind == "Source" && inBrackets && areTopics(items):
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

// arrowLine reads a line of arrows of the node before it.
func (p *parser) arrowLine(line string) error {
	if len(p.parts) == 0 || len(p.parts[len(p.parts)-1].nodes) == 0 {
		return errors.New("an arrow before the first node of its sub-topology: the text is incomplete")
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
		return fmt.Errorf("sink %s has a \"-->\": a sink has no successors", quoted(n.name))
	case back && n.kind == "Source":
		return fmt.Errorf("source %s has a \"<--\": a source has no predecessors", quoted(n.name))
	case forward && n.forward, back && n.back:
		return fmt.Errorf("%s %s has a duplicate arrow", strings.ToLower(n.kind), quoted(n.name))
	}
	if forward {
		n.forward = true
		n.successors = arrowNames(ahead)
	}
	if back {
		n.back = true
		n.predecessors = arrowNames(behind)
	}
	return nil
}

// arrowNames returns the nodes of an arrow. The text is "none" for no nodes (0.11: empty).
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
