// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// simulation is a changing World with the volatile memory.
type simulation struct {
	chance
	w        World
	volatile Volatile
	// refuses: the API server refuses resizes, and defers: the kubelet does not carry them out at once.
	refuses, defers bool
	// restored: the injection was written again for the stored plan.
	restored bool
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	w, m := pinnedFixture(1000 + seed).world(t)
	w.Now = w.Now.Add(123 * time.Millisecond) // stored times have whole seconds
	s := &simulation{chance: chance{rand.New(rand.NewPCG(seed, 2))}, w: w, volatile: m.Volatile}
	s.writesChange()
	return s
}

// resize lets the API server refuse resizes, as the reconciler notes them: those that exceed a quota, and by chance all.
func (s *simulation) resize(d *Decision) *Outcome {
	o := d.outcome()
	refused := maps.Clone(d.Memory.RefusedResizes)
	requested := int64(0)
	for _, r := range d.Resizes {
		requested += r.To - r.From
		if !s.refuses && !s.exceedsQuota(requested) {
			continue
		}
		requested -= r.To - r.From
		refusal := RefusedResize{Pod: r.Pod, Limit: r.To, Message: "exceeded quota: team", At: d.Facts.Now}
		if refused == nil {
			refused = map[types.UID]RefusedResize{}
		}
		refused[r.UID] = refusal
		o.Refuse(refusal, d.Facts.Now)
	}
	d.Memory.RefusedResizes = refused
	return o
}

// exceedsQuota returns whether a quota has less free memory than this.
func (s *simulation) exceedsQuota(bytes int64) bool {
	return slices.ContainsFunc(s.w.ResourceQuotas, func(quota corev1.ResourceQuota) bool {
		hard, used := quota.Status.Hard[corev1.ResourceLimitsMemory], quota.Status.Used[corev1.ResourceLimitsMemory]
		return hard.Value() < used.Value()+bytes
	})
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
		if answer.Report == nil {
			continue
		}
		loaded := *answer.Report
		loaded.Plan.OnDisk = d.Revision
		answer.Report = &loaded
		s.setReport(uid, answer)
	}
}

// countUsedMemory keeps the used memory of the quotas: that of the pods, and 1Gi of others.
func (s *simulation) countUsedMemory() {
	used := testobjects.Memory("1Gi")
	for i := range s.w.Pods {
		used.Add(*s.w.Pods[i].Spec.Containers[0].Resources.Limits.Memory())
	}
	s.w.ResourceQuotas = slices.Clone(s.w.ResourceQuotas)
	for i := range s.w.ResourceQuotas {
		s.w.ResourceQuotas[i].Status.Used = corev1.ResourceList{corev1.ResourceLimitsMemory: *used}
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
		s.podsAreSilent, s.podsAreSilent, s.operatorRestarts, s.appIsCreatedAgain, s.workloadIsCreatedAgain, s.holdChanges,
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
			testobjects.WithoutAgent(p)
		}
		if injection == nil {
			testobjects.NotInjected(p)
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
		app.Spec.Mode = v1alpha1.Mode(s.pick("Observe", "Hold", "Enforce", "Enforce", "Enforce"))
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

// podsAreSilent loses the reports of some pods.
func (s *simulation) podsAreSilent() {
	if s.w.Reports == nil {
		return
	}
	s.w.Reports = maps.Clone(s.w.Reports)
	for i := range s.w.Pods {
		uid := string(s.w.Pods[i].UID)
		switch s.IntN(4) {
		case 0:
			delete(s.w.Reports, uid)
		case 1:
			s.w.Reports[uid] = report.PodReport{Err: &report.Error{Fault: report.Unreachable}, Since: s.w.Now}
		}
	}
}

// operatorRestarts drops everything that the process knows. No source has been requested then, or some have answered.
func (s *simulation) operatorRestarts() {
	s.volatile = Volatile{}
	s.w.TrackedSince = s.w.Now
	if !s.w.Group.Unavailable.Found() && s.oneIn(2) {
		s.w.Group.Latest = assignment.Observation{}
	}
	s.podsAreSilent()
}

// appIsCreatedAgain replaces the StreamApp. The garbage collector removes the injection, sooner or later.
func (s *simulation) appIsCreatedAgain() {
	s.operatorRestarts()
	s.w.App.UID += "'"
	s.w.App.Status = v1alpha1.StreamAppStatus{}
	s.w.App.Generation = 1
	if s.oneIn(2) {
		s.w.Injection = nil
	}
}

// workloadIsCreatedAgain replaces the workload and its pods, which have not reported yet.
func (s *simulation) workloadIsCreatedAgain() {
	s.w.StatefulSet = s.w.StatefulSet.DeepCopy()
	s.w.Deployment = s.w.Deployment.DeepCopy()
	if s.w.StatefulSet != nil {
		s.w.StatefulSet.UID += "'"
	} else {
		s.w.Deployment.UID += "'"
	}
	for i := range s.w.Pods {
		s.w.Pods[i].UID += "'"
	}
}

// holdChanges begins or ends a hold of all applications.
func (s *simulation) holdChanges() {
	s.w.Hold = s.pick("", "", "the operator's configuration holds all applications")
}

func (s *simulation) writesChange() {
	s.refuses = s.oneIn(3)
	s.defers = s.oneIn(3)
}
