// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
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
	// restarts are limits that only a restart of the pod may raise: in place, the container would be restarted at once.
	restarts []resizeWanted
	touches  []string // pods that have not been told of the generation
	// unseen are pods that were told of the generation, and told again, and have not reported yet that they see it.
	unseen []string
	// recheckAfter is when withdrawn memory is tried again, or a pod is to be told again; zero for never.
	recheckAfter time.Duration
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
	want.chooseLimit(obs, lost, p, walls)
	want.typical = p.under(want.limit)
	if effectiveMode(obs.app) != v1alpha1.ModeEnforce {
		return want
	}
	if want.held = holds(obs, p, want); want.held.found() {
		want.stopImages(obs)
		return want
	}
	want.chooseResizes(resizesWanted(obs, p, walls, settling(obs, lost)))
	newPods := want.limit
	if walls.managed() && want.limit > walls.template {
		if want.withdrawn = withdrawn(obs, walls.template); want.withdrawn != "" {
			newPods = walls.template
			_, since := readWithdrawn(want.withdrawn)
			want.recheckAfter = max(time.Second, withdrawnFor-obs.now.Sub(since))
		}
	}
	if want.withdrawn == "" && settling(obs, lost) {
		want.planData = planfile.WithRevision(obs.planConfigMap.Data)
	} else {
		want.planData = planData(obs, p, newPods)
	}
	want.generation = want.planData[planfile.RevisionKey]
	want.wantInjection(obs, walls)
	want.chooseTouches(obs)
	return want
}

// stopImages changes nothing of an injection but the images that it leaves alone: that one does not start is known, whatever is not.
func (want *desired) stopImages(obs *observation) {
	excepted := obs.exceptedImages()
	if obs.injection == nil || slices.Equal(obs.injection.Spec.ExcludedImages, excepted) {
		return
	}
	want.injection, want.withdrawn = obs.injection.Spec.DeepCopy(), obs.injection.Annotations[annotationWithdrawn]
	want.injection.ExcludedImages = excepted
}

// chooseLimit says what a new pod gets. While pods come back it stays as it is, unless what runs already needs more.
func (want *desired) chooseLimit(obs *observation, lost losses, p *planning, walls envelope) {
	want.limit = walls.template
	if !walls.managed() {
		return
	}
	want.limit, want.capped = walls.clamp(p.need)
	if !settling(obs, lost) || obs.injection.Spec.Memory.Limit == nil {
		return
	}
	if kept := max(walls.floor(), obs.injection.Spec.Memory.Limit.Value()); p.needNow <= kept {
		want.limit = kept
	}
}

// chooseResizes tells the limits that can be raised in place from those for which the container would be restarted.
func (want *desired) chooseResizes(all []resizeWanted) {
	for _, wanted := range all {
		if wanted.pod.restartsOnResize {
			want.restarts = append(want.restarts, wanted)
		} else {
			want.resizes = append(want.resizes, wanted)
		}
	}
}

func effectiveMode(app *v1alpha1.StreamApp) v1alpha1.Mode {
	return cmp.Or(app.Spec.Mode, v1alpha1.ModeObserve)
}

// holds says why the pass must leave things as they are, if it must. Where nobody will ever tell which tasks there are, the plan follows
// limit and JVM alone.
func holds(obs *observation, p *planning, want *desired) fault {
	switch {
	case len(p.invalid) > 0:
		return fault{v1alpha1.ReasonInvalidSettings, strings.Join(p.invalid, "; ")}
	case !p.tasksKnown && obs.injection != nil && obs.tasksWillBeTold() && !planTooLarge(obs):
		return fault{v1alpha1.ReasonAssignmentUnknown, "it is not known which tasks there are; the last plan stays in force"}
	case obs.workload.replicas == 0 && len(obs.pods) == 0 && obs.injection != nil:
		return fault{v1alpha1.ReasonNoPods, "the workload is scaled to zero; the last plan stays in force"}
	case p.needToInject > want.limit, !p.tasksKnown && !want.typical.fits:
		return fault{v1alpha1.ReasonInsufficientMemory, shortageMessage(p, want)}
	}
	return fault{}
}

// tasksWillBeTold tells whether it has been known which tasks there are, or a source is named that will tell.
func (o *observation) tasksWillBeTold() bool {
	return o.group.refused.reason != v1alpha1.ReasonNoSource || len(o.images) > 0 && o.app.Status.Tasks != nil
}

// planTooLarge tells whether a pod that is created now gets less than the published plan is for: the template's limit was lowered, and
// the injected one does not hold for it any more. Then even a plan that knows no tasks is better.
func planTooLarge(obs *observation) bool {
	limit := obs.container.limit
	if memory := obs.injection.Spec.Memory; memory.Limit != nil && memory.ForLimit.Cmp(*limit) == 0 {
		limit = memory.Limit
	}
	return publishedFor(obs) > limit.Value()
}

func shortageMessage(p *planning, want *desired) string {
	message := fmt.Sprintf("a limit of %s does not hold what a pod runs now", humanBytes(want.limit))
	if p.tasksKnown && p.needToInject < neverFits {
		message = fmt.Sprintf("%s: %s are needed", message, humanBytes(p.needToInject))
	}
	if want.capped != "" {
		message += ", but " + want.capped
	}
	if want.typical.shortage != "" {
		message += " (" + want.typical.shortage + ")"
	}
	return message
}

// settling tells whether pods are away that are expected back, or have just come back, as in a rollout. What the others run then is on
// its way from one place to another, so the plan in force stays for the pods that are to come; it covers the gap. A changed template or
// StreamApp is another matter.
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

// planData computes the mounted files. They must be safe for the smallest limit that a pod which reads them has, or is about
// to have: so a larger plan is published only after the kubelet has raised the limits, and a smaller one before new pods get less.
func planData(obs *observation, p *planning, limit int64) map[string]string {
	for i := range obs.pods {
		if pod := &obs.pods[i]; pod.injected && pod.exists() && pod.effectiveLimit() != nil {
			limit = min(limit, pod.effectiveLimit().Value())
		}
	}
	files := p.publish(limit)
	if !files.fits && obs.planConfigMap != nil { // a pod with too little is being raised: nothing that is written now would help it
		return planfile.WithRevision(obs.planConfigMap.Data)
	}
	file := files.file
	file.RocksDB.ReplaceCaches = obs.app.Spec.Streams.OwnCaches == v1alpha1.OwnCachesReplace
	return file.Files()
}

// resizesWanted lists the pods whose need is above the limit that they have. Limits are only ever raised in place: a kubelet refuses
// to lower one below what is in use, page cache included (measured, Kubernetes 1.37). While pods that are away come back, only what a pod
// runs already can raise its limit: for what it may get the plan in force has room.
func resizesWanted(obs *observation, p *planning, walls envelope, settling bool) []resizeWanted {
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
		if settling {
			need = p.pods[pod.name].now
		}
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
