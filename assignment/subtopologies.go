// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"math"
	"slices"
)

// subtopologies collects the subtopologies of an application.
type subtopologies struct {
	byID map[string]*Subtopology
}

func newSubtopologies() *subtopologies {
	return &subtopologies{byID: map[string]*Subtopology{}}
}

// task adds a task and returns its subtopology.
func (s *subtopologies) task(t Task) *Subtopology {
	found := s.byID[t.Subtopology]
	if found == nil {
		found = &Subtopology{ID: t.Subtopology}
		s.byID[t.Subtopology] = found
	}
	found.Tasks = max(found.Tasks, min(t.Partition, math.MaxInt32-1)+1)
	return found
}

// source adds a task and one of its source topics.
func (s *subtopologies) source(t Task, topic string) {
	found := s.task(t)
	if !slices.ContainsFunc(found.SourceTopics, func(known Topic) bool { return known.Name == topic }) {
		found.SourceTopics = append(found.SourceTopics, Topic{Name: topic})
	}
}

// sorted returns the subtopologies sorted by ID.
func (s *subtopologies) sorted() []Subtopology {
	all := make([]Subtopology, 0, len(s.byID))
	for _, found := range s.byID {
		sortTopics(found.SourceTopics)
		all = append(all, *found)
	}
	sortSubtopologies(all)
	return all
}

func sortTopics(topics []Topic) {
	slices.SortFunc(topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
}

func sortSubtopologies(all []Subtopology) {
	slices.SortFunc(all, func(a, b Subtopology) int { return compareSubtopologies(a.ID, b.ID) })
}
