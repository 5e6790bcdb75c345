// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// namesInWarning is how many names a warning lists before it only counts.
const namesInWarning = 5

// addPartitions fills in the topics' numbers of partitions and with them the numbers of tasks: a subtopology has as
// many tasks as its largest source topic has partitions. It warns of source topics that are not to be seen.
func (g *Group) addPartitions(topics map[string]int32) {
	var unseen []string
	for i := range g.Subtopologies {
		s := &g.Subtopologies[i]
		for j := range s.SourceTopics {
			t := &s.SourceTopics[j]
			t.Partitions = max(t.Partitions, topics[t.Name])
			s.Tasks = max(s.Tasks, t.Partitions)
			if t.Partitions == 0 {
				unseen = append(unseen, t.Name)
			}
		}
		for j := range s.SinkTopics {
			s.SinkTopics[j].Partitions = topics[s.SinkTopics[j].Name]
		}
		sortTopics(s.SourceTopics)
	}
	for i := range g.Subtopologies {
		s := &g.Subtopologies[i]
		for j := range s.Changelogs {
			c := &s.Changelogs[j]
			c.Partitions = cmp.Or(c.Partitions, topics[c.Topic], s.Tasks)
		}
	}
	g.warn("%d source topics are not to be seen (missing, or the right to describe them is): %s", unseen)
}

// addChangelogs gives each changelog of a classic group, which does not tell, to the subtopology that owns it:
//
//   - the one that reads the repartition topic of the same name: the DSL names both after the store;
//   - else the only one with as many tasks as the changelog has partitions; of several, those known to have state;
//   - else, of those left, the one that has most stores so far: assumed, as tasks of one subtopology with all the
//     stores weigh more on a pod than the same stores spread.
//
// A changelog that fits none is left over from an older topology.
func (g *Group) addChangelogs(changelogs []Changelog) {
	var open []Changelog
	var leftOver, assumed []string
	owners := map[string][]*Subtopology{}
	for _, c := range changelogs {
		fitting := g.ownersOf(c)
		switch len(fitting) {
		case 0:
			leftOver = append(leftOver, c.Topic)
		case 1:
			fitting[0].Changelogs = append(fitting[0].Changelogs, c)
		default:
			open = append(open, c)
			owners[c.Topic] = fitting
		}
	}
	for _, c := range open {
		c.Assumed = true
		assumed = append(assumed, c.Topic)
		owner := slices.MaxFunc(owners[c.Topic], func(a, b *Subtopology) int {
			return cmp.Or(cmp.Compare(len(a.Changelogs), len(b.Changelogs)), cmp.Compare(len(a.SourceTopics), len(b.SourceTopics)),
				compareSubtopologies(b.ID, a.ID))
		})
		owner.Changelogs = append(owner.Changelogs, c)
	}
	for i := range g.Subtopologies {
		s := &g.Subtopologies[i]
		s.Stateful = s.Stateful || len(s.Changelogs) > 0
		sortChangelogs(s.Changelogs)
	}
	g.warn("%d changelog topics fit no subtopology, are taken as left over and do not count: %s", leftOver)
	g.warn("%d changelog topics fit several subtopologies and count for the one with most stores: %s", assumed)
}

// ownersOf gives the subtopologies that a changelog may belong to.
func (g *Group) ownersOf(c Changelog) []*Subtopology {
	repartition := strings.TrimSuffix(c.Topic, changelogSuffix) + repartitionSuffix
	var fitting, stateful []*Subtopology
	for i := range g.Subtopologies {
		s := &g.Subtopologies[i]
		if slices.ContainsFunc(s.SourceTopics, func(t Topic) bool { return t.Name == repartition }) {
			return []*Subtopology{s}
		}
		if s.Tasks != c.Partitions {
			continue
		}
		fitting = append(fitting, s)
		if s.Stateful {
			stateful = append(stateful, s)
		}
	}
	if len(stateful) > 0 {
		return stateful
	}
	return fitting
}

// warn adds a warning on a number of things by name, none if there are none.
func (g *Group) warn(format string, names []string) {
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	names = slices.Compact(names)
	shown := strings.Join(names[:min(len(names), namesInWarning)], ", ")
	if more := len(names) - namesInWarning; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	g.addWarning(fmt.Sprintf(format, len(names), shown))
}

// addWarning adds a sentence, and keeps the warnings sorted.
func (g *Group) addWarning(sentence string) {
	g.Warnings = append(g.Warnings, sentence)
	slices.Sort(g.Warnings)
	g.Warnings = slices.Compact(g.Warnings)
}
