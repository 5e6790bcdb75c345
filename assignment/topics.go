// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// namesInWarning is the maximum number of names in a warning.
const namesInWarning = 5

// addPartitions adds the numbers of partitions and of tasks: a subtopology has as many tasks as its largest source topic has partitions. It
// adds a warning for source topics without a description.
func (g *Group) addPartitions(topics map[string]int32) {
	var missing []string
	for i := range g.Subtopologies {
		subtopology := &g.Subtopologies[i]
		for j := range subtopology.SourceTopics {
			topic := &subtopology.SourceTopics[j]
			topic.Partitions = max(topic.Partitions, topics[topic.Name])
			subtopology.Tasks = max(subtopology.Tasks, topic.Partitions)
			if topic.Partitions == 0 {
				missing = append(missing, topic.Name)
			}
		}
		for j := range subtopology.SinkTopics {
			topic := &subtopology.SinkTopics[j]
			topic.Partitions = topics[topic.Name]
		}
		sortTopics(subtopology.SourceTopics)
		for j := range subtopology.Changelogs {
			changelog := &subtopology.Changelogs[j]
			changelog.Partitions = cmp.Or(changelog.Partitions, topics[changelog.Topic], subtopology.Tasks)
		}
	}
	g.warn("%d source topics are missing, or the permission to describe them is: %s", missing)
}

// addChangelogs adds each changelog of a classic group, which does not contain this information, to the subtopology that owns it:
//
//   - The one with the repartition topic of the same name as a source: the DSL names both after the store.
//   - Otherwise the only one with as many tasks as the changelog has partitions. Those with known state take precedence.
//   - Otherwise the one of these with the most stores so far. This is an assumption on the safe side: tasks of one subtopology with all
//     stores weigh more on a pod than the same stores spread over several.
//
// A changelog without a candidate is left over from an older topology.
func (g *Group) addChangelogs(changelogs []Changelog) {
	var ambiguous []Changelog
	var leftOver, assumed []string
	owners := map[string][]*Subtopology{}
	for _, changelog := range changelogs {
		candidates := g.ownersOf(changelog)
		switch len(candidates) {
		case 0:
			leftOver = append(leftOver, changelog.Topic)
		case 1:
			candidates[0].Changelogs = append(candidates[0].Changelogs, changelog)
		default:
			ambiguous = append(ambiguous, changelog)
			owners[changelog.Topic] = candidates
		}
	}
	for _, changelog := range ambiguous {
		changelog.Assumed = true
		assumed = append(assumed, changelog.Topic)
		owner := slices.MaxFunc(owners[changelog.Topic], func(a, b *Subtopology) int {
			return cmp.Or(cmp.Compare(len(a.Changelogs), len(b.Changelogs)), cmp.Compare(len(a.SourceTopics), len(b.SourceTopics)),
				compareSubtopologies(b.ID, a.ID))
		})
		owner.Changelogs = append(owner.Changelogs, changelog)
	}
	for i := range g.Subtopologies {
		subtopology := &g.Subtopologies[i]
		subtopology.Stateful = subtopology.Stateful || len(subtopology.Changelogs) > 0
		sortChangelogs(subtopology.Changelogs)
	}
	g.warn("%d changelog topics belong to no subtopology and are ignored as left over: %s", leftOver)
	g.warn("%d changelog topics may belong to several subtopologies and count for the one with the most stores: %s", assumed)
}

// ownersOf returns the candidates for the owner of a changelog.
func (g *Group) ownersOf(changelog Changelog) []*Subtopology {
	repartition := strings.TrimSuffix(changelog.Topic, changelogSuffix) + repartitionSuffix
	var candidates, stateful []*Subtopology
	for i := range g.Subtopologies {
		subtopology := &g.Subtopologies[i]
		if slices.ContainsFunc(subtopology.SourceTopics, func(t Topic) bool { return t.Name == repartition }) {
			return []*Subtopology{subtopology}
		}
		if subtopology.Tasks != changelog.Partitions {
			continue
		}
		candidates = append(candidates, subtopology)
		if subtopology.Stateful {
			stateful = append(stateful, subtopology)
		}
	}
	if len(stateful) > 0 {
		return stateful
	}
	return candidates
}

// warn adds a warning with the number of names and the first of them, and nothing for an empty list.
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

// addWarning adds a sentence and keeps the warnings sorted, without duplicates.
func (g *Group) addWarning(sentence string) {
	g.Warnings = append(g.Warnings, sentence)
	slices.Sort(g.Warnings)
	g.Warnings = slices.Compact(g.Warnings)
}
