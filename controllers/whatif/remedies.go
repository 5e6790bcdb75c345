// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"

	"streamweir.dev/streamweir/controllers/decision"
)

const (
	// maxReplicas is the largest number of replicas that is tried.
	maxReplicas = 200
	// limitSteps is how often a limit is raised to its own required limit: the heap of a JVM grows with the limit.
	limitSteps = 32
	// limitStep is the smallest step from one limit to the next.
	limitStep = 64 << 20
)

// remedies returns the changes with which the application fits: a limit, or replicas. Each was tried.
func remedies(world decision.World, memory decision.Memory, d *decision.Decision) []string {
	var texts []string
	if limit := fittingLimit(world, memory, d.Plan.Required); limit > 0 {
		texts = append(texts, fmt.Sprintf("raise the limit of container %s to %s", d.Facts.Container.Name, quantity(limit)))
	}
	if world.ColdStart {
		return texts // the first pod has all tasks with any number of replicas
	}
	for n := d.Facts.Failures.Instances + 1; n <= min(maxReplicas, d.Plan.Tasks); n++ {
		if answer := tried(startedAnew(world, int32(n)), memory); answer != nil && answer.fits() {
			return append(texts, fmt.Sprintf("run %d replicas under the limit of %s", n, answer.Limit))
		}
	}
	return texts
}

// fittingLimit returns a limit of the template that holds its own required limit; 0 if there is none.
func fittingLimit(world decision.World, memory decision.Memory, required int64) int64 {
	for range limitSteps {
		if required >= decision.NoLimit {
			return 0
		}
		answer := tried(limitedTo(world, quantity(required)), memory)
		switch {
		case answer == nil || answer.RequiredLimit == nil:
			return 0
		case answer.fits():
			return required
		}
		required = max(answer.RequiredLimit.Value(), required+limitStep)
	}
	return 0
}

// tried returns the answer for a world; nil if it cannot be planned.
func tried(world decision.World, memory decision.Memory) *Answer {
	d := decision.Decide(world, memory)
	if !d.Plan.TasksKnown || d.Plan.Check() != nil {
		return nil
	}
	return answerOf(&d)
}
