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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// outcome is what a life of a StreamApp leaves behind, without what differs from namespace to namespace.
type outcome struct {
	plan       map[string]string
	injection  string
	limits     map[string]int64
	told       map[string]string // the generation that each pod was told of last
	conditions map[string]string
}

func (w *world) outcome() outcome {
	w.t.Helper()
	result := outcome{plan: w.plan().Data, limits: w.limits(), told: map[string]string{}, conditions: map[string]string{}}
	spec := w.injection().Spec
	result.injection = fmt.Sprint(spec.Memory.ForLimit, spec.Memory.Limit, spec.PlanRevision, spec.OwnOptions == nil, spec.Container)
	for _, pod := range w.pods() {
		result.told[pod.Name] = pod.Annotations[v1alpha1.PublishedAnnotation]
	}
	for _, c := range w.app().Status.Conditions {
		result.conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	return result
}

// raised takes a pod away and waits until the operator has carried everything out, plan, injection and touches included.
func (w *world) raised() {
	w.t.Helper()
	w.scaleIn()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.Eventually(w.plan).Should(gomega.HaveField("Data", gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(needOfOne(12))))))
	w.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	w.staysQuiet()
}

func TestConflictsAtEveryWriteAreOvercome(t *testing.T) {
	w := newWorld(t)
	attempts := map[string]int{}
	w.gate.refuseWith(func(write string) error {
		attempts[write]++
		if attempts[write]%3 != 0 { // two conflicts before each write
			return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "orders", errors.New("it was changed by someone else"))
		}
		return nil
	})
	w.enforced()
	w.raised()
	w.gate.refuseWith(nil)
	for _, write := range []string{writePlan, writeInjection, writeResize, writeTouch, writeStatus} {
		w.Expect(attempts[write]).To(gomega.BeNumerically(">=", 3), write)
	}
	for _, c := range w.app().Status.Conditions {
		w.Expect(c.Message).NotTo(gomega.ContainSubstring("changed by someone else"), "a conflict is nobody's business")
	}
}

// startMortalOperator runs an operator that is killed before its write number n+1 from the moment that arm is called, and
// another one after it.
func (w *world) startMortalOperator(n int) (arm func(), wasKilled func() bool) {
	w.t.Helper()
	dead, first, second := make(chan struct{}), w.newOperator(), w.newOperator()
	arm = func() {
		written := 0
		w.gate.refuseWith(func(string) error {
			if written++; written <= n {
				return nil
			}
			select {
			case <-dead:
			default:
				close(dead)
			}
			return errors.New("the operator is dead")
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
	w.run("the operators", func(ctx context.Context) error {
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
		w.gate.refuseWith(nil)
		return second(ctx)
	})
	return arm, wasKilled
}

// killedAfter runs life in one world for each write that the operator could be killed after, until it outlives it, and
// compares what is left behind with a life that was not disturbed.
func killedAfter(t *testing.T, prepare, life func(w *world)) {
	t.Helper()
	const most = 40 // writes; far more than there are
	var want outcome
	var writes []string
	t.Run("undisturbed", func(t *testing.T) {
		w := newWorldAlone(t)
		w.startOperator()
		prepare(w)
		before := len(w.gate.all())
		life(w)
		writes, want = w.gate.all()[before:], w.outcome()
	})
	if t.Failed() {
		return
	}
	if len(writes) > most {
		t.Fatalf("%d writes in an undisturbed life are too many: %v", len(writes), writes)
	}
	// How often a status is written depends on what a pass sees; everything else is written in every life.
	least := len(slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return write == writeStatus }))
	for n := range writes {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			w := newWorld(t)
			arm, wasKilled := w.startMortalOperator(n)
			prepare(w)
			arm()
			life(w)
			w.Expect(w.outcome()).To(gomega.Equal(want))
			if n < least {
				w.Expect(wasKilled()).To(gomega.BeTrue(), "the operator must have been killed")
			}
		})
	}
}

func TestAnOperatorKilledWhileItBeginsIsReplacedWithoutADifference(t *testing.T) {
	killedAfter(t, func(w *world) {
		w.createSet()
		w.share(w.readyPods()...)
	}, func(w *world) {
		w.createApp()
		w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
		w.staysQuiet()
	})
}

func TestAnOperatorKilledWhileItRaisesLimitsIsReplacedWithoutADifference(t *testing.T) {
	killedAfter(t, func(w *world) {
		w.createSet()
		w.share(w.readyPods()...)
		w.createApp()
		w.restartInjected()
		w.staysQuiet()
	}, (*world).raised)
}

func TestATemplateLimitChangedWhileTheOperatorIsStoppedIsKept(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.share(w.readyPods()...)
	stop := w.startOperator()
	w.createApp()
	w.restartInjected()
	stop()

	const users = int64(5 << 30)
	w.patchSet(`{"spec":{"template":{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"5Gi"}}}]}}}}`)
	w.awaitRollout()
	w.Expect(w.limits()).To(gomega.HaveEach(users), "the value injected was for another template limit")
	for _, pod := range w.pods() {
		w.Expect(pod.Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation))
	}

	w.share(w.readyPods()...)
	w.startOperator()
	w.passes(1)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.staysQuiet()
	w.Expect(w.limits()).To(gomega.HaveEach(users))
	w.Expect(w.injection().Spec.Memory.Limit).To(gomega.BeNil(), "the template's own limit holds what is needed")
	w.Expect(w.plan().Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(users))))
}

func TestRollingUpdatesAndAFlappingProbeResizeNothing(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	need := w.injection().Spec.Memory.Limit.Value()
	for range 3 {
		w.patchSet(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now()))
		w.Eventually(func() bool { // the group follows the pods, as Kafka's would
			if ready := w.readyPods(); len(ready) > 0 {
				w.share(ready...)
				w.passes(1)
			}
			return w.rolledOut()
		}).Should(gomega.BeTrue())
		w.Expect(w.limits()).To(gomega.HaveEach(need))
	}
	for i := range 6 {
		w.kubelet.SetReady("orders-1", i%2 == 1)
		w.Eventually(w.readyPods).Should(gomega.HaveLen(2 + i%2))
		w.passes(1)
	}
	w.later(time.Minute)
	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	w.Expect(w.gate.sent(writeResize)).To(gomega.BeZero())
	for _, pod := range w.pods() {
		w.Expect(pod.Generation).To(gomega.BeEquivalentTo(1), pod.Name)
		w.Expect(pod.ManagedFields).NotTo(gomega.ContainElement(gomega.HaveField("Subresource", "resize")), pod.Name)
		w.Expect(pod.Spec.Containers[0].Resources.Limits.Memory()).To(equalBytes(need))
	}
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(need), "a rollout must not ratchet up")
}
