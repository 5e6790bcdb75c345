// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
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
//	                                      for lossGrace, without a rollout or a pending replacement; or replicas are lowered
//
//	 running      counts as an instance.
//	 starting     counts as an instance. Its tasks are still on the others, so the plan has to cover that many failures fewer.
//	 unavailable  counts as an instance expected back. It covers one failure, too. It stays so during a rollout, and for
//	              replacementGrace while its replacement is pending, as long as no more pods are unavailable than are covered.
//	 suspected    counts as lost, half a minute before Kubernetes reports the node. The published plan stays safe for its limit.
//	 lost         does not count. The plan is made for the remaining instances.
//
// A rollout is in progress while pods are unavailable or starting and neither the template's limit nor the StreamApp has changed: limits and
// published plan stay (see rolloutInProgress). A raised limit with which pods cannot be created is withdrawn (see withdrawal.go).

// lossGrace is how long a pod may be gone, with no replacement running, before it counts as lost. It is shorter than the time in which
// Kafka moves the tasks of a silent classic member (session.timeout.ms, 45 s since Kafka 3.0), and long enough for a StatefulSet or
// Deployment to start a replacement. Until then the active plan covers the gap.
const lossGrace = 30 * time.Second

// replacementGrace is how long a pending replacement keeps a pod from counting as lost: it waits for an image or for a new node. The Cluster
// Autoscaler gives a node 15 minutes to appear (--max-node-provision-time), and most clouds need 1 to 5.
const replacementGrace = 15 * time.Minute

// Failures are the pod failures to plan for.
type Failures struct {
	// Instances is the number of pods to plan for: running pods, and pods expected back.
	Instances int
	// Unavailable is the number of instances that do not run now.
	Unavailable int
	// Starting is the number of running pods that have just started and have no tasks.
	Starting int
	// Tolerated is the number of pods that may fail with every survivor still within its limit.
	Tolerated int
	// UnavailableSince is the time since which pods are unavailable that are not expected back: no replacement is pending, or more pods are
	// unavailable than are covered. It is zero without such pods.
	UnavailableSince time.Time
	// recheckAfter is the time after which the result may change without an event; 0 if it does not.
	recheckAfter time.Duration
}

// ToTolerate returns the number of pod failures that the limits have to tolerate: at least one pod must survive.
func (f Failures) ToTolerate() int { return min(f.Tolerated, max(0, f.Instances-1)) }

// countFailures counts the instances and decides which pods are lost. podFailuresToTolerate is the user's setting; nil for the default.
// unavailableSince is the result's UnavailableSince of earlier passes.
func countFailures(pods []Pod, workload *Workload, podFailuresToTolerate *int32, unavailableSince, now time.Time) Failures {
	running := runningPods(pods)
	onLostNodes := 0
	for i := range pods {
		if p := &pods[i]; (p.NodeLost || p.Suspected) && !p.Running() && p.Phase == corev1.PodRunning {
			onLostNodes++
		}
	}
	result := Failures{Tolerated: tolerated(workload, podFailuresToTolerate)}
	unavailable := max(0, workload.Replicas-len(running)-onLostNodes)
	covered := max(1, result.Tolerated)
	if workload.RollingOut {
		covered = max(covered, workload.MaxUnavailable)
	}
	replaced, recheck := pendingReplacements(pods, now)
	missing := unavailable > replaced && !workload.RollingOut
	if unavailable > covered || missing {
		result.UnavailableSince = unavailableSince
		if unavailableSince.IsZero() {
			result.UnavailableSince = now
		}
		if waited := now.Sub(result.UnavailableSince); waited < lossGrace {
			recheck = Earliest(recheck, lossGrace-waited)
		} else {
			unavailable = 0
		}
	}
	if unavailable > 0 {
		result.recheckAfter = recheck
	}
	if len(running) == 0 { // no pod runs yet, or none any more: the plan is for the workload as written
		result.Instances = workload.Replicas
		return result
	}
	result.Instances = len(running) + unavailable
	result.Unavailable = unavailable
	if workload.Replicas < len(running) { // scaled in: the surplus pods are about to go
		result.Instances = max(1, workload.Replicas)
	}
	return result
}

// pendingReplacements counts the pods being deleted within their grace period, and those that were created less than
// replacementGrace ago and do not run yet. It also returns the time after which the first of them does not count any more; 0 without one.
func pendingReplacements(pods []Pod, now time.Time) (count int, recheckAfter time.Duration) {
	for i := range pods {
		p := &pods[i]
		until := p.TerminatesBy
		if !p.Terminating {
			until = p.Created.Add(replacementGrace)
		}
		pending := p.Phase == corev1.PodPending || (p.Terminating && !p.NodeLost)
		if pending && now.Before(until) {
			count++
			recheckAfter = Earliest(recheckAfter, until.Sub(now))
		}
	}
	return count, recheckAfter
}

// tolerated returns the number of pod failures to plan for: the user's setting, else the number of pods that a rolling update takes away at
// once, at least one. The placement of pods does not matter: it changes with every drain, and limits are not lowered in place.
func tolerated(workload *Workload, podFailuresToTolerate *int32) int {
	if podFailuresToTolerate != nil {
		return int(*podFailuresToTolerate)
	}
	return max(1, workload.MaxUnavailable)
}

// CrowdedNode is the node with the most running pods of an application.
type CrowdedNode struct {
	Name string
	Pods int
}

// crowdedNode returns the node whose failure would take more pods than are tolerated; none if there is no such node, or if it has all pods:
// then no survivor is left to protect. Of several with as many pods it is the first by name.
func crowdedNode(pods []Pod, tolerated int) CrowdedNode {
	running := runningPods(pods)
	perNode := map[string]int{}
	for i := range running {
		perNode[running[i].Node]++
	}
	var crowded CrowdedNode
	for _, name := range slices.Sorted(maps.Keys(perNode)) {
		count := perNode[name]
		if name != "" && count > max(1, tolerated, crowded.Pods) && count < len(running) {
			crowded = CrowdedNode{Name: name, Pods: count}
		}
	}
	return crowded
}
