// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// lossGrace is how long a pod may be gone, with nothing running in its place, before it counts as lost. It is shorter than the time
// in which Kafka moves the tasks of a silent classic member (session.timeout.ms, 45 s since Kafka 3.0), and long enough for a
// StatefulSet or Deployment to start a replacement. Until then the plan in force covers the gap: that is what it is for.
const lossGrace = 30 * time.Second

// losses is how many pods the plan is made for, and how many of them may be lost.
type losses struct {
	// instances is the number of pods to plan for: those that run, and those that are expected back.
	instances int
	// away is how many of the instances do not run at this moment. Their tasks may already be on the others, so the plan has to
	// cover that many losses fewer.
	away int
	// joining is how many of the pods have started only just, or have a container that is restarted, and have no tasks: as long as those
	// are on the others, what these run is on its way from one place to another, as it is when pods are away.
	joining int
	// tolerated is how many pods may be lost with every survivor still fitting.
	tolerated int
	// missingSince is since when fewer pods run than there should; zero when none is missing.
	missingSince time.Time
	// recheckAfter is when the answer may change by the clock alone; zero for never.
	recheckAfter time.Duration
}

// countLosses decides which pods are lost. A pod is lost when its node is, when replicas were lowered, or when it has been gone for
// lossGrace with nothing running in its place. What is missing because of a rollout is no loss as long as it is no more than the
// plan tolerates. survive is the user's number of losses, nil for the default: as many as one node can take away, at least one.
func countLosses(pods []podFacts, replicas int, rollingOut bool, survive *int32, missingSince, now time.Time) losses {
	running, onLostNodes, perNode := 0, 0, map[string]int{}
	for i := range pods {
		switch p := &pods[i]; {
		case p.running():
			running++
			perNode[p.node]++
		case (p.nodeLost || p.suspected) && p.phase == corev1.PodRunning:
			onLostNodes++
		}
	}
	result := losses{tolerated: tolerated(perNode, running, survive)}
	away := max(0, replicas-running-onLostNodes)
	if away > 0 {
		result.missingSince = missingSince
		if missingSince.IsZero() {
			result.missingSince = now
		}
		if waited := now.Sub(result.missingSince); waited < lossGrace {
			result.recheckAfter = lossGrace - waited
		} else if !rollingOut || away > max(1, result.tolerated) {
			away = 0
		}
	}
	if running == 0 { // nothing runs yet, or nothing any more: the plan is for the workload as it is written
		result.instances = replicas
		return result
	}
	result.instances, result.away = running+away, away
	if replicas < running { // scaled in: the pods that are still there are about to go
		result.instances = max(1, replicas)
	}
	return result
}

// tolerated is the number of losses to plan for: what the user says, else the most pods that one node can take away, and at least
// one. A node that holds all of them does not count: with it nobody survives who would have to be protected.
func tolerated(perNode map[string]int, running int, survive *int32) int {
	if survive != nil {
		return int(*survive)
	}
	most := 1
	for _, count := range perNode {
		if count < running {
			most = max(most, count)
		}
	}
	return most
}

// toSurvive is how many losses a plan for so many pods, running and away, has to cover, so that in the end instances - tolerated pods
// hold everything.
func (l losses) toSurvive(pods int) int {
	return max(0, pods-max(1, l.instances-l.tolerated))
}
