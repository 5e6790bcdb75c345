// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/dump"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// simulatedSeeds is the number of simulations, simulatedPasses the number of passes with events between them. Without events a World must
// have come to rest after settlingPasses.
const (
	simulatedSeeds  = 300
	simulatedPasses = 6
	settlingPasses  = 4
)

// TestAnyWorld checks the properties of a decision in random worlds over several passes. The writes of each pass, frozen ones included, are in
// the World of the next one, and random events happen between them: sources, pods, nodes, the StreamApp and the workload come and go, and the
// operator restarts.
func TestAnyWorld(t *testing.T) {
	_, _ = time.Now().Zone() // loads the time zone of decoded times; loading it later would count as a change of the World
	reached := map[string]bool{"sources are awaited": false}
	run := 0
	for seed := range uint64(simulatedSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run++
			s := newSimulation(t, seed)
			for range simulatedPasses {
				if AwaitSources(s.w) > 0 {
					reached["sources are awaited"] = true
				} else {
					for situation, is := range situationsOf(s.pass(t)) {
						reached[situation] = reached[situation] || is
					}
				}
				s.event()
			}
			s.settle(t)
		})
	}
	for situation, is := range reached {
		if !is && run == simulatedSeeds {
			t.Errorf("no pass has this situation: %s", situation)
		}
	}
}

// situationsOf returns the situations of the simulations, and whether a decision is one of them.
func situationsOf(d *Decision) map[string]bool {
	f := &d.Facts
	return map[string]bool{
		"frozen, tasks unknown":     d.Frozen.Reason == v1alpha1.ReasonAssignmentUnknown,
		"frozen, too little memory": d.Frozen.Reason == v1alpha1.ReasonInsufficientMemory,
		"frozen, invalid settings":  d.Frozen.Reason == v1alpha1.ReasonInvalidSettings,
		"frozen, scaled to zero":    d.Frozen.Reason == v1alpha1.ReasonNoPods,
		"held":                      d.Frozen.Reason == v1alpha1.ReasonHeld,
		"a load is remembered":      len(f.Assignment.Remembered) > 0,
		"a pod was never seen":      f.Assignment.Unseen > 0,
		"a limit is raised":         len(d.Resizes) > 0,
		"a resize needs a restart":  len(d.Restarts) > 0,
		"a resize was refused":      len(d.Refused) > 0,
		"memory is withdrawn":       d.Memory.Withdrawal != nil && d.Injection != nil,
		"rollout":                   f.plannable() && rolloutInProgress(f),
		"a pod is unavailable":      f.Failures.Unavailable > 0,
		"a pod starts":              f.Failures.Starting > 0,
		"a pod is suspected":        slices.ContainsFunc(f.Pods, func(p Pod) bool { return p.Suspected }),
		"a node is lost":            slices.ContainsFunc(f.Pods, func(p Pod) bool { return p.NodeLost }),
		"an image is proven":        f.Proven,
		"an image is excluded":      f.plannable() && f.excludedImage(),
		"the reports are usable":    f.Reports.Usable,
		"the group counts":          !f.Reports.Usable && f.Assignment.Group != nil,
		"a process has no pod":      !f.Assignment.ProcessesMatched(f.Pods, f.Now),
		"the limit is capped":       d.Plan.Capped != "",
		"the plan is not loaded":    len(d.NotAcknowledged) > 0,
		"the limit is lowered":      f.plannable() && d.Plan.Limit < f.Container.Limit.Value(),
		"nothing is injected":       !d.Frozen.Found() && d.Injection == nil,
	}
}

// pass decides, checks the decision and writes it.
func (s *simulation) pass(t *testing.T) *Decision {
	t.Helper()
	s.countUsedMemory()
	m := Recall(s.w.App, s.w.PlanConfigMap, s.w.Injection, s.w.Pods, s.volatile)
	before := dump.ForHash(s.w) + dump.ForHash(m)
	d := Decide(s.w, m)
	d.status() // does not change the decision, as the comparisons below show
	if after := dump.ForHash(s.w) + dump.ForHash(m); after != before {
		wantNoDiff(t, "World and Memory after the decision", strings.Split(before, "\n"), strings.Split(after, "\n"))
	}
	wantEqual(t, "the same decision again", d, Decide(s.w, m))
	wantSameResult(t, &d, Decide(s.shuffled(), m))
	o := s.resize(&d)
	status := StatusOf(&d, o)
	wantWithinRange(t, &d)
	wantConsistentInjection(t, &d)
	wantSafePlan(t, &d)
	wantPlausibleStatus(t, status)
	if d.RecheckAfter < 0 {
		t.Errorf("rechecked after %s", d.RecheckAfter)
	}
	next := store(t, s.w, &d, o)
	if d.Facts.plannable() && next.Injection != nil {
		wantNoDiff(t, "restored memory", d.Memory, Recall(next.App, next.PlanConfigMap, next.Injection, next.Pods, d.Memory.Volatile))
	}
	if d.Files != nil { // then a restart of the operator loses no knowledge
		wantNoDiff(t, "memory of another process", d.Memory.Assignment, Recall(next.App, next.PlanConfigMap, next.Injection, next.Pods, Volatile{}).Assignment)
	}
	s.w = next
	s.volatile = d.Memory.Volatile
	s.carryOut(&d, o)
	s.countUsedMemory()
	if d.Frozen.Found() {
		s.wantStillFrozen(t, &d)
	}
	return &d
}

// wantStillFrozen: a pass after a frozen one is frozen for the same reason, as long as nothing has happened.
func (s *simulation) wantStillFrozen(t *testing.T, d *Decision) {
	t.Helper()
	next := Decide(s.w, Recall(s.w.App, s.w.PlanConfigMap, s.w.Injection, s.w.Pods, s.volatile))
	// An edit ends a rollout for one pass. In the next one the limit stays again.
	if rolloutInProgress(&d.Facts) == rolloutInProgress(&next.Facts) && next.Frozen.Reason != d.Frozen.Reason {
		t.Errorf("frozen for %+v, and in the next pass for %+v", d.Frozen, next.Frozen)
	}
}

// settle runs passes without events. Limits and plan must come to rest.
func (s *simulation) settle(t *testing.T) {
	t.Helper()
	s.refuses = false
	s.defers = false
	s.w.TrackedSince = s.w.TrackedSince.Add(-sourcesGrace)
	s.volatile.RefusedResizes = nil
	for range settlingPasses {
		s.finishResizes()
		s.pass(t)
	}
	last := s.pass(t)
	again := s.pass(t)
	if len(last.Resizes)+len(again.Resizes) > 0 {
		t.Errorf("after %d passes without events limits are still raised: %v, %v", settlingPasses, last.resizes(), again.resizes())
	}
	wantNoDiff(t, "frozen", last.Frozen, again.Frozen)
	wantNoDiff(t, "files", last.Files, again.Files)
	wantNoDiff(t, "injection", last.Injection, again.Injection)
	wantNoDiff(t, "memory", last.Memory, again.Memory)
	if last.Files != nil && again.MemoryText() != last.MemoryText() {
		t.Error("the memory is written again")
	}
}

// shuffled returns the World with its lists in another order.
func (s *simulation) shuffled() World {
	w := s.w
	w.Pods = shuffle(s.chance, w.Pods)
	w.LimitRanges = shuffle(s.chance, w.LimitRanges)
	w.ResourceQuotas = shuffle(s.chance, w.ResourceQuotas)
	if group := w.Group.Latest.Group; group != nil {
		other := *group
		other.Processes = shuffle(s.chance, group.Processes)
		w.Group.Latest.Group = &other
	}
	return w
}

func shuffle[T any](c chance, list []T) []T {
	other := slices.Clone(list)
	c.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	return other
}

// wantEqual compares all fields of two decisions. A Quantity equals one with a cached text.
func wantEqual(t *testing.T, name string, want, got Decision) {
	t.Helper()
	if !reflect.DeepEqual(want, got) { // fast, but takes a cached text for a difference
		wantNoDiff(t, name, want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
	}
}

// wantSameResult fails if a decision about the same objects in another order has another result. Only its facts may list them in this order.
func wantSameResult(t *testing.T, d *Decision, shuffled Decision) {
	t.Helper()
	wantNoDiff(t, "status with the objects in another order", d.status(), shuffled.status())
	result := *d
	result.Facts = Facts{}
	shuffled.Facts = Facts{}
	wantEqual(t, "decision with the objects in another order", result, shuffled)
}

// wantWithinRange: the limit of new pods and every raised limit are in the range. Only managed pods get another limit.
func wantWithinRange(t *testing.T, d *Decision) {
	t.Helper()
	if !d.Facts.plannable() {
		wantNoChanges(t, d)
		return
	}
	bounds := limitRange(&d.Facts)
	least, most := int64(bounds.Floor()), int64(bounds.Ceiling())
	if !bounds.Adjustable {
		least = int64(bounds.Template)
		most = least
	}
	highest := most
	if injection := d.Facts.Injection; rolloutInProgress(&d.Facts) && injection.Spec.Memory.Limit != nil {
		// The limit stays although the free part of a quota is smaller now. If pods cannot be created with it, it is withdrawn.
		current := min(injection.Spec.Memory.Limit.Value(), int64(bounds.Max), d.Facts.LimitRangeCap.Bytes)
		highest = max(most, current)
	}
	if d.Plan.Limit < least || d.Plan.Limit > highest {
		t.Errorf("limit %s outside of %s to %s", bytesText(d.Plan.Limit), bytesText(least), bytesText(highest))
	}
	for _, r := range slices.Concat(d.Resizes, d.Restarts) {
		p := findPod(d.Facts.Pods, r.Pod)
		if r.To <= r.From || r.To <= p.EffectiveLimit().Value() || r.To > most || !p.manageable() || !bounds.Adjustable {
			t.Errorf("pod %s is resized from %s to %s in a range up to %s", r.Pod, bytesText(r.From), bytesText(r.To), bytesText(most))
		}
	}
}

// wantConsistentInjection: a frozen pass changes nothing, and the injected memory is that of the plan.
func wantConsistentInjection(t *testing.T, d *Decision) {
	t.Helper()
	if d.Frozen.Found() {
		injection := d.Injection
		d := *d
		d.Injection = nil
		wantNoChanges(t, &d)
		if injection != nil { // only the excluded images may change
			frozen := *injection
			frozen.ExcludedImages = d.Facts.Injection.Spec.ExcludedImages
			wantNoDiff(t, "injection of a frozen pass", d.Facts.Injection.Spec, frozen)
		}
		return
	}
	if d.Injection == nil {
		return
	}
	m := d.Injection.Memory
	template := d.Facts.Container.Limit.Value()
	switch {
	case m.Limit == nil:
		if d.Plan.Limit != template && d.Memory.Withdrawal == nil {
			t.Errorf("the plan's limit %s is not injected", bytesText(d.Plan.Limit))
		}
	case d.Memory.Withdrawal != nil:
		t.Errorf("memory %v is injected although it is withdrawn", m.Limit)
	case m.ForLimit.Value() != template, m.Limit.Value() != d.Plan.Limit, m.Request != nil && m.Request.Cmp(*m.Limit) > 0:
		t.Errorf("memory %+v is injected, want %s for %s", m, bytesText(d.Plan.Limit), bytesText(template))
	}
	if d.Injection.PlanRevision != d.Revision || d.Revision != planfile.Revision(d.Files) {
		t.Errorf("revision %q is injected, that of the files is %q", d.Injection.PlanRevision, planfile.Revision(d.Files))
	}
}

// wantSafePlan: a new plan is for no more than the smallest limit of its readers, present pods and new ones. A plan may stay for a larger
// limit: during a rollout, or where no plan would help a pod with too small a limit.
func wantSafePlan(t *testing.T, d *Decision) {
	t.Helper()
	if d.Files == nil {
		return
	}
	plan, err := planfile.Parse(d.Files)
	if err != nil {
		t.Fatal(err)
	}
	if maxRAM := publishedMaxRAM(d); maxRAM != "" && maxRAM != fmt.Sprint(plan.Limit) {
		t.Errorf("MaxRAM is %s, the limit %d", maxRAM, plan.Limit)
	}
	published := d.Facts.PlanConfigMap
	if published != nil && maps.Equal(planfile.WithRevision(published.Data), d.Files) {
		return
	}
	least := d.Facts.Container.Limit.Value()
	if limit := d.Injection.Memory.Limit; limit != nil {
		least = limit.Value()
	}
	if d.Facts.Injection != nil { // a pod may be created before the new injection is stored
		least = min(least, storedLimit(&d.Facts))
	}
	for i := range d.Facts.Pods {
		if p := &d.Facts.Pods[i]; d.Facts.readsPlan(p) {
			least = min(least, p.EffectiveLimit().Value())
		}
	}
	if plan.Limit > least {
		t.Errorf("the plan is for %s, and a pod that reads it has %s", bytesText(plan.Limit), bytesText(least))
	}
}

// wantPlausibleStatus: entries have names and occur once, and every condition has a reason and a message.
func wantPlausibleStatus(t *testing.T, status v1alpha1.StreamAppStatus) {
	t.Helper()
	seen := map[string]bool{}
	once := func(list, name string) {
		if seen[list+name] || name == "" {
			t.Errorf("%s: %q is empty or occurs twice", list, name)
		}
		seen[list+name] = true
	}
	for _, line := range status.Lines {
		once("lines", string(line.Pool)+line.Name)
	}
	for _, setting := range status.Settings {
		once("settings", setting.Name)
	}
	for _, pod := range status.DivergentPods {
		once("divergentPods", pod.Name)
	}
	for _, warning := range status.Warnings {
		once("warnings", warning)
	}
	for _, image := range status.Images {
		once("images", image.ImageID)
	}
	for _, c := range status.Conditions {
		once("conditions", c.Type)
		badText := c.Message == "" || strings.Contains(c.Message, "%!") || strings.ContainsAny(c.Message, "\n\t")
		if c.Reason == "" || c.Status == "" || badText {
			t.Errorf("condition %+v", c)
		}
	}
	if len(status.Conditions) != 1+len(ConditionOrder) {
		t.Errorf("%d conditions, want %d", len(status.Conditions), 1+len(ConditionOrder))
	}
}
