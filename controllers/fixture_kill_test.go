// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// snapshot is the state of a StreamApp's objects, without the parts that differ between namespaces.
type snapshot struct {
	plan       map[string]string // nil if it does not exist
	injection  string            // empty if it does not exist
	agents     []string
	unneeded   []string
	limits     map[string]int64
	notified   map[string]string // the revision that each pod was last notified of
	conditions map[string]string
}

func (f *fixture) snapshot() snapshot {
	f.t.Helper()
	state := snapshot{agents: f.agentNames(), limits: f.limits(), notified: map[string]string{}, conditions: map[string]string{}}
	var plan corev1.ConfigMap
	if f.exists("streamweir-plan-orders", &plan) {
		state.plan = maps.Clone(plan.Data)
		delete(state.plan, planfile.TokenKey) // it is random
		if plan.Annotations["streamweir.dev/unused-since"] != "" {
			state.unneeded = append(state.unneeded, "plan")
		}
	}
	var injection v1alpha1.PodInjection
	if f.exists("orders", &injection) {
		spec := injection.Spec
		state.injection = fmt.Sprint(spec.Memory.ForLimit, spec.Memory.Limit, spec.PlanRevision, spec.OwnOptions == nil, spec.Container, spec.AgentConfigMap)
		if injection.Annotations["streamweir.dev/unused-since"] != "" {
			state.unneeded = append(state.unneeded, "injection")
		}
	}
	state.unneeded = append(state.unneeded, f.unneededAgents()...)
	for _, pod := range f.pods() {
		state.notified[pod.Name] = pod.Annotations[v1alpha1.PublishedAnnotation]
	}
	var app v1alpha1.StreamApp
	if f.exists("orders", &app) {
		for _, c := range app.Status.Conditions {
			state.conditions[c.Type] = string(c.Status) + " " + c.Reason
		}
	}
	return state
}

// unsafeState describes the first fault of the stored objects with which a pod could be started or restarted without an operator: a missing
// ConfigMap, or a plan above the memory that a pod has or gets. It is empty if everything is safe.
func (f *fixture) unsafeState(ctx context.Context) (fault string, err error) {
	var configMaps corev1.ConfigMapList
	var pods corev1.PodList
	var injections v1alpha1.PodInjectionList
	for _, list := range []client.ObjectList{&configMaps, &pods, &injections} {
		if err := admin.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
			return "", err
		}
	}
	files := map[string]map[string]string{}
	for i := range configMaps.Items {
		files[configMaps.Items[i].Name] = configMaps.Items[i].Data
	}
	tooLarge := func(reader, plan string, memory int64) (string, error) {
		if files[plan] == nil {
			return fmt.Sprintf("%s mounts ConfigMap %s, which does not exist", reader, plan), nil
		}
		published, err := planfile.Parse(files[plan])
		if err == nil && published.Limit > memory {
			return fmt.Sprintf("%s has %d bytes and reads a plan for %d", reader, memory, published.Limit), nil
		}
		return "", err
	}
	for i := range injections.Items {
		spec := &injections.Items[i].Spec
		memory := int64(templateLimit)
		if spec.Memory.Limit != nil {
			memory = spec.Memory.Limit.Value()
		}
		if _, exists := files[spec.AgentConfigMap]; !exists && spec.AgentConfigMap != "" {
			return fmt.Sprintf("the injection names agent %s, which does not exist", spec.AgentConfigMap), nil
		}
		if fault, err := tooLarge("a new pod", spec.PlanConfigMap, memory); fault != "" || err != nil {
			return fault, err
		}
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil { // a kubelet starts no container of a terminating pod
			continue
		}
		if fault, err := faultOfPod(&pods.Items[i], files, tooLarge); fault != "" || err != nil {
			return fault, err
		}
	}
	return "", nil
}

// faultOfPod describes the fault of one pod. files has the data of each ConfigMap by name.
func faultOfPod(pod *corev1.Pod, files map[string]map[string]string, tooLarge func(reader, plan string, memory int64) (string, error)) (string, error) {
	memory := pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	for _, status := range pod.Status.ContainerStatuses {
		if status.Resources != nil { // the limit that the kubelet has applied
			memory = min(memory, status.Resources.Limits.Memory().Value())
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		if _, exists := files[volume.ConfigMap.Name]; !exists {
			return fmt.Sprintf("pod %s mounts ConfigMap %s, which does not exist", pod.Name, volume.ConfigMap.Name), nil
		}
		if volume.Name == v1alpha1.PlanVolume {
			return tooLarge("pod "+pod.Name, volume.ConfigMap.Name, memory)
		}
	}
	return "", nil
}

// killScenario is a change that the operator must complete, although it is killed at any write.
type killScenario struct {
	// agents adds agents to the pods.
	agents  bool
	prepare func(f *fixture)
	// change leads to the writes at which the operator is killed, and waits for their result.
	change func(f *fixture)
	// newJar is the agent of a new version of the operator. The change then begins with its start, and prepare has the earlier version. Nil
	// keeps the operator.
	newJar []byte
}

// run runs the scenario with an operator. It calls arm between the preparation and the first write of the change.
func (s killScenario) run(f *fixture, newOperator func() func(context.Context) error, arm func()) {
	f.t.Helper()
	if s.agents {
		f.simulateAgents()
	}
	if s.newJar == nil {
		f.run("the operator", newOperator())
		s.prepare(f)
		arm()
	} else {
		stop := f.startOperator()
		s.prepare(f)
		stop()
		f.agentJar = s.newJar
		operator := newOperator()
		arm()
		f.run("the operator", operator)
	}
	s.change(f)
}

// mortal is an operator killed before one of its writes, and then another one. The objects that the first one leaves must be safe.
type mortal struct {
	f    *fixture
	dead chan struct{}
}

// killBeforeWrite has the operator killed before write number n+1.
func (m *mortal) killBeforeWrite(n int) {
	written := 0
	m.f.writes.failWith(func(string) error {
		if written++; written <= n {
			return nil
		}
		if !m.killed() {
			close(m.dead)
		}
		return errors.New("the operator was killed")
	})
}

func (m *mortal) killed() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

// newOperator sets up the two operators and returns the function that runs them, one after the other.
func (m *mortal) newOperator() func(context.Context) error {
	first := m.f.newOperator()
	second := m.f.newOperator()
	return func(ctx context.Context) error {
		alive, kill := context.WithCancel(ctx)
		defer kill()
		go func() {
			select {
			case <-m.dead:
			case <-ctx.Done():
			}
			kill()
		}()
		if err := first(alive); err != nil || ctx.Err() != nil {
			return err
		}
		fault, err := m.f.unsafeState(ctx)
		if err == nil && fault != "" {
			err = fmt.Errorf("the killed operator left an unsafe state: %s", fault)
		}
		m.f.writes.failWith(nil)
		return errors.Join(err, second(ctx))
	}
}

// expectSameAfterKill runs a scenario once without a kill, and then once for each write before which the operator is killed. Every run must
// leave the same state, and each kill a safe one.
func expectSameAfterKill(t *testing.T, scenario killScenario) {
	t.Helper()
	const maxWrites = 40 // far more than there are
	var want snapshot
	var writes []string
	t.Run("without a kill", func(t *testing.T) {
		f := newSerialFixture(t)
		before := 0
		scenario.run(f, f.newOperator, func() { before = len(f.writes.all()) })
		writes = f.writes.all()[before:]
		want = f.snapshot()
		fault, err := f.unsafeState(t.Context())
		f.Expect(err).NotTo(gomega.HaveOccurred())
		f.Expect(fault).To(gomega.BeEmpty())
	})
	if t.Failed() {
		return
	}
	if len(writes) > maxWrites {
		t.Fatalf("%d writes without a kill are too many: %v", len(writes), writes)
	}
	// The number of status writes depends on the timing of passes. All other writes happen in every run. Of several status writes in a row, one
	// is enough.
	least := len(slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return write == writeStatus }))
	for n, write := range writes {
		if n > 0 && write == writeStatus && writes[n-1] == writeStatus {
			continue
		}
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			f := newFixture(t)
			operator := &mortal{f: f, dead: make(chan struct{})}
			scenario.run(f, operator.newOperator, func() { operator.killBeforeWrite(n) })
			f.Expect(f.snapshot()).To(gomega.Equal(want))
			if n < least {
				f.Expect(operator.killed()).To(gomega.BeTrue(), "the operator must be killed")
			}
		})
	}
}
