// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// baseline is a pass at rest with all sources.
type baseline struct {
	world World
	d     *Decision
}

// TestNotKnowingChangesNothing: in random worlds at rest, only knowledge is lost and comes back, over several passes: pods fall silent, Kafka
// fails, the operator restarts, StreamApp and workload are created again, everything is held. Injection, plan and limits stay as they are.
func TestNotKnowingChangesNothing(t *testing.T) {
	_, _ = time.Now().Zone() // see TestAnyWorld
	baselines := 0
	lost := map[string]int{}
	for seed := range uint64(simulatedSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newHealthySimulation(t, seed)
			known := s.rest(t)
			if known == nil {
				return // this world knows too little; the number of the others is tested below
			}
			baselines++
			for pass := range simulatedPasses {
				name := s.loseKnowledge(known)
				lost[name]++
				s.wantAsKnown(t, known, fmt.Sprintf("pass %d, %s", pass, name))
			}
			s.restoreKnowledge(known)
			s.w.Hold = ""
			s.step(t)
			s.pass(t) // an injection that was lost has grown again
			s.restored = false
			s.wantAsKnown(t, known, "all sources are back")
		})
	}
	if baselines < simulatedSeeds/2 {
		t.Errorf("only %d of %d worlds were at rest with full knowledge", baselines, simulatedSeeds)
	}
	for _, name := range lossNames {
		if lost[name] == 0 {
			t.Errorf("nothing was lost by: %s", name)
		}
	}
}

// newHealthySimulation returns a simulation in which every pod runs and every source answers: with agents, a Kafka group, or both.
func newHealthySimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	c := chance{rand.New(rand.NewPCG(seed, 3))}
	g := pinnedFixture(seed)
	g.app.Status = v1alpha1.StreamAppStatus{}
	g.app.Spec.Mode = v1alpha1.ModeEnforce
	g.nodes, g.quotas, g.group, g.reports, g.pods = nil, nil, nil, nil, nil
	g.agent = !c.oneIn(4)
	startedLately := func(r *report.Report) { // no process warms up within the test
		r.Started = testobjects.Now.Add(-20 * time.Minute).UnixMilli()
	}
	notBounded := func(r *report.Report) {
		if c.oneIn(5) {
			r.Bounded = report.BoundedOff
		}
	}
	var tasks []int
	first := 0
	if g.agent {
		g.reports = map[string]report.PodReport{}
	}
	for i := range 1 + c.IntN(5) {
		count := 1 + c.IntN(20)
		tasks = append(tasks, count)
		pod := testobjects.RunningPod(i, c.pick("1Gi", "2Gi", "3Gi"))
		if g.agent {
			withAgent(pod)
			g.reports[pod.Name] = reportWith(first, count, startedLately, pinnedReport(chance{rand.New(rand.NewPCG(seed, 4))}), notBounded)
		}
		g.pods = append(g.pods, pod)
		first += count
	}
	if !g.agent || c.oneIn(3) {
		g.group = groupOf(tasks...)
	}
	replicas := int32(len(g.pods))
	switch workload := g.workload.(type) {
	case *appsv1.StatefulSet:
		workload.Spec.Replicas = &replicas
	case *appsv1.Deployment:
		workload.Spec.Replicas = &replicas
	}
	w, m := g.world(t)
	return &simulation{chance: c, w: w, volatile: m.Volatile}
}

// rest runs passes until the world is at rest, and returns the last one; nil if a pass does not know everything.
func (s *simulation) rest(t *testing.T) *baseline {
	t.Helper()
	s.refuses, s.defers = false, false
	var d *Decision
	for range settlingPasses + 2 {
		s.finishResizes()
		d = s.step(t)
	}
	f := &d.Facts
	switch {
	case !f.plannable(), d.Frozen.Found(), d.Injection == nil, !d.Plan.TasksKnown, d.Memory.Withdrawal != nil, len(d.Resizes)+len(d.Restarts) > 0:
		return nil
	case f.Reports.Confirmed != nil, f.Assignment.Group == nil, f.Failures.Unavailable+f.Failures.Starting > 0, !f.Assignment.allTasksRun(), len(f.Assignment.Remembered) > 0:
		return nil
	case !d.Plan.Published.Fits, len(f.Images.excluded(f.Pods, f.Now)) > 0, !f.Assignment.ProcessesMatched(f.Pods, f.Now):
		return nil
	}
	for i := range f.Pods {
		p := &f.Pods[i]
		reports := p.Report.Report != nil || f.Reports.Newest == nil
		if !p.Running() || p.starting(f.Now) || !f.readsPlan(p) || !reports || !f.Assignment.shows(p.Name) {
			return nil
		}
	}
	known := &baseline{world: s.w, d: d}
	s.copyPods()
	return known
}

// Names of the ways in which knowledge is lost.
var lossNames = []string{"silent pods", "Kafka fails", "restart", "StreamApp created again", "workload created again", "held", "nothing", "sources are back"}

// loseKnowledge loses knowledge by chance, and returns how.
func (s *simulation) loseKnowledge(known *baseline) string {
	name := lossNames[s.IntN(len(lossNames))]
	s.w.Hold = ""
	switch name {
	case "silent pods":
		s.loseReports()
	case "Kafka fails": // the monitor keeps the last group
		if s.w.Group.Latest.Group != nil {
			s.w.Group.Latest.Err = &assignment.Error{Class: assignment.ClassUnreachable}
		}
	case "restart":
		s.restart()
	case "StreamApp created again":
		s.restart()
		s.w.App = s.w.App.DeepCopy()
		s.w.App.UID += "'"
		s.w.App.Status = v1alpha1.StreamAppStatus{}
		if s.oneIn(2) {
			s.w.Injection = nil
		}
	case "workload created again":
		if s.w.Group.Latest.Group == nil { // else Kafka shows the tasks of the new pods
			s.workloadIsCreatedAgain()
		}
	case "held":
		s.w.Hold = "held"
	case "sources are back":
		s.restoreKnowledge(known)
		if s.restored {
			return "nothing" // see the end of the test
		}
	}
	s.w.Now = s.w.Now.Add(time.Duration(s.IntN(180)) * time.Second)
	return name
}

// loseReports loses the reports of some pods, or of all. While Kafka shows the loads of silent pods, that is newer knowledge.
func (s *simulation) loseReports() {
	if s.w.Reports == nil || s.w.Group.Latest.Group != nil {
		return
	}
	s.w.Reports = maps.Clone(s.w.Reports)
	for i := range s.w.Pods {
		uid := string(s.w.Pods[i].UID)
		switch s.IntN(3) {
		case 0:
			delete(s.w.Reports, uid)
		case 1:
			s.w.Reports[uid] = report.PodReport{Err: &report.Error{Fault: report.Unreachable}, Since: s.w.Now}
		}
	}
}

// restart drops the facts in the process, Kafka's group included. Some reports are there at once.
func (s *simulation) restart() {
	s.volatile = Volatile{}
	s.w.TrackedSince = s.w.Now
	if s.w.Group.Latest.Group != nil {
		s.w.Group.Latest = assignment.Observation{}
	}
	s.loseReports()
}

// restoreKnowledge restores the sources of the baseline.
func (s *simulation) restoreKnowledge(known *baseline) {
	s.w.Group = known.world.Group
	s.w.Reports = known.world.Reports
	for i := range s.w.Pods {
		s.w.Pods[i].UID = known.world.Pods[i].UID
	}
}

// wantAsKnown runs a pass, unless sources are awaited. The stored objects and limits must be those of the pass that knew everything.
func (s *simulation) wantAsKnown(t *testing.T, known *baseline, name string) {
	t.Helper()
	before := s.w
	if AwaitSources(s.w) > 0 {
		return
	}
	if s.w.TrackedSince.Equal(s.w.Now) && s.unansweredSources() && s.w.App.Status.ObservedGeneration > 0 {
		t.Errorf("%s: a pass is made before the sources have answered", name)
	}
	d := s.step(t)
	switch {
	case s.w.Injection == nil && s.w.Hold != "": // was removed with the StreamApp
	case s.w.Injection == nil:
		t.Errorf("%s: nothing is injected", name)
	case before.Injection == nil && !d.Plan.TasksKnown:
		s.restored = true
		fallthrough
	case s.restored: // the injected limit was lost with the injection
		limit := d.Facts.Container.Limit
		if memory := s.w.Injection.Spec.Memory; memory.Limit != nil {
			limit = memory.Limit
		}
		if limit.Value() < publishedLimit(s.w.PlanConfigMap) {
			t.Errorf("%s: new pods get %s, less than the plan is for", name, limit)
		}
	default:
		wantNoDiff(t, name+": injection", known.d.Injection, &s.w.Injection.Spec)
	}
	if !s.restored || !d.Plan.TasksKnown {
		wantNoDiff(t, name+": plan", known.d.Files, s.w.PlanConfigMap.Data)
	}
	if len(d.Resizes) > 0 {
		t.Errorf("%s: limits are raised: %v", name, d.resizes())
	}
	if before.PlanConfigMap == nil || s.w.PlanConfigMap == nil {
		t.Fatalf("%s: the plan is gone", name)
	}
	if d.status().Tasks == nil {
		t.Errorf("%s: the status has lost the tasks", name)
	}
}

// unansweredSources returns whether no source has answered.
func (s *simulation) unansweredSources() bool {
	for _, answer := range s.w.Reports {
		if answer.Report != nil || answer.Err != nil {
			return false
		}
	}
	return s.w.Group.Latest.Group == nil && len(AgentEndpoints(s.w)) > 0
}
