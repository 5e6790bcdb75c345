// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// snapshot is the state of a StreamApp's objects, without the parts that differ between namespaces.
type snapshot struct {
	plan       map[string]string
	injection  string
	limits     map[string]int64
	notified   map[string]string // the revision that each pod was last notified of
	conditions map[string]string
}

func (f *fixture) snapshot() snapshot {
	f.t.Helper()
	plan := f.plan().Data
	delete(plan, planfile.TokenKey) // it is random
	state := snapshot{plan: plan, limits: f.limits(), notified: map[string]string{}, conditions: map[string]string{}}
	spec := f.injection().Spec
	state.injection = fmt.Sprint(spec.Memory.ForLimit, spec.Memory.Limit, spec.PlanRevision, spec.OwnOptions == nil, spec.Container)
	for _, pod := range f.pods() {
		state.notified[pod.Name] = pod.Annotations[v1alpha1.PublishedAnnotation]
	}
	for _, c := range f.app().Status.Conditions {
		state.conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	return state
}

// scaleInAndRaise removes a pod and waits until the operator has made every change, plan, injection and refreshes included.
func (f *fixture) scaleInAndRaise() {
	f.t.Helper()
	f.scaleIn()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Eventually(f.plan).Should(gomega.HaveField("Data", gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(requiredLimit(12))))))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectQuiet()
}

func TestConflictsAtEveryWriteAreRetried(t *testing.T) {
	f := newFixture(t)
	attempts := map[string]int{}
	f.writes.failWith(func(write string) error {
		attempts[write]++
		if attempts[write]%3 != 0 { // two conflicts before each write
			return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "orders", errors.New("the object has been modified"))
		}
		return nil
	})
	f.enforce()
	f.scaleInAndRaise()
	f.writes.failWith(nil)
	for _, write := range []string{writePlan, writeInjection, writeResize, writeRefresh, writeStatus} {
		f.Expect(attempts[write]).To(gomega.BeNumerically(">=", 3), write)
	}
	for _, c := range f.app().Status.Conditions {
		f.Expect(c.Message).NotTo(gomega.ContainSubstring("has been modified"), "conflicts must not be in the status")
	}
}

func TestConflictDoesNotHideFailedWrites(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet(func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers[0].Resources = memory("512Mi", "8Gi") })
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory = v1alpha1.MemorySpec{} })
	f.restartWithPlan()
	refreshes := 0
	f.writes.failWith(func(write string) error {
		if write != writeRefresh {
			return nil
		}
		refreshes++
		if refreshes%3 == 1 { // one of three pods
			return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "orders-0", errors.New("the object has been modified"))
		}
		return apierrors.NewInternalError(errors.New("failed calling webhook"))
	})
	f.patchStreamApp(`{"spec":{"memory":{"pins":[{"region":"Heap","size":"3Gi"}]}}}`)
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonWriteFailed)).To(gomega.MatchRegexp(
		`^\[notifying pod orders-\d of the plan: Internal error occurred: failed calling webhook, ` +
			`notifying pod orders-\d of the plan: Internal error occurred: failed calling webhook\]$`))

	f.writes.failWith(nil)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectQuiet()
}

// startOperatorToKill runs an operator that is killed before write number n+1 after the call of arm, and then another one.
func (f *fixture) startOperatorToKill(n int) (arm func(), wasKilled func() bool) {
	f.t.Helper()
	dead := make(chan struct{})
	first := f.newOperator()
	second := f.newOperator()
	arm = func() {
		written := 0
		f.writes.failWith(func(string) error {
			if written++; written <= n {
				return nil
			}
			select {
			case <-dead:
			default:
				close(dead)
			}
			return errors.New("the operator was killed")
		})
	}
	wasKilled = func() bool {
		select {
		case <-dead:
			return true
		default:
			return false
		}
	}
	f.run("the operators", func(ctx context.Context) error {
		alive, kill := context.WithCancel(ctx)
		defer kill()
		go func() {
			select {
			case <-dead:
			case <-ctx.Done():
			}
			kill()
		}()
		if err := first(alive); err != nil || ctx.Err() != nil {
			return err
		}
		f.writes.failWith(nil)
		return second(ctx)
	})
	return arm, wasKilled
}

// expectSameAfterKill runs a scenario once without a kill, and then once for each write before which the operator is killed. Every run must
// leave the same state.
func expectSameAfterKill(t *testing.T, prepare, scenario func(f *fixture)) {
	t.Helper()
	const maxWrites = 40 // far more than there are
	var want snapshot
	var writes []string
	t.Run("without a kill", func(t *testing.T) {
		f := newSerialFixture(t)
		f.startOperator()
		prepare(f)
		before := len(f.writes.all())
		scenario(f)
		writes = f.writes.all()[before:]
		want = f.snapshot()
	})
	if t.Failed() {
		return
	}
	if len(writes) > maxWrites {
		t.Fatalf("%d writes without a kill are too many: %v", len(writes), writes)
	}
	// The number of status writes depends on the timing of passes. All other writes happen in every run.
	least := len(slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return write == writeStatus }))
	for n := range writes {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			f := newFixture(t)
			arm, wasKilled := f.startOperatorToKill(n)
			prepare(f)
			arm()
			scenario(f)
			f.Expect(f.snapshot()).To(gomega.Equal(want))
			if n < least {
				f.Expect(wasKilled()).To(gomega.BeTrue(), "the operator must be killed")
			}
		})
	}
}

func TestOperatorKilledDuringFirstWritesLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, func(f *fixture) {
		f.createStatefulSet()
		f.spreadTasks(f.readyPods()...)
	}, func(f *fixture) {
		f.createStreamApp()
		f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
		f.expectQuiet()
	})
}

func TestOperatorKilledWhileRaisingLimitsLeavesSameState(t *testing.T) {
	expectSameAfterKill(t, func(f *fixture) {
		f.createStatefulSet()
		f.spreadTasks(f.readyPods()...)
		f.createStreamApp()
		f.restartWithPlan()
		f.expectQuiet()
	}, (*fixture).scaleInAndRaise)
}

func TestTemplateLimitChangedWithoutOperatorIsKept(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	stop := f.startOperator()
	f.createStreamApp()
	f.restartWithPlan()
	stop()

	const changed = int64(5 << 30)
	f.patchStatefulSet(`{"spec":{"template":{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"5Gi"}}}]}}}}`)
	f.awaitRollout()
	f.Expect(f.limits()).To(gomega.HaveEach(changed), "the injected limit is for another limit of the template")
	for _, pod := range f.pods() {
		f.Expect(pod.Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation))
	}

	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.expectQuiet()
	f.Expect(f.limits()).To(gomega.HaveEach(changed))
	f.Expect(f.injection().Spec.Memory.Limit).To(gomega.BeNil(), "the template's limit is large enough")
	f.Expect(f.plan().Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(changed))))
}

func TestRolloutsAndFlappingProbeResizeNothing(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	required := f.injection().Spec.Memory.Limit.Value()
	for range 3 {
		f.patchStatefulSet(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now()))
		f.Eventually(func() bool { // the group follows the pods, as in Kafka
			if ready := f.readyPods(); len(ready) > 0 {
				f.spreadTasks(ready...)
				f.passes(1)
			}
			return f.rolledOut()
		}).Should(gomega.BeTrue())
		f.Expect(f.limits()).To(gomega.HaveEach(required))
	}
	for i := range 6 {
		f.kubelet.SetReady("orders-1", i%2 == 1)
		f.Eventually(f.readyPods).Should(gomega.HaveLen(2 + i%2))
		f.passes(1)
	}
	f.advance(time.Minute)
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Expect(f.writes.count(writeResize)).To(gomega.BeZero())
	for _, pod := range f.pods() {
		f.Expect(pod.Generation).To(gomega.BeEquivalentTo(1), pod.Name)
		f.Expect(pod.ManagedFields).NotTo(gomega.ContainElement(gomega.HaveField("Subresource", "resize")), pod.Name)
		f.Expect(pod.Spec.Containers[0].Resources.Limits.Memory()).To(equalBytes(required))
	}
	f.Expect(f.injection().Spec.Memory.Limit).To(equalBytes(required), "a rollout must not raise the limit")
}
