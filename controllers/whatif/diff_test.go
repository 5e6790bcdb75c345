// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

func diff(t *testing.T, q Question, mode v1alpha1.Mode) *Difference {
	t.Helper()
	d, err := Diff(q, mode)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// then returns the new value of a field.
func (d *Difference) then(object, field string) string {
	for _, c := range d.Changes {
		if c.Object == object && c.Field == field {
			return c.Then
		}
	}
	return ""
}

// enforced is about three pods with four tasks each, with the objects that the operator has stored. The last known tasks are in the plan.
func enforced(t *testing.T, changes ...change) Question {
	t.Helper()
	group := &assignment.Group{
		ApplicationID: testobjects.App, Protocol: assignment.Classic, State: "Stable", Stable: true, Assigned: true,
		Subtopologies: []assignment.Subtopology{{
			ID: "0", Tasks: 12, SourceTopics: []assignment.Topic{{Name: "in", Partitions: 12}},
			Changelogs: []assignment.Changelog{{Topic: "orders-counts-changelog", Store: "counts", Partitions: 12, Kind: assignment.KeyValue}},
		}},
	}
	q := question(func(q *Question) {
		q.Topology = ""
		q.App.Spec.Memory.MaxLimit = testobjects.Memory("4Gi")
		q.Objects = Objects{q.App, testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"))}
		for i, pod := range testobjects.RunningPods(3, "1Gi") {
			q.Objects = append(q.Objects, pod)
			process := assignment.Process{ID: pod.Name, Host: pod.Status.PodIPs[0].IP, Threads: 1}
			for n := range int32(4) {
				process.Tasks.Active = append(process.Tasks.Active, assignment.Task{Subtopology: "0", Partition: int32(4*i) + n})
			}
			group.Processes = append(group.Processes, process)
		}
	})
	given := q.Objects
	for range 2 { // a larger plan is published in the pass after the larger limits
		world := q.Objects.world(q.App)
		world.Now = q.Now
		world.AgentConfigMap = v1alpha1.AgentConfigMapPrefix + "0123456789"
		world.Group = decision.GroupSource{Latest: assignment.Observation{Group: group, At: q.Now}}
		d := decision.Decide(world, decision.Recall(q.App, world.PlanConfigMap, world.Injection, world.Pods, decision.Volatile{}))
		if d.Injection == nil || d.Injection.Memory.Limit == nil || d.Memory.Assignment == nil || len(d.Memory.Assignment.Loads) != 3 {
			t.Fatalf("injection %+v, frozen %q, memory %+v; want more memory, and three known loads", d.Injection, d.Frozen.Message, d.Memory.Assignment)
		}
		q.Objects = append(restarted(given, d.Injection.Memory.Limit.String()), storedBy(&d)...)
	}
	return *testobjects.Build(q, changes)
}

// storedBy returns the objects that a pass stores.
func storedBy(d *decision.Decision) Objects {
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: testobjects.Namespace, Name: decision.PlanConfigMapName(testobjects.App),
		Annotations: map[string]string{decision.AnnotationMemory: d.MemoryText()},
	}, Data: d.Files}
	meta := metav1.ObjectMeta{Namespace: testobjects.Namespace, Name: testobjects.App}
	return Objects{plan, &v1alpha1.PodInjection{ObjectMeta: meta, Spec: *d.Injection}}
}

// restarted returns the objects with pods that have the limit.
func restarted(objects Objects, limit string) Objects {
	objects = slices.Clone(objects)
	for _, object := range objects {
		if pod, is := object.(*corev1.Pod); is {
			resources := testobjects.MemoryResources(limit, limit)
			pod.Spec.Containers[0].Resources = resources
			pod.Status.ContainerStatuses[0].Resources = &resources
		}
	}
	return objects
}

// objectOf returns the object of a type.
func objectOf[T Object](t *testing.T, q *Question) T {
	t.Helper()
	i := slices.IndexFunc(q.Objects, func(o Object) bool { _, is := o.(T); return is })
	if i < 0 {
		t.Fatal("the object is missing")
	}
	return q.Objects[i].(T)
}

func TestFirstEnforceIsPlannedWithTheAgent(t *testing.T) {
	q := question(func(q *Question) { q.App.Spec.Mode = v1alpha1.ModeObserve })
	if d := diff(t, q, ""); len(d.Changes) > 0 || d.NewMode != v1alpha1.ModeObserve {
		t.Errorf("%+v, want no differences in mode Observe", d)
	}
	d := diff(t, q, v1alpha1.ModeEnforce)
	if d.Mode != v1alpha1.ModeObserve || d.then("PodInjection orders", "agent") != "injected" || d.PodFailuresTolerated == nil {
		t.Errorf("%+v, want the agent, and the pod failures tolerated", d)
	}
	if d.then("ConfigMap streamweir-plan-orders", "-XX:MaxRAM") == "" || d.then("ConfigMap streamweir-plan-orders", "rocksdb.cache.bytes") == "" {
		t.Errorf("changes %+v, want options and properties of the plan", d.Changes)
	}
	if strings.Contains(fmt.Sprint(d), placeholderAgent) {
		t.Errorf("%+v has the placeholder of the agent", d)
	}
	if q.App.Spec.Mode != v1alpha1.ModeObserve {
		t.Error("the StreamApp of the question was changed")
	}
	q.App.Spec.JVM.Version = 9
	if d := diff(t, q, v1alpha1.ModeEnforce); d.then("PodInjection orders", "agent") != "" {
		t.Errorf("changes %+v, want no agent for Java 9", d.Changes)
	}
}

func TestUnknownTasksShowTheBootstrapPlan(t *testing.T) {
	d := diff(t, question(func(q *Question) { q.Topology = "" }), "")
	if !slices.Contains(d.Notes, bootstrapNote) || d.PodFailuresTolerated != nil || len(d.Changes) == 0 {
		t.Errorf("%+v, want the bootstrap plan with a note", d)
	}
}

func TestNoDifferencesFromTheStoredObjects(t *testing.T) {
	d := diff(t, enforced(t), "")
	if len(d.Changes) > 0 || d.Frozen != "" || d.PodFailuresTolerated == nil {
		t.Errorf("%+v, want no differences with the last known tasks", d)
	}
}

func TestDifferencesFromTheStoredObjects(t *testing.T) {
	planOf := func(q *Question) map[string]string { return objectOf[*corev1.ConfigMap](t, q).Data }
	for name, tc := range map[string]struct {
		mode          v1alpha1.Mode
		change        change
		object, field string
	}{
		"a new pod has less": {"", func(q *Question) {
			objectOf[*v1alpha1.PodInjection](t, q).Spec.Memory.Limit = testobjects.Memory("1100Mi")
		}, "new pods", "memory limit"},
		"the plan has another option": {"", func(q *Question) {
			planOf(q)["jvm.options"] = regexp.MustCompile("(?m)^-XX:MaxRAM=.*$").ReplaceAllString(planOf(q)["jvm.options"], "-XX:MaxRAM=1Gi")
		}, "ConfigMap streamweir-plan-orders", "-XX:MaxRAM"},
		"a running pod has less": {"", func(q *Question) {
			*objectOf[*corev1.Pod](t, q) = *testobjects.RunningPod(0, "1Gi")
		}, "Pod orders-0", "memory limit"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := diff(t, enforced(t, tc.change), tc.mode); d.then(tc.object, tc.field) == "" {
				t.Errorf("%+v, want a change of %s of %s", d, tc.field, tc.object)
			}
		})
	}
}

func TestObserveRemovesTheInjection(t *testing.T) {
	d := diff(t, enforced(t), v1alpha1.ModeObserve)
	if limit := d.then("new pods", "memory limit"); limit != "1Gi" {
		t.Errorf("limit of new pods %q, want that of the template", limit)
	}
	if !slices.Contains(d.Changes, FieldChange{Object: "PodInjection orders", Field: "agent", Now: "injected"}) {
		t.Errorf("changes %+v, want no agent", d.Changes)
	}
}

func TestFrozenHasNoDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		mode   v1alpha1.Mode
		change change
		want   string
	}{
		"mode Hold": {v1alpha1.ModeHold, func(*Question) {}, "Hold"},
		"the last known tasks are lost": {"", func(q *Question) {
			objectOf[*corev1.ConfigMap](t, q).Annotations = nil
			q.App.Status.Tasks = new(int32(12))
		}, "the last plan stays active"},
		"an autoscaler": {"", func(q *Question) {
			q.Objects = append(q.Objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"namespace": testobjects.Namespace, "name": "orders"},
				"spec": map[string]any{
					"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": testobjects.App},
					"metrics":        []any{map[string]any{"resource": map[string]any{"name": "memory"}}},
				},
			}})
		}, "HorizontalPodAutoscaler orders"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := diff(t, enforced(t, tc.change), tc.mode); len(d.Changes) > 0 || !strings.Contains(d.Frozen, tc.want) {
				t.Errorf("%+v, want no changes, frozen with %q", d, tc.want)
			}
		})
	}
}
