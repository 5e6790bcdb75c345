// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// desired is what a pass wants the world to be. Making it is pure.
type desired struct {
	// blocked says why nothing is injected; none found: the plan is.
	blocked fault
	// held: what is published stays as it is, whatever the pass would write now. The condition Applied says why.
	held fault

	// typical is the plan of the typical pod, under the limit that a new pod gets.
	typical published
	// limit is what a new pod gets; capped says which wall stands in the way of the need, if one does.
	limit  int64
	capped string

	planData   map[string]string // of the ConfigMap; nil: none is wanted
	generation string            // names planData
	injection  *v1alpha1.PodInjectionSpec
	withdrawn  string // the value of annotationWithdrawn on the injection
	resizes    []resizeWanted
	touches    []string // pods that have not been told of the generation
}

// resizeWanted is a limit to be raised in place.
type resizeWanted struct {
	pod      *podFacts
	from, to int64
	request  int64 // zero: the request stays
}

// decide says what should be there.
func decide(obs *observation, lost losses, p *planning) *desired {
	want := &desired{blocked: injectionBlocked(obs)}
	if obs.workload == nil || obs.container == nil || obs.container.limit == nil || obs.rival != "" {
		return want
	}
	walls := envelopeOf(obs)
	want.limit = walls.template
	if walls.managed() {
		want.limit, want.capped = walls.clamp(p.need)
		if settling(obs, lost) && obs.injection.Spec.Memory.Limit != nil {
			want.limit = max(walls.template, obs.injection.Spec.Memory.Limit.Value())
		}
	}
	want.typical = p.under(want.limit)
	if effectiveMode(obs.app) != v1alpha1.ModeEnforce {
		return want
	}
	if want.held = holds(obs, p, want); want.held.found() {
		return want
	}
	want.resizes = resizesWanted(obs, p, walls)
	newPods := want.limit
	if walls.managed() && want.limit != walls.template {
		if want.withdrawn = withdrawn(obs, want.limit, walls.template); want.withdrawn != "" {
			newPods = walls.template
		}
	}
	if want.withdrawn == "" && settling(obs, lost) {
		want.planData = obs.planConfigMap.Data
	} else {
		want.planData = planData(obs, p, newPods)
	}
	want.generation = generationOf(want.planData)
	want.wantInjection(obs, walls)
	for i := range obs.pods {
		if pod := &obs.pods[i]; pod.injected && pod.exists() && pod.planGeneration != want.generation {
			want.touches = append(want.touches, pod.name)
		}
	}
	return want
}

func effectiveMode(app *v1alpha1.StreamApp) v1alpha1.Mode {
	return cmp.Or(app.Spec.Mode, v1alpha1.ModeObserve)
}

// injectionBlocked says why the plan cannot be injected into new pods, if it cannot.
func injectionBlocked(obs *observation) fault {
	if obs.container == nil {
		return fault{}
	}
	options, variable := obs.container.options, string(optionsVariable(obs.app))
	switch {
	case obs.container.bestEffort:
		return fault{v1alpha1.ReasonBestEffort, "the pods have neither requests nor limits (QoS class BestEffort): set a memory limit on container " + obs.container.name}
	case obs.container.limit == nil:
		return fault{v1alpha1.ReasonNoMemoryLimit, "container " + obs.container.name + " must have a memory limit: without one there is nothing to divide"}
	case options.fromValue:
		return fault{v1alpha1.ReasonOptionsNotVisible, fmt.Sprintf(
			"container %s sets %s by valueFrom, to which nothing can be added: use a plain value, or set `jvm.optionsVariable` to the other variable", obs.container.name, variable)}
	case options.foreignMount != "":
		return fault{v1alpha1.ReasonConflict, fmt.Sprintf("container %s mounts something of its own at %s: the plan has to go to %s",
			obs.container.name, options.foreignMount, v1alpha1.PlanMountPath)}
	case options.foreignVolume:
		return fault{v1alpha1.ReasonConflict, fmt.Sprintf("the pod template has a volume %s of its own: the name is the plan's", v1alpha1.PlanVolume)}
	case options.foreignFile && optionsVariable(obs.app) == v1alpha1.JavaToolOptions:
		return fault{v1alpha1.ReasonConflict, fmt.Sprintf(
			"container %s names an options file of its own in %s: a JVM takes only one, so its options must stand in the variable itself",
			obs.container.name, variable)}
	case len(options.secrets) > 0 && options.value == "" && obs.app.Spec.JVM.OwnOptions == nil:
		return fault{v1alpha1.ReasonOptionsNotVisible, fmt.Sprintf(
			"container %s takes its environment from Secret %s, which may hold %s and which the operator may not read: say in `jvm.ownOptions` what it holds, $(%s) to keep it, or \"\" if nothing",
			obs.container.name, options.secrets[0], variable, variable)}
	}
	return fault{}
}

// holds says why the pass must leave things as they are, if it must.
func holds(obs *observation, p *planning, want *desired) fault {
	switch {
	case len(p.invalid) > 0:
		return fault{v1alpha1.ReasonInvalidSettings, strings.Join(p.invalid, "; ")}
	case !p.tasksKnown && obs.injection != nil:
		return fault{v1alpha1.ReasonAssignmentUnknown, "it is not known which tasks there are; the last plan stays in force"}
	case obs.workload.replicas == 0 && len(obs.pods) == 0 && obs.injection != nil:
		return fault{v1alpha1.ReasonNoPods, "the workload is scaled to zero; the last plan stays in force"}
	case p.needNow > want.limit, !p.tasksKnown && !want.typical.fits:
		return fault{v1alpha1.ReasonShortage, shortageMessage(p, want)}
	}
	return fault{}
}

func shortageMessage(p *planning, want *desired) string {
	message := fmt.Sprintf("a limit of %s does not hold what a pod runs now", humanBytes(want.limit))
	if p.tasksKnown && p.needNow < neverFits {
		message = fmt.Sprintf("%s: %s are needed", message, humanBytes(p.needNow))
	}
	if want.capped != "" {
		message += ", but " + want.capped
	}
	if want.typical.shortage != "" {
		message += " (" + want.typical.shortage + ")"
	}
	return message
}

// settling tells whether pods are away that are expected back, or have just come back, as in a rollout. What the others run then is on its way from one place to
// another, so the plan in force stays for the pods that are to come; it covers the gap. A changed template or StreamApp is another
// matter.
func settling(obs *observation, lost losses) bool {
	if lost.away+lost.joining == 0 || obs.injection == nil || obs.planConfigMap == nil || obs.app.Status.ObservedGeneration != obs.app.Generation {
		return false
	}
	if forLimit := obs.injection.Spec.Memory.ForLimit; forLimit != nil {
		return forLimit.Cmp(*obs.container.limit) == 0
	}
	return !slices.ContainsFunc(obs.pods, func(p podFacts) bool { // then the template's limit was changed, and the plan must follow
		return p.exists() && p.limit != nil && p.limit.Cmp(*obs.container.limit) != 0
	})
}

// planData computes what the mounted files say. They must be safe for the smallest limit that a pod which reads them has, or is about
// to have: so a larger plan is published only after the kubelet has raised the limits, and a smaller one before new pods get less.
func planData(obs *observation, p *planning, limit int64) map[string]string {
	for i := range obs.pods {
		if pod := &obs.pods[i]; pod.injected && pod.exists() && pod.effectiveLimit() != nil {
			limit = min(limit, pod.effectiveLimit().Value())
		}
	}
	files := p.publish(limit)
	if !files.fits && obs.planConfigMap != nil { // a pod with too little is being raised: nothing that is written now would help it
		return obs.planConfigMap.Data
	}
	return map[string]string{
		v1alpha1.PlanOptionsKey: strings.Join(files.options, "\n") + "\n",
		planPropertiesKey:       strings.Join(files.properties, "\n") + "\n",
	}
}

// generationOf names the content of a plan: the same content has the same name, whoever computes it and whenever.
func generationOf(data map[string]string) string {
	keys := make([]string, 0, len(data))
	for key := range data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	hash := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(hash, "%s\x00%s\x00", key, data[key])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
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
		PlanGeneration:  want.generation,
	}
	if variable == v1alpha1.JavaToolOptions {
		want.injection.Options = v1alpha1.VMOptions
	}
	if walls.managed() && want.limit != walls.template && want.withdrawn == "" {
		want.injection.Memory = injectedMemory(obs, want.limit, walls.template, want.typical.expected)
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

func injectedMemory(obs *observation, limit, template, expected int64) v1alpha1.InjectedMemory {
	memory := v1alpha1.InjectedMemory{ForLimit: new(*obs.container.limit), Limit: new(quantity(limit))}
	if request := requestFor(obs, limit, expected); request > 0 {
		memory.Request = new(quantity(request))
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

// withdrawn decides whether injected memory has to be taken back, since pods cannot be created or placed with it. It stays withdrawn
// for this limit and larger ones until the template's limit changes.
func withdrawn(obs *observation, limit, template int64) string {
	if obs.injection == nil {
		return ""
	}
	var was, forLimit int64
	if _, err := fmt.Sscanf(obs.injection.Annotations[annotationWithdrawn], "%d for %d", &was, &forLimit); err == nil && forLimit == template && limit >= was {
		return obs.injection.Annotations[annotationWithdrawn]
	}
	if obs.injection.Spec.Memory.Limit == nil || !placementFails(obs) {
		return ""
	}
	// The limit that failed, not the one wanted now: a pod that cannot be created counts as lost in time, and the others then need more.
	return fmt.Sprintf("%d for %d", obs.injection.Spec.Memory.Limit.Value(), template)
}

// placementFails tells whether pods with the injected memory are refused, or find no node. A pod that has not even been created for as
// long as a loss takes to count is one that was refused, since quotas and LimitRanges speak after the injection; unless another pod is
// still on its way up or down, for which the workload's controller waits.
func placementFails(obs *observation) bool {
	if obs.workload.createFails != "" || slices.ContainsFunc(obs.pods, func(p podFacts) bool { return p.injected && p.lacksMemory }) {
		return true
	}
	settled := func(since time.Time) bool { return !since.IsZero() && obs.now.Sub(since) >= lossGrace }
	for i := range obs.pods {
		if !settled(obs.pods[i].readySince) {
			return false
		}
	}
	since := obs.app.Status.PodsMissingSinceTime
	return len(obs.pods) < obs.workload.replicas && since != nil && settled(since.Time)
}

// resizesWanted lists the pods whose need is above the limit that they have. Limits are only ever raised in place: a kubelet refuses
// to lower one below what is in use, page cache included (measured, Kubernetes 1.37).
func resizesWanted(obs *observation, p *planning, walls envelope) []resizeWanted {
	if !walls.managed() || !p.tasksKnown {
		return nil
	}
	var wanted []resizeWanted
	for i := range obs.pods {
		pod := &obs.pods[i]
		has := pod.effectiveLimit()
		if outcome := outcomeOf(pod); !pod.manageable() || pod.limit == nil || has == nil ||
			outcome != v1alpha1.ResizeNone && outcome != v1alpha1.ResizeApplied { // one resize at a time
			continue
		}
		need := p.pods[pod.name].need
		to, _ := walls.clamp(need)
		if need <= has.Value() || to <= has.Value() || to <= pod.limit.Value() { // it holds, cannot grow, or was asked for already
			continue
		}
		wanted = append(wanted, resizeWanted{pod: pod, from: pod.limit.Value(), to: to, request: resizedRequest(obs, pod, to)})
	}
	return wanted
}

func resizedRequest(obs *observation, pod *podFacts, to int64) int64 {
	if pod.qos == corev1.PodQOSGuaranteed || obs.app.Spec.Memory.Requests == v1alpha1.RequestsFollowLimit && !pod.cpuBound {
		return to
	}
	return 0
}

// envelopeOf collects the walls around the container's limit.
func envelopeOf(obs *observation) envelope {
	walls := envelope{template: obs.container.limit.Value(), roof: obs.roof}
	if q := obs.app.Spec.Memory.MinLimit; q != nil {
		walls.minLimit = q.Value()
	}
	if q := obs.app.Spec.Memory.MaxLimit; q != nil {
		walls.maxLimit = q.Value()
	}
	return walls
}

// placementOf is what the pods have now, for the walls of the namespace.
func placementOf(obs *observation) placement {
	c := obs.container
	now := placement{request: c.limit.Value(), replicas: obs.workload.replicas}
	now.requestFollows = c.guaranteed || obs.app.Spec.Memory.Requests == v1alpha1.RequestsFollowLimit && !c.cpuBound
	if c.request != nil { // else the API server sets it to the limit
		now.request = c.request.Value()
	}
	for i := range obs.workload.template.Spec.Containers {
		if other := &obs.workload.template.Spec.Containers[i]; other.Name != c.name {
			now.others += other.Resources.Limits.Memory().Value()
			now.otherRequests += other.Resources.Requests.Memory().Value()
		}
	}
	for i := range obs.pods {
		p := &obs.pods[i]
		if !p.exists() || p.limit == nil {
			continue
		}
		now.created++
		now.held += p.limit.Value()
		now.heldRequests += cmp.Or(p.request, p.limit).Value()
	}
	return now
}
