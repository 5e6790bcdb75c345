// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"
)

// check returns an error for duplicate and missing nodes, arrows in a circle, and a text that is cut off. seen has the lines of the nodes of
// all sub-topologies: names are unique in a topology.
func (p *part) check(seen map[string]int) error {
	byName := map[string]*node{}
	sources := 0
	for _, n := range p.nodes {
		key := p.named + "\n" + n.name
		if line, twice := seen[key]; twice {
			return fmt.Errorf("line %d: duplicate node %s, first on line %d", n.line, quoted(n.name), line)
		}
		seen[key] = n.line
		byName[n.name] = n
		if n.kind == "Source" {
			sources++
		}
		complete := (n.kind == "Sink" || n.forward) && (n.kind == "Source" || n.back)
		if !complete {
			return fmt.Errorf("line %d: %s %s has no arrow: the text is cut off", n.line, strings.ToLower(n.kind), quoted(n.name))
		}
	}
	if sources == 0 {
		return fmt.Errorf("line %d: sub-topology %s has no source: the text is incomplete", p.line, p.id)
	}
	if err := p.checkArrows(byName); err != nil {
		return err
	}
	if n := p.circle(byName); n != nil {
		return fmt.Errorf("line %d: %s leads back to itself: a topology has cycles through topics only", n.line, quoted(n.name))
	}
	return nil
}

// checkArrows returns an error for arrows to and from missing nodes.
func (p *part) checkArrows(byName map[string]*node) error {
	for _, n := range p.nodes {
		for _, name := range slices.Concat(n.successors, n.predecessors) {
			if byName[name] == nil {
				return fmt.Errorf("line %d: %s is connected to %s, but sub-topology %s has no such node: the text is incomplete", n.line,
					quoted(n.name), quoted(name), p.id)
			}
		}
		for _, name := range n.successors {
			if byName[name].kind == "Source" {
				return fmt.Errorf("line %d: %s leads to source %s: only topics lead to sources", n.line, quoted(n.name), quoted(name))
			}
		}
	}
	return nil
}

// circle returns a node that leads back to itself, or nil (Kahn's algorithm, and then a walk backwards among the remaining nodes).
func (p *part) circle(byName map[string]*node) *node {
	before := map[*node][]*node{}
	open := map[*node]int{}
	for _, n := range p.nodes {
		for _, name := range n.successors {
			next := byName[name]
			before[next] = append(before[next], n)
			open[next]++
		}
	}
	ready := slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return open[n] > 0 })
	for len(ready) > 0 {
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, name := range n.successors {
			next := byName[name]
			open[next]--
			if open[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	left := slices.IndexFunc(p.nodes, func(n *node) bool { return open[n] > 0 })
	if left < 0 {
		return nil
	}
	n := p.nodes[left]
	for walked := map[*node]bool{}; !walked[n]; {
		walked[n] = true
		n = before[n][slices.IndexFunc(before[n], func(b *node) bool { return open[b] > 0 })]
	}
	return n
}

// subtopology returns the public form of a part with tasks.
func (p *part) subtopology() Subtopology {
	s := Subtopology{ID: p.id, Line: p.line}
	at := map[string]int{}
	for _, n := range p.nodes {
		switch n.kind {
		case "Source":
			s.Sources = append(s.Sources, Source{Name: n.name, Line: n.line, Topics: n.list, Pattern: n.text})
		case "Sink":
			sink := Sink{Name: n.name, Line: n.line, Topic: n.text}
			if n.dynamic {
				sink.Topic = ""
				sink.Extractor = n.text
			}
			s.Sinks = append(s.Sinks, sink)
		default:
			s.Processors = append(s.Processors, Processor{Name: n.name, Line: n.line, Stores: n.list, Predecessors: n.predecessors, Successors: n.successors})
			s.addStores(n, at)
		}
	}
	return s
}

// addStores adds the stores of a processor. at has the index of each store.
func (s *Subtopology) addStores(n *node, at map[string]int) {
	for _, name := range n.list {
		i, known := at[name]
		if !known {
			i = len(s.Stores)
			at[name] = i
			s.Stores = append(s.Stores, Store{Name: name, Line: n.line})
		}
		s.Stores[i].Processors = append(s.Stores[i].Processors, n.name)
	}
}

// globalStore returns the public form of a global store: a source, and the processor with the store.
func (p *part) globalStore() (GlobalStore, error) {
	result := GlobalStore{Line: p.line}
	for _, n := range p.nodes {
		if len(n.list) == 0 {
			continue
		}
		if n.kind == "Source" {
			result.Topic = n.list[0]
		} else {
			result.Name = n.list[0]
		}
	}
	if result.Name == "" || result.Topic == "" {
		return GlobalStore{}, fmt.Errorf("line %d: global store %s has no topic or no store: the text is incomplete", p.line, p.id)
	}
	return result, nil
}
