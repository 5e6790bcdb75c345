// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

func TestLastPlanIsKeptWhileKafkaFails(t *testing.T) {
	for name, tt := range map[string]struct {
		class       assignment.Class
		wantReason  string
		wantMessage string
	}{
		"unreachable": {
			class: assignment.ClassUnreachable, wantReason: v1alpha1.ReasonKafkaUnreachable,
			wantMessage: "group prod/orders: the Kafka cluster cannot be reached; the last known plan is kept",
		},
		"timeout": {
			class: assignment.ClassTimeout, wantReason: v1alpha1.ReasonKafkaUnreachable,
			wantMessage: "group prod/orders: the Kafka cluster does not respond in time; the last known plan is kept",
		},
		"unauthorized": {
			class: assignment.ClassUnauthorized, wantReason: v1alpha1.ReasonKafkaRefused,
			wantMessage: "group prod/orders: the Kafka cluster rejects the operator's credentials or permissions; the last known plan is kept",
		},
		"unknown group": {
			class: assignment.ClassUnknownGroup, wantReason: v1alpha1.ReasonGroupNotFound,
			wantMessage: "group prod/orders: the group does not exist on the Kafka cluster; the last known plan is kept",
		},
		"not a streams group": {
			class: assignment.ClassNotStreamsGroup, wantReason: v1alpha1.ReasonNotAStreamsGroup,
			wantMessage: "group prod/orders: the group does not belong to a Kafka Streams application; the last known plan is kept",
		},
		"malformed members": {
			class: assignment.ClassMalformed, wantReason: v1alpha1.ReasonUndecodable,
			wantMessage: "group prod/orders: group member metadata cannot be decoded; the last known plan is kept",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createStatefulSet()
			f.spreadTasks(f.readyPods()...)
			stop := f.startOperator()
			f.createStreamApp()
			f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
			plan := f.plan()
			injection := f.injection()

			f.groups.fail(tt.class)
			f.passes(2)
			f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, tt.wantReason)).To(gomega.Equal(tt.wantMessage))
			f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, tt.wantReason)

			stop() // a new operator has not observed the group
			f.groups.show(nil)
			f.groups.fail(tt.class)
			f.startOperator()
			f.passes(2)
			f.advance(11 * time.Second) // a failing source is awaited for ten
			f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, tt.wantReason)).To(gomega.Equal(tt.wantMessage))
			f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonAssignmentUnknown)).To(
				gomega.Equal("nothing was changed: the application's tasks are unknown; the last plan stays active"))
			f.expectQuiet()
			f.Expect(f.plan().ResourceVersion).To(gomega.Equal(plan.ResourceVersion))
			f.Expect(f.injection().ResourceVersion).To(gomega.Equal(injection.ResourceVersion))
		})
	}
}

func TestBootstrapPlanWithoutAssignment(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.groups.show(nil)
	f.groups.fail(assignment.ClassUnknownGroup)
	f.startOperator()
	f.createStreamApp()
	f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonGroupNotFound)).To(
		gomega.HavePrefix("group prod/orders: the group does not exist on the Kafka cluster"))
	f.expectCondition(v1alpha1.ConditionCascadeSafe, metav1.ConditionUnknown, v1alpha1.ReasonAssignmentUnknown)
	injection := f.injection()
	f.Expect(injection.Spec.Memory.Limit).To(gomega.BeNil(), "the required limit is unknown")
	f.Expect(f.plan().Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(2<<30))))

	f.spreadTasks(f.readyPods()...)
	f.passes(2)
	f.Expect(f.injection().Spec.Memory.Limit).To(equalBytes(requiredLimit(6)))
}

func TestGroupWithoutPermissionIsNotPolled(t *testing.T) {
	for name, tt := range map[string]struct {
		kafka       v1alpha1.KafkaSpec
		wantReason  string
		wantMessage string
	}{
		"unknown cluster": {
			kafka: v1alpha1.KafkaSpec{Cluster: "elsewhere"}, wantReason: v1alpha1.ReasonUnknownCluster,
			wantMessage: `the operator has no Kafka cluster "elsewhere" for group "orders" of namespace NS`,
		},
		"group not permitted by the cluster's configuration": {
			kafka: v1alpha1.KafkaSpec{Cluster: kafkaCluster, ApplicationID: "payments"}, wantReason: v1alpha1.ReasonUnknownCluster,
			wantMessage: `the operator has no Kafka cluster "prod" for group "payments" of namespace NS`,
		},
		"bootstrap servers of the user": {
			kafka: v1alpha1.KafkaSpec{BootstrapServers: []string{"broker:9092"}}, wantReason: v1alpha1.ReasonBootstrapServersNotPermitted,
			wantMessage: "`kafka.bootstrapServers` requires the operator's flag --allow-bootstrap-servers",
		},
		"no Kafka": {wantReason: v1alpha1.ReasonNoSource, wantMessage: "`kafka` is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createStatefulSet()
			f.spreadTasks(f.readyPods()...)
			f.startOperator()
			f.createStreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Kafka = tt.kafka })
			message := f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, tt.wantReason)
			f.Expect(message).To(gomega.HavePrefix(strings.ReplaceAll(tt.wantMessage, "NS", f.namespace)))
			f.Expect(f.groups.tracks(f.namespace + "/orders")).To(gomega.BeFalse())
		})
	}
}

func TestEveryPodIsPlannedForHeaviestProcessWithoutMatches(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.groups.show(ordersGroup("192.0.2.1", "192.0.2.2", "192.0.2.3")) // as with source NAT
	f.startOperator()
	f.createStreamApp()
	f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonMembersNotMatched)).To(gomega.Equal(
		"group prod/orders: 3 processes have no pod (no pod has the address 192.0.2.1 that the broker sees " +
			"(address translation on the way, or the pod is gone)); every pod is planned for the heaviest one"))
	f.Expect(f.injection().Spec.Memory.Limit).To(equalBytes(requiredLimit(6)), "the heaviest process, after the failure of one pod")
	f.expectQuiet()

	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
}

func TestRebalanceIsUnknownNotFalse(t *testing.T) {
	f := newFixture(t)
	f.createStatefulSet()
	f.startOperator()
	f.createStreamApp()
	f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)
	f.groups.set(assignment.Observation{State: "PreparingRebalance", At: time.Now()})
	f.passes(1)
	f.Expect(f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonRebalancing)).To(
		gomega.Equal("group prod/orders is in state PreparingRebalance and has shown no assignment yet"))
}

func TestPodEventAcceleratesPolling(t *testing.T) {
	f := newFixture(t)
	f.enforce()
	before := f.groups.hurriedCount()
	f.delete("orders-1", f.pod("orders-1"))
	f.Eventually(f.groups.hurriedCount).Should(gomega.BeNumerically(">", before))
}
