// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// globalSuffix ends the first line of a global store (InternalTopologyBuilder.GlobalStore#toString).
const globalSuffix = " for global store (will not generate tasks)"

// parser reads a description line by line.
type parser struct {
	line  int
	named string // the named topology of the header; empty without one
	parts []*part
	old   []GlobalStore // global stores in the format of Kafka 0.11 to 1.1
	ids   map[string]int
	// header: the text has a header. list: "none" may follow in place of a list.
	header, list bool
}

// part is a sub-topology during parsing.
type part struct {
	id, named string
	line      int
	global    bool
	nodes     []*node
}

// Parse parses the output of Topology#describe(). Its errors begin with the number of the line.
func Parse(text string) (Topology, error) {
	p := parser{ids: map[string]int{}}
	for line := range strings.SplitSeq(text, "\n") {
		p.line++
		if err := p.read(strings.TrimSpace(line)); err != nil {
			return Topology{}, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	return p.finish()
}

func (p *parser) read(line string) error {
	switch kind, rest, _ := strings.Cut(line, ": "); {
	case line == "":
		return nil
	case line == "none" && p.list:
		return nil
	case p.readHeader(line):
		return nil
	case kind == "Sub-topology":
		return p.begin(rest)
	case kind == "GlobalStore":
		return p.oldGlobalStore(rest)
	case kind == "Source" || kind == "Processor" || kind == "Sink":
		return p.node(kind, rest)
	case strings.HasPrefix(line, "-->") || strings.HasPrefix(line, "<--"):
		return p.arrowLine(line)
	}
	return fmt.Errorf("%s is not a line of Topology#describe(): the text must be its complete output and nothing else", quoted(line))
}

// readHeader reports whether the line is a header. The first one may have a prefix from a log.
func (p *parser) readHeader(line string) bool {
	fresh := len(p.parts) == 0 && strings.HasSuffix(strings.ToLower(line), "topologies:")
	name, isNamed := strings.CutPrefix(line, "Topology: ")
	switch {
	case fresh, line == "Global Stores:":
		p.list = true
	case isNamed && strings.HasSuffix(name, ":"):
		p.named = strings.TrimSuffix(name, ":")
	default:
		return false
	}
	p.header = true
	return true
}

func (p *parser) begin(rest string) error {
	number, global := strings.CutSuffix(rest, globalSuffix)
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return fmt.Errorf("sub-topology %s: its id is a number, as in \"Sub-topology: 0\"", quoted(rest))
	}
	id := strconv.FormatUint(n, 10)
	if p.named != "" {
		id = p.named + "__" + id
	}
	if line, twice := p.ids[id]; twice {
		return fmt.Errorf("duplicate sub-topology %s, first on line %d: the text must describe one application", id, line)
	}
	p.ids[id] = p.line
	p.parts = append(p.parts, &part{id: id, named: p.named, line: p.line, global: global})
	p.list = false
	return nil
}

// oldGlobalStoreLine matches topic and store of a global store of Kafka 0.11 to 1.1.
var oldGlobalStoreLine = regexp.MustCompile(`\(topic: ([^)]+)\) -> .*?\(store: (.+)\)$`)

// oldGlobalStore reads "SOURCE(topic: T) -> PROCESSOR(store: S)" (TopologyDescription.GlobalStore#toString, Kafka 0.11 to 1.1).
func (p *parser) oldGlobalStore(rest string) error {
	match := oldGlobalStoreLine.FindStringSubmatch(rest)
	if match == nil {
		return errors.New("a global store must be \"GlobalStore: SOURCE(topic: TOPIC) -> PROCESSOR(store: STORE)\"")
	}
	p.old = append(p.old, GlobalStore{Name: match[2], Line: p.line, Topic: match[1]})
	return nil
}

// finish checks the parts and returns their public form.
func (p *parser) finish() (Topology, error) {
	var t Topology
	nodes := map[string]int{}
	for _, part := range p.parts {
		if err := part.check(nodes); err != nil {
			return Topology{}, err
		}
		if !part.global {
			t.Subtopologies = append(t.Subtopologies, part.subtopology())
			continue
		}
		store, err := part.globalStore()
		if err != nil {
			return Topology{}, err
		}
		t.GlobalStores = append(t.GlobalStores, store)
	}
	t.GlobalStores = append(t.GlobalStores, p.old...)
	if len(t.Subtopologies) > 0 || len(t.GlobalStores) > 0 {
		return t, nil
	}
	if p.header {
		return Topology{}, errors.New("line 1: the topology is empty: describe it after all its nodes are added")
	}
	return Topology{}, errors.New("line 1: the text is empty: it must be the output of Topology#describe()")
}

// quoted quotes the beginning of a text for an error.
func quoted(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return strconv.Quote(text)
}
