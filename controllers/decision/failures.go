// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The states of an instance, and the events that change them:
//
//	             container has run for startingGrace, or has tasks
//	 starting ───────────────────────────────────────────────────► running
//	    ▲  ▲                                                        │  │  │
//	    │  └──────────────── container restarts ────────────────────┘  │  │  agent's connection dies; at most k at once
//	    │                                                              │  └────────────────────────────► suspected
//	    │ a replacement runs                              pod is gone  │                                     │
//	    │                                                              ▼                                     │ node's kubelet is silent
//	    └──────────────────────────────────────────────────────── unavailable                                ▼
//	                                                                   └──────────────────────────────────► lost
//	                                                      for lossGrace, outside of a rollout; or replicas are lowered
//
//	 running      counts as an instance.
//	 starting     counts as an instance. Its tasks are still on the others, so the plan has to cover that many failures fewer.
//	 unavailable  counts as an instance that is expected back. It covers one failure, too. During a rollout it stays so for as long as no more
//	              pods are unavailable than the plan tolerates.
//	 suspected    counts as lost, half a minute before Kubernetes reports the node. What is published stays safe for its limit.
//	 lost         does not count. The plan is made for the remaining instances.
//
// A rollout is in progress while pods are unavailable or starting and neither the template's limit nor the StreamApp has changed: limits and
// published plan stay (see rolloutInProgress). A raised limit with which pods cannot be created is withdrawn (see withdrawal.go).

// lossGrace is how long a pod may be gone, with no replacement running, before it counts as lost. It is shorter than the time in which
// Kafka moves the tasks of a silent classic member (session.timeout.ms, 45 s since Kafka 3.0), and long enough for a StatefulSet or
// Deployment to start a replacement. Until then the active plan covers the gap.
const lossGrace = 30 * time.Second

// Failures are the pod failures to plan for.
type Failures struct {
	// Instances is the number of pods to plan for: running pods, and pods that are expected back.
	Instances int
	// Unavailable is the number of instances that do not run now.
	Unavailable int
	// Starting is the number of running pods that have just started and have no tasks.
	Starting int
	// Tolerated is the number of pods that may fail with every survivor still within its limit.
	Tolerated int
	// UnavailableSince is the time since which fewer pods run than there are replicas; zero if enough run.
	UnavailableSince time.Time
	// recheckAfter is the time after which the result may change without an event; 0 if it does not.
	recheckAfter time.Duration
}

// ToTolerate returns the number of pod failures that the limits have to tolerate: at least one pod must survive.
func (f Failures) ToTolerate() int { return min(f.Tolerated, max(0, f.Instances-1)) }

// countFailures counts the instances and decides which pods are lost. podFailuresToTolerate is the user's setting; nil for the default.
// unavailableSince is the time remembered from earlier passes; zero if no pod was unavailable.
func countFailures(pods []Pod, replicas int, rollingOut bool, podFailuresToTolerate *int32, unavailableSince, now time.Time) Failures {
	running := runningPods(pods)
	onLostNodes := 0
	for i := range pods {
		if p := &pods[i]; (p.NodeLost || p.Suspected) && !p.Running() && p.Phase == corev1.PodRunning {
			onLostNodes++
		}
	}
	result := Failures{Tolerated: tolerated(running, podFailuresToTolerate)}
	unavailable := max(0, replicas-len(running)-onLostNodes)
	if unavailable > 0 {
		result.UnavailableSince = unavailableSince
		if unavailableSince.IsZero() {
			result.UnavailableSince = now
		}
		covered := rollingOut && unavailable <= max(1, result.Tolerated)
		if waited := now.Sub(result.UnavailableSince); waited < lossGrace {
			result.recheckAfter = lossGrace - waited
		} else if !covered {
			unavailable = 0
		}
	}
	if len(running) == 0 { // no pod runs yet, or none any more: the plan is for the workload as written
		result.Instances = replicas
		return result
	}
	result.Instances = len(running) + unavailable
	result.Unavailable = unavailable
	if replicas < len(running) { // scaled in: the surplus pods are about to go
		result.Instances = max(1, replicas)
	}
	return result
}

// tolerated returns the number of pod failures to plan for: the user's setting, else the most pods that share a node, at least one. A node
// with all pods does not count: without it there would be no survivor to protect.
func tolerated(running []Pod, podFailuresToTolerate *int32) int {
	if podFailuresToTolerate != nil {
		return int(*podFailuresToTolerate)
	}
	perNode := map[string]int{}
	for i := range running {
		perNode[running[i].Node]++
	}
	most := 1
	for _, count := range perNode {
		if count < len(running) {
			most = max(most, count)
		}
	}
	return most
}
