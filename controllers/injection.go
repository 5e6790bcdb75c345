// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// injectionBlocked says why the plan cannot be injected into new pods, if it cannot.
func injectionBlocked(obs *observation) fault {
	if obs.container == nil {
		return fault{}
	}
	options, variable := obs.container.options, string(optionsVariable(obs.app))
	switch {
	case obs.container.bestEffort:
		return fault{v1alpha1.ReasonBestEffort, fmt.Sprintf(
			"the pods have neither requests nor limits (QoS class BestEffort): set a memory limit on container %s", obs.container.name)}
	case obs.container.limit == nil:
		return fault{v1alpha1.ReasonNoMemoryLimit, fmt.Sprintf(
			"container %s must have a memory limit: without one there is nothing to divide", obs.container.name)}
	case options.fromValue:
		return fault{v1alpha1.ReasonOptionsNotVisible, fmt.Sprintf(
			"container %s sets %s by valueFrom, to which nothing can be added: use a plain value, or set `jvm.optionsVariable` to the other variable",
			obs.container.name, variable)}
	case options.foreignMount != "":
		return fault{v1alpha1.ReasonConflict, fmt.Sprintf("container %s mounts something of its own at %s: the plan has to go to %s",
			obs.container.name, options.foreignMount, v1alpha1.PlanMountPath)}
	case options.foreignVolume:
		return fault{v1alpha1.ReasonConflict, fmt.Sprintf("the pod template has a volume %s or %s of its own: the names are those of plan and agent",
			v1alpha1.PlanVolume, v1alpha1.AgentVolume)}
	case options.foreignFile && optionsVariable(obs.app) == v1alpha1.JavaToolOptions:
		return fault{v1alpha1.ReasonConflict, fmt.Sprintf(
			"container %s names an options file of its own in %s: a JVM takes only one, so its options must stand in the variable itself",
			obs.container.name, variable)}
	case len(options.secrets) > 0 && options.value == "" && obs.app.Spec.JVM.OwnOptions == nil:
		return fault{v1alpha1.ReasonOptionsNotVisible, fmt.Sprintf(
			"container %s takes its environment from Secret %s, which may hold %s and which the operator may not read: "+
				"say in `jvm.ownOptions` what it holds, $(%s) to keep it, or \"\" if nothing",
			obs.container.name, options.secrets[0], variable, variable)}
	}
	return fault{}
}

// wantInjection says what the admission policy is to do with new pods.
func (want *desired) wantInjection(obs *observation, walls envelope) {
	variable := optionsVariable(obs.app)
	want.injection = &v1alpha1.PodInjectionSpec{
		Owner:           v1alpha1.WorkloadOwner{Kind: obs.workload.kind, Name: obs.workload.name},
		Container:       obs.container.name,
		OptionsVariable: variable,
		Options:         v1alpha1.LauncherOptions,
		OwnOptions:      want.ownOptions(obs),
		PlanConfigMap:   planConfigMapName(obs.app.Name),
		PlanRevision:    want.generation,
		AgentConfigMap:  obs.agentName,
		ExcludedImages:  obs.exceptedImages(),
	}
	if variable == v1alpha1.JavaToolOptions {
		want.injection.Options = v1alpha1.VMOptions
	}
	if walls.managed() && want.limit != walls.template && want.withdrawn == "" {
		want.injection.Memory = injectedMemory(obs, want.limit, want.typical.expected)
	}
}

// ownOptions is what follows the plan's options where the container's env has no value of its own. What a ConfigMap gives by envFrom
// stays a reference, so that a change of the ConfigMap takes effect as before. Where the injection is blocked nothing is said: the
// policy then leaves a container with envFrom alone.
func (want *desired) ownOptions(obs *observation) *string {
	switch own := obs.app.Spec.JVM.OwnOptions; {
	case own != nil:
		return own
	case want.blocked.found():
		return nil
	case obs.inherited != nil:
		return new(fmt.Sprintf("$(%s)", optionsVariable(obs.app)))
	case obs.container.options.hasEnvFrom:
		return new("")
	default: // a template that gains envFrom while the operator is away is left alone until it has looked
		return nil
	}
}

func injectedMemory(obs *observation, limit, expected int64) v1alpha1.InjectedMemory {
	memory := v1alpha1.InjectedMemory{ForLimit: new(*obs.container.limit), Limit: new(quantity(limit))}
	if request := requestFor(obs, limit, expected); request > 0 {
		memory.Request = new(quantity(request))
	}
	if limit < obs.container.limit.Value() {
		memory.ForImage = obs.container.image
	}
	return memory
}

// requestFor is the memory request that goes with a limit; zero: the pod keeps its own. It never changes the QoS class.
func requestFor(obs *observation, limit, expected int64) int64 {
	c := obs.container
	if c.guaranteed {
		return limit
	}
	switch obs.app.Spec.Memory.Requests {
	case v1alpha1.RequestsFollowLimit:
		if c.cpuBound { // an equal pair would make the pod Guaranteed
			return 0
		}
		return limit
	case v1alpha1.RequestsExpected:
		if c.cpuBound && expected >= limit {
			return 0
		}
		return min(expected, limit)
	default:
		return 0
	}
}

// withdrawnFor is how long injected memory stays withdrawn before it is tried again: room is made by people.
const withdrawnFor = time.Hour

// withdrawn decides whether injected memory has to be taken back, since pods cannot be created or placed with it. It stays withdrawn
// for withdrawnFor, whatever limit is wanted meanwhile, unless the template's limit or the StreamApp changes.
func withdrawn(obs *observation, template int64) string {
	if obs.injection == nil {
		return ""
	}
	note := obs.injection.Annotations[annotationWithdrawn]
	seen := obs.app.Status.ObservedGeneration // 0: no status was written yet
	edited := seen > 0 && seen != obs.app.Generation
	if forLimit, since := readWithdrawn(note); forLimit == template && obs.now.Sub(since) < withdrawnFor && !edited {
		return note
	}
	if obs.injection.Spec.Memory.Limit == nil || !placementFails(obs) {
		return ""
	}
	// The limit that failed, not the one wanted now: a pod that cannot be created counts as lost in time, and the others then need more.
	return fmt.Sprintf("%d for %d since %s", obs.injection.Spec.Memory.Limit.Value(), template, obs.now.UTC().Format(time.RFC3339))
}

// readWithdrawn reads for which template limit, and since when, memory is withdrawn; zero if it is not.
func readWithdrawn(note string) (forLimit int64, since time.Time) {
	var limit int64
	var when string
	if _, err := fmt.Sscanf(note, "%d for %d since %s", &limit, &forLimit, &when); err != nil {
		return 0, time.Time{}
	}
	since, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return 0, time.Time{}
	}
	return forLimit, since
}

// placementFails tells whether pods with the injected memory are refused, or find no node for the injected request. A pod that has not even been created for as
// long as a loss takes to count is one that was refused, since quotas and LimitRanges speak after the injection; unless another pod is
// still on its way up or down, for which the workload's controller waits.
func placementFails(obs *observation) bool {
	refused := strings.Contains(obs.workload.createFails, "memory") // LimitRanges and quotas name what is exceeded
	unplaced := func(p podFacts) bool { return p.injected && p.lacksMemory }
	if refused || obs.injection.Spec.Memory.Request != nil && slices.ContainsFunc(obs.pods, unplaced) {
		return true
	}
	settled := func(since time.Time) bool {
		return !since.IsZero() && obs.now.Sub(since) >= lossGrace+obs.workload.minReady
	}
	for i := range obs.pods {
		if !settled(obs.pods[i].readySince) {
			return false
		}
	}
	since := obs.app.Status.PodsUnavailableSinceTime
	return len(obs.pods) < obs.workload.replicas && since != nil && settled(since.Time)
}
