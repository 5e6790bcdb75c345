// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

// described is a topology with one repartition topic and one store, 12 partitions each.
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

type change = testobjects.Change[Question]

// question is about a StatefulSet of three replicas with 4Gi each and no pods yet.
func question(changes ...change) Question {
	app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Streams.Stores = []v1alpha1.Store{{Name: "counts", Kind: v1alpha1.StoreKeyValue}}
	})
	return *testobjects.Build(Question{
		App: app, Now: testobjects.Now, Topology: described, Partitions: map[string]int32{"orders": 12},
		Objects: Objects{app, testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi"))},
	}, changes)
}

// withLimit replaces the workload by one with another limit in its template.
func withLimit(limit string) change {
	return func(q *Question) {
		q.Objects = Objects{q.App, testobjects.StatefulSet(3, testobjects.PodTemplate(limit))}
	}
}

// withSpec changes the spec of the StreamApp.
func withSpec(apply func(*v1alpha1.StreamAppSpec)) change {
	return func(q *Question) { apply(&q.App.Spec) }
}

func explain(t *testing.T, q Question) *Answer {
	t.Helper()
	answer, err := Explain(q)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// warnings returns the warnings of an answer in one text.
func warnings(a *Answer) string { return strings.Join(a.Warnings, ";") }

func TestAnswerIsTheOperatorsDecision(t *testing.T) {
	app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Streams.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 12, WrittenPartitions: new(int32(12))}, {ID: new(int32(1)), Tasks: 12}}
		app.Spec.Streams.Stores = []v1alpha1.Store{{Name: "counts", Kind: v1alpha1.StoreKeyValue, Subtopology: new(int32(1))}}
	})
	set := testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi"))
	world := decision.World{Now: testobjects.Now, App: app, StatefulSet: set}
	world.Group.Unavailable = decision.Problem{Reason: v1alpha1.ReasonNoSource, Message: decision.NoSourceText}
	plan := decision.Decide(world, decision.Recall(app, nil, nil, nil, decision.Volatile{})).Plan

	answer := explain(t, Question{App: app, Now: testobjects.Now, Objects: Objects{app, set}})
	if answer.RequiredLimit.Value() != plan.Required || answer.Limit.Value() != plan.Limit {
		t.Errorf("required limit %s, limit %s; the operator's are %d, %d", answer.RequiredLimit, answer.Limit, plan.Required, plan.Limit)
	}
	if answer.PodFailuresTolerated != plan.Tolerated || answer.Tasks != plan.Tasks {
		t.Errorf("tolerates %d, tasks %d; the operator's are %d, %d", answer.PodFailuresTolerated, answer.Tasks, plan.Tolerated, plan.Tasks)
	}
	fromText := explain(t, question())
	if fromText.RequiredLimit.Cmp(*answer.RequiredLimit) != 0 || fromText.Tasks != 24 {
		t.Errorf("from the description: required limit %s, tasks %d; from the spec %s, %d", fromText.RequiredLimit, fromText.Tasks, answer.RequiredLimit, answer.Tasks)
	}
	if len(fromText.Assumptions) == 0 || !strings.HasPrefix(fromText.Assumptions[0], "topology, line ") {
		t.Errorf("assumptions %q, want the lines of the topology", fromText.Assumptions)
	}
}

func TestChanges(t *testing.T) {
	now := explain(t, question())
	requiresMore := func(a *Answer) bool { return a.RequiredLimit.Cmp(*now.RequiredLimit) > 0 }
	requiresLess := func(a *Answer) bool { return a.RequiredLimit.Cmp(*now.RequiredLimit) < 0 }
	for name, tc := range map[string]struct {
		change Change
		want   func(*Answer) bool
	}{
		"two pod failures require more":   {Change{PodFailures: new(int32(2))}, func(a *Answer) bool { return *a.PodFailuresToTolerate == 2 && requiresMore(a) }},
		"no pod failure requires less":    {Change{PodFailures: new(int32(0))}, func(a *Answer) bool { return *a.PodFailuresToTolerate == 0 && requiresLess(a) }},
		"six replicas share the tasks":    {Change{Replicas: new(int32(6))}, func(a *Answer) bool { return a.Instances == 6 && requiresLess(a) }},
		"twice the partitions":            {Change{Partitions: 2}, func(a *Answer) bool { return a.Tasks == 48 && requiresMore(a) }},
		"half a partition is rounded up":  {Change{Partitions: 1.04}, func(a *Answer) bool { return a.Tasks == 26 }},
		"a larger limit has more heap":    {Change{Limit: testobjects.Memory("8Gi")}, func(a *Answer) bool { return a.Limit.String() == "8Gi" && a.Heap.Cmp(*now.Heap) > 0 }},
		"four threads, four producers":    {Change{Threads: new(int32(4))}, func(a *Answer) bool { return a.Load.Threads == 4 && requiresMore(a) }},
		"standbys are more tasks per pod": {Change{Standbys: new(int32(1))}, func(a *Answer) bool { return a.Load.Total > now.Load.Total }},
		"an old version has warnings":     {Change{Version: "2.4.0"}, func(a *Answer) bool { return strings.Contains(warnings(a), "2.4.0") }},
		"a cold start runs every task": {Change{ColdStart: true}, func(a *Answer) bool {
			return a.Load.Active == 24 && requiresMore(a) && a.PodFailuresToTolerate == nil
		}},
		"a cold start fits a large limit": {Change{ColdStart: true, Limit: testobjects.Memory("16Gi")}, func(a *Answer) bool { return a.Verdict == VerdictFits }},
	} {
		t.Run(name, func(t *testing.T) {
			if a := explain(t, question(func(q *Question) { q.Change = tc.change })); !tc.want(a) {
				t.Errorf("tasks %d, pod failures %v, load %+v, limit %s, heap %s, required limit %s; before: required limit %s, heap %s; warnings %q",
					a.Tasks, a.PodFailuresToTolerate, a.Load, a.Limit, a.Heap, a.RequiredLimit, now.RequiredLimit, now.Heap, a.Warnings)
			}
		})
	}
}

func TestALimitInPlaceOfTheTemplates(t *testing.T) {
	answer := explain(t, question(withLimit(""), func(q *Question) { q.Change.Limit = testobjects.Memory("4Gi") }))
	if answer.Limit.String() != "4Gi" || answer.Verdict != VerdictFits {
		t.Errorf("limit %s, verdict %s, want a template without a limit to get 4Gi, which fits", answer.Limit, answer.Verdict)
	}
}

func TestRemediesFit(t *testing.T) {
	small := question(withLimit("2Gi"))
	answer := explain(t, small)
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
	for _, change := range []Change{{Limit: testobjects.Memory(limit)}, {Replicas: &replicas}} {
		small.Change = change
		if cured := explain(t, small); cured.Verdict != VerdictFits || len(cured.Remedies) != 0 {
			t.Errorf("remedies %q, but with %+v the verdict is %s and the required limit %s", answer.Remedies, change, cured.Verdict, cured.RequiredLimit)
		}
	}
}

// The pods of the application give their memory back to the quota before others are created.
func TestQuotaIsSharedByNewPods(t *testing.T) {
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: testobjects.Namespace, Name: "memory"},
		Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: *testobjects.Memory("7Gi")},
			Used: corev1.ResourceList{corev1.ResourceLimitsMemory: *testobjects.Memory("4Gi")}, // 1Gi is of others
		},
	}
	full := question(withLimit("1Gi"), withSpec(func(s *v1alpha1.StreamAppSpec) { s.Memory.MaxLimit = testobjects.Memory("8Gi") }), func(q *Question) {
		for _, pod := range testobjects.RunningPods(3, "1Gi") {
			q.Objects = append(q.Objects, pod)
		}
		q.Objects = append(q.Objects, quota)
	})
	for name, tc := range map[string]struct {
		change Change
		want   string
	}{
		"the pods as they are": {Change{}, "2Gi"},
		"three new pods":       {Change{Replicas: new(int32(3))}, "2Gi"},
		"four new pods":        {Change{Replicas: new(int32(4))}, "1536Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			full.Change = tc.change
			if a := explain(t, full); a.Limit.String() != tc.want || !strings.Contains(strings.Join(a.Missing, ";"), "ResourceQuota memory allows at most "+tc.want) {
				t.Errorf("limit %s, missing %q, want %s by the quota", a.Limit, a.Missing, tc.want)
			}
		})
	}
}

func TestBoundedRequiresLess(t *testing.T) {
	byDefault := explain(t, question())
	bounded := explain(t, question(func(q *Question) { q.Bounded = true }))
	if bounded.RequiredLimit.Cmp(*byDefault.RequiredLimit) >= 0 {
		t.Errorf("required limit %s if bounded, %s with default RocksDB memory", bounded.RequiredLimit, byDefault.RequiredLimit)
	}
	if bounded.Start.Plan.RocksDB.Cache <= 0 {
		t.Errorf("plan %+v, want the size of the shared cache", bounded.Start.Plan)
	}
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"no workload":           {func(q *Question) { q.Objects = nil }, "StatefulSet orders, the target of StreamApp orders, does not exist in namespace shop"},
		"no such container":     {withSpec(func(s *v1alpha1.StreamAppSpec) { s.Container = "sidecar" }), "`container` must be one of app"},
		"no limit":              {withLimit(""), "has no memory limit"},
		"a limit in milli-byte": {func(q *Question) { q.Change.Limit = testobjects.Memory("300m") }, "set 300Mi"},
		"no tasks":              {func(q *Question) { q.Topology = "" }, "Topology#describe()"},
		"no partitions":         {func(q *Question) { q.Partitions = nil }, "the tasks of sub-topology 0 are not known"},
		"a truncated topology":  {func(q *Question) { q.Topology = "Sub-topology: 0\nSource: S0 (topics: [a" }, "topology: line 2"},
		"topology and brokers":  {func(q *Question) { q.Group = &assignment.Group{} }, "exclude each other"},
		"an invalid property":   {func(q *Question) { q.Properties = map[string]string{"num.stream.threads": "many"} }, "num.stream.threads"},
		"an invalid version":    {func(q *Question) { q.Change.Version = "latest" }, "must be major.minor"},
		"too many replicas":     {func(q *Question) { q.Change.Replicas = new(int32(2e9)) }, "must be from 0 to 1000"},
		"negative replicas":     {func(q *Question) { q.Change.Replicas = new(int32(-1)) }, "has -1 replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Explain(question(tc.change)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestSpecTakesPrecedenceOverProperties(t *testing.T) {
	answer := explain(t, question(func(q *Question) {
		q.Properties = map[string]string{"num.stream.threads": "2", "producer.buffer.memory": "1048576"}
		q.App.Spec.Streams.Configs = []v1alpha1.Config{{Name: "num.stream.threads", Value: "3"}}
	}))
	want := map[string]decision.ResolvedFact{
		"stream threads": {Value: "3", Source: v1alpha1.SourceApp}, "buffer.memory": {Value: "1 MiB", Source: v1alpha1.SourceApp},
	}
	for _, fact := range answer.Facts {
		if expected, listed := want[fact.Name]; listed && (fact.Value != expected.Value || fact.Source != expected.Source) {
			t.Errorf("%+v, want %+v", fact, expected)
		}
		delete(want, fact.Name)
	}
	if len(want) > 0 {
		t.Errorf("facts %+v without %v", answer.Facts, want)
	}
}

func TestConflictingStreamAppIsAWarning(t *testing.T) {
	older := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Name = "another" })
	answer := explain(t, question(func(q *Question) { q.Objects = append(q.Objects, older) }))
	if !strings.Contains(warnings(answer), "StreamApp another targets the same workload") || answer.Limit.String() != "4Gi" {
		t.Errorf("limit %s, warnings %q, want an answer for this one that names the other", answer.Limit, answer.Warnings)
	}
}

func TestRunningPods(t *testing.T) {
	notOwned := testobjects.RunningPod(7, "4Gi", func(p *corev1.Pod) { p.OwnerReferences = nil })
	healthy := testobjects.Node("node-0", corev1.ConditionTrue)
	for name, tc := range map[string]struct {
		nodes Objects
		want  int
	}{
		"without nodes all count as healthy": {nil, 3},
		"nodes that are missing are lost":    {Objects{healthy}, 1},
		"a silent node is lost": {
			Objects{healthy, testobjects.Node("node-1", corev1.ConditionTrue), testobjects.Node("node-2", corev1.ConditionUnknown)}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := explain(t, question(func(q *Question) {
				for _, pod := range testobjects.RunningPods(3, "4Gi") {
					q.Objects = append(q.Objects, pod)
				}
				q.Objects = append(append(q.Objects, notOwned), tc.nodes...)
			}))
			if len(answer.Pods) != tc.want || answer.Instances != tc.want {
				t.Errorf("pods %+v of %d instances, want %d of the StatefulSet", answer.Pods, answer.Instances, tc.want)
			}
		})
	}
}

func TestChangesOfAGroup(t *testing.T) {
	group := &assignment.Group{
		ApplicationID: testobjects.App, Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true, Brokers: 3,
		Processes: []assignment.Process{{ID: "p", Host: "10.0.0.1", Threads: 1}},
		Subtopologies: []assignment.Subtopology{{
			ID: "0", Tasks: 12, SourceTopics: []assignment.Topic{{Name: "in", Partitions: 12}}, SinkTopics: []assignment.Topic{{Name: "out", Partitions: 12}},
			Changelogs: []assignment.Changelog{{Topic: "orders-counts-changelog", Store: "counts", Partitions: 12, Kind: assignment.KeyValue}},
		}},
	}
	fromGroup := question(func(q *Question) {
		q.Topology = ""
		q.Group = group
	})
	now := explain(t, fromGroup)
	if now.Tasks != 12 || now.Load.Threads != 1 {
		t.Errorf("tasks %d, threads %d, want 12 and 1", now.Tasks, now.Load.Threads)
	}
	fromGroup.Change = Change{Partitions: 1.5, Threads: new(int32(4)), Standbys: new(int32(1))}
	then := explain(t, fromGroup)
	if then.Tasks != 18 || then.Load.Threads != 4 || then.Load.Total <= then.Load.Active {
		t.Errorf("tasks %d, load %+v, want 18 tasks, 4 threads and standbys", then.Tasks, then.Load)
	}
	if s := group.Subtopologies[0]; s.Tasks != 12 || s.SinkTopics[0].Partitions != 12 || group.Processes[0].Threads != 1 || group.Standbys != nil {
		t.Errorf("group %+v, want it unchanged", group)
	}
}

// The answer uses the image states in the status, as the operator does.
func TestImageStates(t *testing.T) {
	withImage := func(state v1alpha1.ImageState) change {
		return func(q *Question) {
			q.App.Status.Images = []v1alpha1.ImageStatus{{Image: "registry.example/orders:1", ImageID: "registry.example/orders@sha256:1", State: state}}
			q.Objects = append(q.Objects, &v1alpha1.PodInjection{
				ObjectMeta: metav1.ObjectMeta{Namespace: testobjects.Namespace, Name: testobjects.App},
				Spec:       v1alpha1.PodInjectionSpec{AgentConfigMap: "streamweir-agent-orders-0123456789"},
			})
		}
	}
	unknown := explain(t, question())
	if proven := explain(t, question(withImage(v1alpha1.ImageProven))); proven.RequiredLimit.Cmp(*unknown.RequiredLimit) >= 0 {
		t.Errorf("required limit %s with a proven image, %s without", proven.RequiredLimit, unknown.RequiredLimit)
	}
	if started := explain(t, question(withImage(v1alpha1.ImageStarted))); started.RequiredLimit.Cmp(*unknown.RequiredLimit) != 0 {
		t.Errorf("required limit %s with a started image, %s without", started.RequiredLimit, unknown.RequiredLimit)
	}
}
