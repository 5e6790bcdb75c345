// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// described is the topology of the questions: one repartition topic, one store, 12 partitions each.
const described = `Topologies:
   Sub-topology: 0
    Source: S0 (topics: [orders])
      --> K0
    Sink: K0 (topic: counts-repartition)
      <-- S0

  Sub-topology: 1
    Source: S1 (topics: [counts-repartition])
      --> P1
    Processor: P1 (stores: [counts])
      --> none
      <-- S1
`

// question asks about three pods of the StatefulSet, that are to come.
func question(changes ...change[Question]) Question {
	app := streamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Streams.Stores = []v1alpha1.Store{{Name: "counts", Kind: v1alpha1.StoreKeyValue}}
	})
	return *build(Question{
		App: app, Now: testNow, Topology: described, Partitions: map[string]int32{"orders": 12},
		Reader: Objects{app, statefulSet(3, podTemplate("4Gi"))},
	}, changes)
}

func ask(t *testing.T, q Question) *Answer {
	t.Helper()
	answer, err := Explain(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestAnAnswerIsWhatTheOperatorWouldSay(t *testing.T) {
	subtopologies := []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 12, WrittenPartitions: new(int32(12))}, {ID: new(int32(1)), Tasks: 12}}
	app := streamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Streams.Subtopologies = subtopologies
		app.Spec.Streams.Stores = []v1alpha1.Store{{Name: "counts", Kind: v1alpha1.StoreKeyValue, Subtopology: new(int32(1))}}
	})
	set := statefulSet(3, podTemplate("4Gi"))
	obs := observed(t, given{app: app, workload: set})
	lost := countLossesOf(obs)
	planned := plan(obs, lost)
	want := decide(obs, lost, planned)

	answer := ask(t, Question{App: app, Now: testNow, Reader: Objects{app, set}})
	if answer.RequiredLimit.Value() != planned.need || answer.PodFailuresTolerated != planned.survives || answer.Tasks != planned.tasks || answer.Limit.Value() != want.limit {
		t.Errorf("need %s, survives %d, tasks %d, limit %s; the operator says %d, %d, %d, %d", answer.RequiredLimit, answer.PodFailuresTolerated, answer.Tasks, answer.Limit,
			planned.need, planned.survives, planned.tasks, want.limit)
	}
	fromText := ask(t, question())
	if fromText.RequiredLimit.Cmp(*answer.RequiredLimit) != 0 || fromText.Tasks != 24 {
		t.Errorf("the description gives a need of %s for %d tasks, the spec %s for %d", fromText.RequiredLimit, fromText.Tasks, answer.RequiredLimit, answer.Tasks)
	}
	if len(fromText.Assumptions) == 0 || !strings.HasPrefix(fromText.Assumptions[0], "topology, line ") {
		t.Errorf("assumptions %q, want the lines of the topology that they are about", fromText.Assumptions)
	}
}

func TestEveryChangeShowsInTheAnswer(t *testing.T) {
	now := ask(t, question())
	for name, tc := range map[string]struct {
		change Change
		want   func(*Answer) bool
	}{
		"two losses need more": {Change{Lost: new(int32(2))}, func(a *Answer) bool {
			return *a.PodFailuresToTolerate == 2 && a.RequiredLimit.Cmp(*now.RequiredLimit) > 0
		}},
		"no loss needs less": {Change{Lost: new(int32(0))}, func(a *Answer) bool {
			return *a.PodFailuresToTolerate == 0 && a.RequiredLimit.Cmp(*now.RequiredLimit) < 0
		}},
		"six replicas share the tasks":        {Change{Replicas: new(int32(6))}, func(a *Answer) bool { return a.Instances == 6 && a.RequiredLimit.Cmp(*now.RequiredLimit) < 0 }},
		"twice the partitions, twice tasks":   {Change{Partitions: 2}, func(a *Answer) bool { return a.Tasks == 48 && a.RequiredLimit.Cmp(*now.RequiredLimit) > 0 }},
		"half a partition more is rounded up": {Change{Partitions: 1.04}, func(a *Answer) bool { return a.Tasks == 26 }},
		"a larger limit gets a larger heap":   {Change{Limit: memory("8Gi")}, func(a *Answer) bool { return a.Limit.String() == "8Gi" && a.Heap.Cmp(*now.Heap) > 0 }},
		"four threads have four producers":    {Change{Threads: new(int32(4))}, func(a *Answer) bool { return a.Load.Threads == 4 && a.RequiredLimit.Cmp(*now.RequiredLimit) > 0 }},
		"standbys are more tasks on each pod": {Change{Standbys: new(int32(1))}, func(a *Answer) bool { return a.Load.Total > now.Load.Total }},
		"an old version has its own findings": {Change{Version: "2.4.0"}, func(a *Answer) bool { return strings.Contains(strings.Join(a.Warnings, ";"), "2.4.0") }},
		"a cold start runs everything at once": {Change{ColdStart: true}, func(a *Answer) bool {
			return a.Load.Active == 24 && a.RequiredLimit.Cmp(*now.RequiredLimit) > 0 && a.PodFailuresToTolerate == nil
		}},
		"and needs no more than its limit": {Change{ColdStart: true, Limit: memory("16Gi")}, func(a *Answer) bool { return a.Verdict == VerdictFits }},
	} {
		t.Run(name, func(t *testing.T) {
			if a := ask(t, question(func(q *Question) { q.Change = tc.change })); !tc.want(a) {
				t.Errorf("tasks %d, losses %v, load %+v, limit %s, heap %s, need %s; before need %s, heap %s; warnings %q",
					a.Tasks, a.PodFailuresToTolerate, a.Load, a.Limit, a.Heap, a.RequiredLimit, now.RequiredLimit, now.Heap, a.Warnings)
			}
		})
	}
}

func TestVerdictAndRemediesAgree(t *testing.T) {
	small := question(func(q *Question) { q.Reader = Objects{q.App, statefulSet(3, podTemplate("2Gi"))} })
	answer := ask(t, small)
	if answer.Verdict != VerdictDoesNotFit || len(answer.Missing) == 0 || len(answer.Remedies) == 0 {
		t.Fatalf("verdict %s, missing %q, remedies %q", answer.Verdict, answer.Missing, answer.Remedies)
	}
	limit, isLimit := strings.CutPrefix(answer.Remedies[0], "raise the limit of container app to ")
	if !isLimit || len(answer.Remedies) != 2 {
		t.Fatalf("remedies %q, want a limit and a number of replicas", answer.Remedies)
	}
	var replicas int32
	if _, err := fmt.Sscanf(answer.Remedies[1], "run %d replicas under the limit of 2Gi", &replicas); err != nil {
		t.Fatal(err)
	}
	for _, change := range []Change{{Limit: memory(limit)}, {Replicas: &replicas}} {
		small.Change = change
		if cured := ask(t, small); cured.Verdict != VerdictFits || len(cured.Remedies) != 0 {
			t.Errorf("the remedies were %q, but %+v is %s and needs %s", answer.Remedies, change, cured.Verdict, cured.RequiredLimit)
		}
	}
}

func TestABoundedProcessNeedsLess(t *testing.T) {
	shipped, bounded := ask(t, question()), ask(t, question(func(q *Question) { q.Bounded = true }))
	if bounded.RequiredLimit.Cmp(*shipped.RequiredLimit) >= 0 {
		t.Errorf("bounded %s, as shipped %s", bounded.RequiredLimit, shipped.RequiredLimit)
	}
	if bounded.Start.Plan.RocksDB.Cache <= 0 {
		t.Errorf("plan %+v, want the size of the shared cache", bounded.Start.Plan)
	}
}

func TestWhatCannotBeAnsweredSaysWhatIsMissing(t *testing.T) {
	spec := func(change func(*v1alpha1.StreamAppSpec)) change[Question] {
		return func(q *Question) { change(&q.App.Spec) }
	}
	for name, tc := range map[string]struct {
		change change[Question]
		want   string
	}{
		"no workload":               {func(q *Question) { q.Reader = Objects{} }, "there is no StatefulSet orders in namespace shop"},
		"another container":         {spec(func(s *v1alpha1.StreamAppSpec) { s.Container = "sidecar" }), "`container` must be one of app"},
		"no limit":                  {func(q *Question) { q.Reader = Objects{statefulSet(3, podTemplate(""))} }, "has no memory limit"},
		"a limit in milli-bytes":    {func(q *Question) { q.Change.Limit = memory("300m") }, "write 300Mi"},
		"no tasks":                  {func(q *Question) { q.Topology = "" }, "Topology#describe()"},
		"no partitions":             {func(q *Question) { q.Partitions = nil }, "the tasks of sub-topology 0 are not known"},
		"a topology that is cut":    {func(q *Question) { q.Topology = "Sub-topology: 0\nSource: S0 (topics: [a" }, "topology: line 2"},
		"a bad property":            {func(q *Question) { q.Properties = map[string]string{"num.stream.threads": "many"} }, "num.stream.threads"},
		"a version that is none":    {func(q *Question) { q.Change.Version = "latest" }, "want major.minor"},
		"an unknown kind of target": {spec(func(s *v1alpha1.StreamAppSpec) { s.TargetRef.Kind = "DaemonSet" }), "must be StatefulSet or Deployment"},
		"an unknown mode":           {spec(func(s *v1alpha1.StreamAppSpec) { s.Mode = "Force" }), "must be Observe or Enforce"},
		"an unknown kind of store":  {spec(func(s *v1alpha1.StreamAppSpec) { s.Streams.Stores[0].Kind = "Queue" }), "`streams.stores[0].kind` is \"Queue\""},
		"an unknown region":         {spec(func(s *v1alpha1.StreamAppSpec) { s.Memory.Pins = []v1alpha1.Pin{{Region: "Swap"}} }), "`memory.pins[0].region` is \"Swap\""},
		"a subtopology without id":  {spec(func(s *v1alpha1.StreamAppSpec) { s.Streams.Subtopologies = make([]v1alpha1.Subtopology, 1) }), "subtopologies[0].id` is not set"},
		"a subtopology twice": {spec(func(s *v1alpha1.StreamAppSpec) {
			s.Streams.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 1}, {ID: new(int32(0)), Tasks: 1}}
		}), "as of another before it"},
		"a range that is none": {spec(func(s *v1alpha1.StreamAppSpec) {
			s.Memory.MinLimit, s.Memory.MaxLimit = memory("2Gi"), memory("1Gi")
		}), "less than or equal to `memory.maxLimit`"},
		"a limit below any JVM's": {spec(func(s *v1alpha1.StreamAppSpec) { s.Memory.MaxLimit = memory("300m") }), "must be at least 64Mi"},
		"absurdly many replicas":  {func(q *Question) { q.Change.Replicas = new(int32(2e9)) }, "must be from 0 to 1000"},
		"negative replicas":       {func(q *Question) { q.Change.Replicas = new(int32(-1)) }, "has -1 replicas"},
		"absurdly many tasks": {spec(func(s *v1alpha1.StreamAppSpec) {
			s.Streams.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 2e9}}
		}), "subtopologies[0].tasks` is 2000000000: it must be from"},
		"absurdly many threads": {spec(func(s *v1alpha1.StreamAppSpec) { s.Streams.Threads = 5000 }), "`streams.threads` is 5000"},
		"a negative headroom":   {spec(func(s *v1alpha1.StreamAppSpec) { s.Memory.HeadroomPercent = new(int32(-1)) }), "must be from 0 to 50"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Explain(t.Context(), question(tc.change)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestWhatTheSpecSaysCountsBeforeTheProperties(t *testing.T) {
	answer := ask(t, question(func(q *Question) {
		q.Properties = map[string]string{"num.stream.threads": "2", "producer.buffer.memory": "1048576"}
		q.App.Spec.Streams.Configs = []v1alpha1.Config{{Name: "num.stream.threads", Value: "3"}}
	}))
	for _, fact := range answer.Facts {
		if fact.Name == "stream threads" && fact.Value != "3" || fact.Name == "buffer.memory" && (fact.Value != "1 MiB" || fact.Source != v1alpha1.SourceApp) {
			t.Errorf("%+v", fact)
		}
	}
}

func TestTwoStreamAppsForOneWorkloadAreTold(t *testing.T) {
	older := streamApp(func(app *v1alpha1.StreamApp) { app.Name = "a-rival" })
	answer := ask(t, question(func(q *Question) { q.Reader = append(q.Reader.(Objects), older) }))
	if !strings.Contains(strings.Join(answer.Warnings, ";"), "StreamApp a-rival names the same workload") || answer.Limit.String() != "4Gi" {
		t.Errorf("limit %s, warnings %q, want an answer for this one that names the other", answer.Limit, answer.Warnings)
	}
}

func TestRunningPodsAreReadFromObjects(t *testing.T) {
	var objects Objects
	for _, pod := range runningPodsOf(3, "4Gi") {
		objects = append(objects, pod)
	}
	stranger := runningPod(7, "4Gi", func(p *corev1.Pod) { p.OwnerReferences = nil })
	answer := ask(t, question(func(q *Question) {
		objects = append(objects, q.App, statefulSet(3, podTemplate("4Gi")), stranger)
		q.Reader = objects
	}))
	if len(answer.Pods) != 3 || answer.Instances != 3 {
		t.Errorf("pods %+v of %d instances, want the three of the StatefulSet", answer.Pods, answer.Instances)
	}
	var app v1alpha1.StreamApp
	if err := objects.Get(t.Context(), client.ObjectKey{Namespace: testNamespace, Name: "nobody"}, &app); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("error %v, want one that says that there is none", err)
	}
}

func TestAStatusIsAnAnswer(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Why", Message: "since"}
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       Verdict
	}{
		"all is well": {[]metav1.Condition{condition(v1alpha1.ConditionFits, metav1.ConditionTrue), condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionTrue)}, VerdictFits},
		"a loss is too much": {
			[]metav1.Condition{condition(v1alpha1.ConditionFits, metav1.ConditionTrue), condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionFalse)}, VerdictDoesNotFit,
		},
		"nobody knows": {[]metav1.Condition{condition(v1alpha1.ConditionFits, metav1.ConditionUnknown)}, VerdictUnknown},
		"not yet seen": {nil, VerdictUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			app := streamApp(func(app *v1alpha1.StreamApp) {
				app.Status = v1alpha1.StreamAppStatus{
					Conditions: tc.conditions, Tasks: new(int32(12)), PodFailuresTolerated: new(int32(1)), RequiredLimit: memory("2157Mi"),
					DivergentPods: []v1alpha1.PodStatus{{Name: "orders-0", RequiredLimit: memory("1Gi")}},
				}
			})
			answer := AnswerOf(app)
			if answer.Verdict != tc.want || answer.Tasks != 12 || answer.PodFailuresTolerated != 1 || len(answer.Pods) != 1 {
				t.Errorf("%+v, want %s of 12 tasks", answer, tc.want)
			}
			app.Generation++
			if later := AnswerOf(app); !strings.Contains(strings.Join(later.Warnings, ";"), "has not looked at it since") {
				t.Errorf("warnings %q of a status that is out of date", later.Warnings)
			}
			if tc.want == VerdictDoesNotFit && !strings.Contains(strings.Join(answer.Missing, ";"), "CascadeSafe is False (Why): since") {
				t.Errorf("missing %q, want what the condition says", answer.Missing)
			}
		})
	}
}

// TestAnAnswerKnowsWhatTheAgentsHaveShown: as the operator does, from what it has written down.
func TestAnAnswerKnowsWhatTheAgentsHaveShown(t *testing.T) {
	shown := func(states ...v1alpha1.ImageStatus) change[Question] {
		return func(q *Question) {
			q.App.Status.Images = states
			injection := &v1alpha1.PodInjection{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: testApp}}
			injection.Spec.AgentConfigMap = testAgentMap
			q.Reader = append(q.Reader.(Objects), injection)
		}
	}
	asShipped, proven := ask(t, question()), ask(t, question(shown(known(testImage, testDigest, v1alpha1.ImageProven, 0))))
	if proven.RequiredLimit.Cmp(*asShipped.RequiredLimit) >= 0 {
		t.Errorf("the need is %s once the image is proven, and %s before", proven.RequiredLimit, asShipped.RequiredLimit)
	}
	started := ask(t, question(shown(known(testImage, testDigest, v1alpha1.ImageStarted, 0))))
	wantNoDiff(t, "need of an image that has only started", asShipped.RequiredLimit.String(), started.RequiredLimit.String())
}
