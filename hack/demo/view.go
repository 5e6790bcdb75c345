// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// within is the timeout of each wait. Most take a second or two; the operator polls Kafka every 2 s after a pod event.
const within = 90 * time.Second

// view is the observable state at one moment: from the API server, from Kafka, and from the files in the pods.
type view struct {
	app      v1alpha1.StreamApp
	pods     []corev1.Pod
	plan     map[string]string            // the plan ConfigMap
	mounted  map[string]map[string]string // the plan ConfigMap as mounted, by pod
	tasks    map[string][]assignment.Task // by pod
	allTasks int
}

// look reads the current view.
func (d *demo) look(ctx context.Context) (*view, error) {
	v := &view{mounted: map[string]map[string]string{}, tasks: map[string][]assignment.Task{}}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := d.client.Get(ctx, key, &v.app); err != nil {
		return nil, fmt.Errorf("reading the StreamApp: %w", err)
	}
	var pods corev1.PodList
	if err := d.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	v.pods = pods.Items
	var injection v1alpha1.PodInjection
	if err := d.client.Get(ctx, key, &injection); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the PodInjection: %w", err)
	} else if err == nil {
		if err := d.lookAtPlan(ctx, v, injection.Spec.PlanConfigMap); err != nil {
			return nil, err
		}
	}
	return v, d.lookAtGroup(ctx, v)
}

// lookAtPlan reads the plan ConfigMap and its mounted copies.
func (d *demo) lookAtPlan(ctx context.Context, v *view, configMap string) error {
	var plan corev1.ConfigMap
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: configMap}, &plan); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	v.plan = plan.Data
	for i := range v.pods {
		v.mounted[v.pods[i].Name] = d.nodes.Mounted(v.pods[i].Name, configMap)
	}
	return nil
}

// lookAtGroup reads the task assignment from Kafka.
func (d *demo) lookAtGroup(ctx context.Context, v *view) error {
	described := d.group.Describe(ctx, []string{name})[name]
	if described.Err != nil && !errors.Is(described.Err, assignment.ErrUnknownGroup) {
		return fmt.Errorf("describing the Kafka group: %w", described.Err)
	}
	for _, process := range described.Group.Processes {
		for i := range v.pods {
			if v.pods[i].Status.PodIP == process.Host {
				v.tasks[v.pods[i].Name] = process.Tasks.Active
			}
		}
		v.allTasks += len(process.Tasks.Active)
	}
	return nil
}

// until repeats a check on new views until it succeeds, and returns the successful view.
func (d *demo) until(ctx context.Context, what string, check func(*view) error) (*view, error) {
	deadline := time.After(within)
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	var last error
	for {
		v, err := d.look(ctx)
		if err == nil {
			err = check(v)
		}
		if err == nil {
			return v, nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: stopped", what)
		case <-deadline:
			return nil, fmt.Errorf("%s: not within %v: %w\nLast lines of the operator's log:\n%s", what, within, last, d.operatorLog)
		case <-pause.C:
		}
	}
}

// running returns the names of the pods that are ready.
func (v *view) running() []string {
	var names []string
	for i := range v.pods {
		for _, condition := range v.pods[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				names = append(names, v.pods[i].Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// pod returns a pod by name.
func (v *view) pod(name string) *corev1.Pod {
	for i := range v.pods {
		if v.pods[i].Name == name {
			return &v.pods[i]
		}
	}
	return &corev1.Pod{}
}

// limits returns the memory limits of a pod in bytes: as requested in the spec, and as reported by the kubelet.
func (v *view) limits(name string) (requested, actual int64) {
	pod := v.pod(name)
	if len(pod.Spec.Containers) > 0 {
		requested = pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	}
	if statuses := pod.Status.ContainerStatuses; len(statuses) > 0 && statuses[0].Resources != nil {
		actual = statuses[0].Resources.Limits.Memory().Value()
	}
	return requested, actual
}

// checkPodsRun: as many pods as wanted are ready.
func checkPodsRun(want int) func(*view) error {
	return func(v *view) error {
		if got := len(v.running()); got != want {
			return fmt.Errorf("%d pods are ready, not %d", got, want)
		}
		return nil
	}
}

// checkInjected checks that the admission policy injected the plan into every pod.
func checkInjected(v *view) error {
	for i := range v.pods {
		pod := &v.pods[i]
		if pod.Annotations[v1alpha1.PlanAnnotation] == "" {
			return fmt.Errorf("pod %s has no annotation %s", pod.Name, v1alpha1.PlanAnnotation)
		}
		if !strings.HasPrefix(optionsOf(pod), string(v1alpha1.LauncherOptions)) {
			return fmt.Errorf("the JVM options of pod %s are %q, without the plan", pod.Name, optionsOf(pod))
		}
		if len(v.mounted[pod.Name]) == 0 {
			return fmt.Errorf("pod %s has no plan mounted", pod.Name)
		}
	}
	return nil
}

// optionsOf returns the JDK_JAVA_OPTIONS of a pod's container.
func optionsOf(pod *corev1.Pod) string {
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == string(v1alpha1.JDKJavaOptions) {
			return variable.Value
		}
	}
	return ""
}

// checkPlanned checks that the operator knows the tasks of all running pods, that requested and actual limits are those of the
// plan, and that the published plan is mounted in the pods.
func checkPlanned(v *view) error {
	status := v.app.Status
	switch {
	case status.ObservedGeneration != v.app.Generation:
		return errors.New("the operator has not observed the StreamApp yet")
	case !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAssignmentKnown):
		return errors.New("the operator does not know the assignment: " + conditionText(status.Conditions, v1alpha1.ConditionAssignmentKnown))
	case status.Pods == nil || int(*status.Pods) != len(v.running()):
		return fmt.Errorf("the operator does not report %d pods", len(v.running()))
	case status.Limit == nil || status.RequiredLimit == nil:
		return errors.New("there is no plan yet: " + conditionText(status.Conditions, v1alpha1.ConditionFits))
	case status.RequiredLimit.Cmp(*status.Limit) > 0:
		return fmt.Errorf("the limit %s is below the required limit %s", status.Limit, status.RequiredLimit)
	case !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
		return errors.New("the StreamApp is not ready: " + conditionText(status.Conditions, v1alpha1.ConditionReady))
	}
	if err := checkHeap(v); err != nil {
		return err
	}
	for _, pod := range v.running() {
		requested, actual := v.limits(pod)
		if requested != actual || actual < status.Limit.Value() {
			return fmt.Errorf("pod %s: planned limit %s, requested %d, actual %d", pod, status.Limit, requested, actual)
		}
		if !maps.Equal(v.mounted[pod], v.plan) {
			return fmt.Errorf("the published plan is not mounted in pod %s yet", pod)
		}
	}
	return nil
}

// checkHeap checks that the published JVM options set no larger heap than the plan.
func checkHeap(v *view) error {
	var ram, percent float64
	for option := range strings.SplitSeq(v.plan[planfile.OptionsKey], "\n") {
		for prefix, value := range map[string]*float64{"-XX:MaxRAM=": &ram, "-XX:MaxRAMPercentage=": &percent} {
			text, found := strings.CutPrefix(option, prefix)
			if !found {
				continue
			}
			var err error
			if *value, err = strconv.ParseFloat(text, 64); err != nil {
				return fmt.Errorf("the published option %s: %w", option, err)
			}
		}
	}
	published := int64(ram * percent / 100)
	if published == 0 || v.app.Status.Heap == nil || published > v.app.Status.Heap.Value() {
		return fmt.Errorf("the published options set a heap of %s, the plan has %s", mebibytes(published), quantity(v.app.Status.Heap))
	}
	return nil
}

// checkFollowed checks that each remaining pod runs more tasks than before, with a larger limit and another plan.
func checkFollowed(before *view) func(*view) error {
	return func(v *view) error {
		if err := checkPlanned(v); err != nil {
			return err
		}
		for _, pod := range v.running() {
			_, was := before.limits(pod)
			_, is := v.limits(pod)
			if is <= was {
				return fmt.Errorf("the limit of pod %s is unchanged", pod)
			}
			if len(v.tasks[pod]) <= len(before.tasks[pod]) {
				return fmt.Errorf("pod %s has no additional tasks", pod)
			}
		}
		if maps.Equal(v.plan, before.plan) {
			return errors.New("the published plan is unchanged")
		}
		return nil
	}
}

// checkTasksOn checks that all tasks run, and only on these pods.
func checkTasksOn(pods []string) func(*view) error {
	return func(v *view) error {
		if v.allTasks != partitions {
			return fmt.Errorf("%d of %d tasks are running", v.allTasks, partitions)
		}
		if got := slices.Sorted(maps.Keys(v.tasks)); !slices.Equal(got, pods) {
			return fmt.Errorf("tasks are running on %v, want %v", got, pods)
		}
		return nil
	}
}

// conditionText returns reason and message of a condition.
func conditionText(conditions []metav1.Condition, kind string) string {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil {
		return "no condition " + kind
	}
	return condition.Reason + ": " + condition.Message
}
