// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/dump"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// simulatedSeeds is the number of simulations, simulatedPasses the number of passes with events between them, settlingPasses the number of
// passes after which a World without events must not change any more.
const (
	simulatedSeeds  = 150
	simulatedPasses = 8
	settlingPasses  = 4
)

// TestAnyWorld checks the properties of a decision in random worlds over several passes. The writes of each pass are in the World of the
// next one, and random events happen between them.
func TestAnyWorld(t *testing.T) {
	time.Now().Zone() // loads the time zone that decoded times refer to, which would otherwise count as a change of the World
	reached := map[string]bool{}
	for seed := range uint64(simulatedSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newSimulation(t, seed)
			for range simulatedPasses {
				for situation, is := range situationsOf(s.pass(t)) {
					reached[situation] = reached[situation] || is
				}
				s.event()
			}
			s.settle(t)
		})
	}
	for situation, is := range reached {
		if !is {
			t.Errorf("no pass is about this situation: %s", situation)
		}
	}
}

// situationsOf returns the situations of the simulations, and whether a decision is about them.
func situationsOf(d *Decision) map[string]bool {
	f := &d.Facts
	return map[string]bool{
		"frozen, tasks unknown":     d.Frozen.Reason == v1alpha1.ReasonAssignmentUnknown,
		"frozen, too little memory": d.Frozen.Reason == v1alpha1.ReasonInsufficientMemory,
		"frozen, invalid settings":  d.Frozen.Reason == v1alpha1.ReasonInvalidSettings,
		"frozen, scaled to zero":    d.Frozen.Reason == v1alpha1.ReasonNoPods,
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

// simulation is a World that changes, with the memory that the process keeps.
type simulation struct {
	chance
	w        World
	volatile Volatile
	// refuses: the API server refuses resizes, and defers: the kubelet does not carry them out at once.
	refuses, defers bool
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	w, m := pinnedFixture(1000 + seed).world(t)
	s := &simulation{chance: chance{rand.New(rand.NewPCG(seed, 2))}, w: w, volatile: m.Volatile}
	s.writesChange()
	return s
}

// pass decides, checks the decision and writes it.
func (s *simulation) pass(t *testing.T) *Decision {
	t.Helper()
	m := Recall(s.w.App, s.w.Injection, s.w.Pods, s.volatile)
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
		wantNoDiff(t, "restored memory", d.Memory, Recall(next.App, next.Injection, next.Pods, d.Memory.Volatile))
	}
	s.w = next
	s.volatile = d.Memory.Volatile
	s.carryOut(&d, o)
	if next := s.decide(); d.Frozen.Found() && next.Frozen.Reason != d.Frozen.Reason {
		t.Errorf("frozen for %+v, and in the next pass for %+v", d.Frozen, next.Frozen)
	}
	return &d
}

// decide decides about the World as it is.
func (s *simulation) decide() Decision {
	return Decide(s.w, Recall(s.w.App, s.w.Injection, s.w.Pods, s.volatile))
}

// settle runs passes without events. Limits and plan must come to rest.
func (s *simulation) settle(t *testing.T) {
	t.Helper()
	s.refuses = false
	s.defers = false
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

// resize lets the API server refuse some resizes, as the reconciler notes them.
func (s *simulation) resize(d *Decision) *Outcome {
	o := d.outcome()
	refused := maps.Clone(d.Memory.RefusedResizes)
	for _, r := range d.Resizes {
		if s.refuses {
			refusal := RefusedResize{Pod: r.Pod, Limit: r.To, Message: "exceeded quota: team", At: d.Facts.Now}
			if refused == nil {
				refused = map[types.UID]RefusedResize{}
			}
			refused[r.UID] = refusal
			o.Refuse(refusal, d.Facts.Now)
		}
	}
	d.Memory.RefusedResizes = refused
	return o
}

// carryOut sets the limits of accepted resizes, and lets the pods load the plan.
func (s *simulation) carryOut(d *Decision, o *Outcome) {
	for _, r := range d.Resizes {
		if _, refused := o.Refused[r.Pod]; refused {
			continue
		}
		i := slices.IndexFunc(s.w.Pods, func(p corev1.Pod) bool { return p.Name == r.Pod })
		p := &s.w.Pods[i]
		c := &p.Spec.Containers[0]
		c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(bytesText(r.To))
		if r.Request > 0 {
			c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(bytesText(r.Request))
		}
		if s.defers {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, Message: "Node didn't have enough capacity",
			})
		}
	}
	if !s.defers {
		s.finishResizes()
	}
	if d.Revision == "" || s.oneIn(3) {
		return
	}
	for uid, answer := range s.w.Reports {
		loaded := *answer.Report
		loaded.Plan.OnDisk = d.Revision
		answer.Report = &loaded
		s.setReport(uid, answer)
	}
}

// finishResizes lets the kubelets report the limits of the pods' specs.
func (s *simulation) finishResizes() {
	for i := range s.w.Pods {
		p := &s.w.Pods[i]
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
		for j := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[j].Resources = p.Spec.Containers[0].Resources.DeepCopy()
		}
	}
}

// setReport replaces a report in a copy of the reports.
func (s *simulation) setReport(uid string, answer report.PodReport) {
	s.w.Reports = maps.Clone(s.w.Reports)
	s.w.Reports[uid] = answer
}

// event changes the World by chance. The pods and the StreamApp are copies already, made by store.
func (s *simulation) event() {
	events := []func(){
		func() {}, s.timePasses, s.timePasses, s.podChanges, s.podChanges, s.podIsGone, s.podReturns, s.nodeChanges, s.groupChanges,
		s.reportChanges, s.reportChanges, s.userEdits, s.templateChanges, s.workloadChanges, s.quotaChanges, s.writesChange,
	}
	for range 1 + s.IntN(2) {
		events[s.IntN(len(events))]()
	}
}

func (s *simulation) timePasses() {
	s.w.Now = s.w.Now.Add([]time.Duration{time.Second, 11 * time.Second, 31 * time.Second, 2 * time.Minute, 6 * time.Minute, 61 * time.Minute}[s.IntN(6)])
}

func (s *simulation) anyPod() *corev1.Pod {
	if len(s.w.Pods) == 0 {
		return &corev1.Pod{}
	}
	return &s.w.Pods[s.IntN(len(s.w.Pods))]
}

func (s *simulation) podChanges() {
	p := s.anyPod()
	switch kind := s.IntN(5); {
	case kind == 0:
		p.Status.Phase = corev1.PodPhase(s.pick("Pending", "Running", "Failed"))
	case kind == 1:
		p.DeletionTimestamp = new(metav1.NewTime(s.w.Now))
	case kind == 2:
		p.Status.Conditions = nil
	case kind == 3 && len(p.Status.ContainerStatuses) > 0:
		p.Status.ContainerStatuses[0].State = waitsForRestart
	case len(p.Status.ContainerStatuses) > 0:
		p.Status.ContainerStatuses[0].State = runningSince(s.w.Now.Add(-time.Second))
	}
}

func (s *simulation) podIsGone() {
	name := s.anyPod().Name
	s.w.Pods = slices.DeleteFunc(s.w.Pods, func(p corev1.Pod) bool { return p.Name == name })
}

// podReturns creates a missing pod, or one more, as the admission policy would.
func (s *simulation) podReturns() {
	ordinal := 0
	for slices.ContainsFunc(s.w.Pods, func(p corev1.Pod) bool { return p.Name == fmt.Sprintf("%s-%d", testobjects.App, ordinal) }) {
		ordinal++
	}
	template := s.w.Template().Spec.Containers[0].Resources.Limits.Memory()
	limit := template.String()
	injection := s.w.Injection
	if injection != nil && injection.Spec.Memory.Limit != nil && injection.Spec.Memory.ForLimit.Cmp(*template) == 0 {
		limit = injection.Spec.Memory.Limit.String()
	}
	s.w.Pods = append(s.w.Pods, *testobjects.RunningPod(ordinal, limit, func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(s.w.Now)
		withAgent(p)
		p.Status.ContainerStatuses[0].State = runningSince(s.w.Now)
		if injection == nil || injection.Spec.AgentConfigMap == "" {
			p.Spec.Volumes = nil
		}
		if injection == nil {
			p.Annotations = nil
		} else {
			p.Annotations[v1alpha1.PlanAnnotation] = injection.Spec.PlanRevision
		}
	}))
}

func (s *simulation) nodeChanges() {
	name := fmt.Sprintf("node-%d", s.IntN(3))
	s.w.Nodes = maps.Clone(s.w.Nodes)
	s.w.Nodes[name] = testobjects.Node(name, corev1.ConditionStatus(s.pick("True", "True", "Unknown")))
}

func (s *simulation) groupChanges() {
	latest := assignment.Observation{At: s.w.Now}
	switch {
	case s.w.Group.Unavailable.Found():
		return
	case s.oneIn(4):
		latest.Err = &assignment.Error{Class: assignment.ClassUnreachable, Group: testobjects.App}
	default:
		var tasks []int
		for range 1 + s.IntN(5) {
			tasks = append(tasks, s.IntN(9))
		}
		latest.Group = groupOf(tasks...)
		pinnedGroup(s.chance, latest.Group)
	}
	s.w.Group.Latest = latest
}

func (s *simulation) reportChanges() {
	if s.w.Reports == nil {
		return
	}
	p := s.anyPod()
	answer := reportWith(s.IntN(20), s.IntN(8), pinnedReport(s.chance))
	answer.Report.Started = s.w.Now.UnixMilli()
	if s.oneIn(4) {
		other := answer.Report.Clients[0]
		other.ApplicationID = "payments"
		answer.Report.Clients = append(answer.Report.Clients, other)
	}
	switch s.IntN(5) {
	case 0:
		answer = report.PodReport{Report: answer.Report, Gone: s.w.Now}
	case 1:
		answer.Err = &report.Error{Fault: report.Unreachable}
		answer.Since = s.w.Now
	case 2:
		s.w.Reports = maps.Clone(s.w.Reports)
		delete(s.w.Reports, string(p.UID))
		return
	}
	s.setReport(string(p.UID), answer)
}

func (s *simulation) userEdits() {
	app := s.w.App
	app.Generation++
	memory := &app.Spec.Memory
	switch s.IntN(4) {
	case 0:
		memory.MaxLimit = testobjects.Memory(s.pick("3Gi", "4Gi", "8Gi"))
	case 1:
		memory.PodFailuresToTolerate = new(int32(s.IntN(3)))
	case 2:
		app.Spec.Mode = v1alpha1.Mode(s.pick(string(v1alpha1.ModeObserve), string(v1alpha1.ModeEnforce), string(v1alpha1.ModeEnforce)))
	case 3:
		app.Spec.Streams.Configs = []v1alpha1.Config{{Name: "num.stream.threads", Value: s.pick("2", "many")}}
	}
}

// workloadChanges scales the workload, to zero as well.
func (s *simulation) workloadChanges() {
	s.w.StatefulSet = s.w.StatefulSet.DeepCopy()
	s.w.Deployment = s.w.Deployment.DeepCopy()
	replicas := int32(s.IntN(5))
	if s.w.StatefulSet != nil {
		s.w.StatefulSet.Spec.Replicas = &replicas
	} else {
		s.w.Deployment.Spec.Replicas = &replicas
	}
	s.w.Pods = s.w.Pods[:min(len(s.w.Pods), int(replicas))]
}

func (s *simulation) templateChanges() {
	s.w.StatefulSet = s.w.StatefulSet.DeepCopy()
	s.w.Deployment = s.w.Deployment.DeepCopy()
	limit := s.pick("768Mi", "1Gi", "2Gi", "3Gi")
	s.w.Template().Spec.Containers[0].Resources = testobjects.MemoryResources(limit, limit)
	if s.w.Deployment != nil && s.oneIn(2) {
		creationFails(s.w.Deployment)
	}
}

func (s *simulation) quotaChanges() {
	quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: s.pick("team", "shared")}}
	quota.Status.Hard = corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse(s.pick("4Gi", "8Gi", "16Gi"))}
	quota.Status.Used = corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("3Gi")}
	s.w.ResourceQuotas = append(slices.Clip(s.w.ResourceQuotas), quota)
	if s.oneIn(3) {
		s.w.ResourceQuotas = nil
	}
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: memoryList(s.pick("2Gi", "3Gi"))}
	s.w.LimitRanges = append(slices.Clip(s.w.LimitRanges), corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}})
	if s.oneIn(2) {
		s.w.LimitRanges = nil
	}
}

func (s *simulation) writesChange() {
	s.refuses = s.oneIn(3)
	s.defers = s.oneIn(3)
}

// wantEqual compares all fields of two decisions. A Quantity that caches its text equals one that does not.
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

// wantWithinRange: the limit of new pods and every raised limit are in the range, and only pods that are managed get another limit.
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
		// The limit stays although a quota or LimitRange permits less now. If pods cannot be created with it, it is withdrawn.
		highest = max(most, min(injection.Spec.Memory.Limit.Value(), int64(bounds.Max)))
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

// wantSafePlan: a new plan is for no more than the smallest limit of any pod that reads it, now or when it is created. A plan that stays
// because nothing helps a pod with too small a limit is an exception, and one that stays for a rollout covers the pods that run.
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
	for i := range d.Facts.Pods {
		if p := &d.Facts.Pods[i]; p.Injected && p.readsPlan() {
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
