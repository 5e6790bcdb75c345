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

func TestWhileKafkaFailsTheLastPlanIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		class       assignment.Class
		wantReason  string
		wantMessage string
	}{
		"unreachable": {
			class: assignment.ClassUnreachable, wantReason: v1alpha1.ReasonKafkaUnreachable,
			wantMessage: "group prod/orders: the Kafka cluster cannot be reached; the last known plan is kept",
		},
		"slow": {
			class: assignment.ClassTimeout, wantReason: v1alpha1.ReasonKafkaUnreachable,
			wantMessage: "group prod/orders: the Kafka cluster does not respond in time; the last known plan is kept",
		},
		"refusing": {
			class: assignment.ClassUnauthorized, wantReason: v1alpha1.ReasonKafkaRefused,
			wantMessage: "group prod/orders: the Kafka cluster rejects the operator's credentials or permissions; the last known plan is kept",
		},
		"without the group": {
			class: assignment.ClassUnknownGroup, wantReason: v1alpha1.ReasonGroupNotFound,
			wantMessage: "group prod/orders: the group does not exist on the Kafka cluster; the last known plan is kept",
		},
		"with a group of other consumers": {
			class: assignment.ClassNotStreamsGroup, wantReason: v1alpha1.ReasonNotAStreamsGroup,
			wantMessage: "group prod/orders: the group does not belong to a Kafka Streams application; the last known plan is kept",
		},
		"with members that cannot be read": {
			class: assignment.ClassMalformed, wantReason: v1alpha1.ReasonUndecodable,
			wantMessage: "group prod/orders: group member metadata cannot be decoded; the last known plan is kept",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createSet()
			w.share(w.readyPods()...)
			stop := w.startOperator()
			w.createApp()
			w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
			plan, injection := w.plan(), w.injection()

			w.groups.fail(tt.class)
			w.passes(2)
			w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, tt.wantReason)).To(gomega.Equal(tt.wantMessage))
			w.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, tt.wantReason)

			stop() // a new operator knows nothing of the group
			w.groups.show(nil)
			w.groups.fail(tt.class)
			w.startOperator()
			w.passes(2)
			w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, tt.wantReason)).To(gomega.Equal(tt.wantMessage))
			w.Expect(w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonAssignmentUnknown)).To(
				gomega.Equal("nothing was changed: it is not known which tasks there are; the last plan stays in force"))
			w.staysQuiet()
			w.Expect(w.plan().ResourceVersion).To(gomega.Equal(plan.ResourceVersion))
			w.Expect(w.injection().ResourceVersion).To(gomega.Equal(injection.ResourceVersion))
		})
	}
}

func TestWithoutAnAssignmentThePlanIsABeginning(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.groups.show(nil)
	w.groups.fail(assignment.ClassUnknownGroup)
	w.startOperator()
	w.createApp()
	w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonGroupNotFound)).To(
		gomega.HavePrefix("group prod/orders: the group does not exist on the Kafka cluster"))
	w.condition(v1alpha1.ConditionCascadeSafe, metav1.ConditionUnknown, v1alpha1.ReasonAssignmentUnknown)
	injection := w.injection()
	w.Expect(injection.Spec.Memory.Limit).To(gomega.BeNil(), "nobody knows yet what would be needed")
	w.Expect(w.plan().Data).To(gomega.HaveKeyWithValue(planfile.OptionsKey, gomega.ContainSubstring(maxRAM(2<<30))))

	w.share(w.readyPods()...)
	w.passes(2)
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(needOfOne(6)))
}

func TestAGroupThatMayNotBeAskedIsNot(t *testing.T) {
	for name, tt := range map[string]struct {
		kafka       v1alpha1.KafkaSpec
		wantReason  string
		wantMessage string
	}{
		"unknown cluster": {
			kafka: v1alpha1.KafkaSpec{Cluster: "elsewhere"}, wantReason: v1alpha1.ReasonUnknownCluster,
			wantMessage: `the operator has no Kafka cluster "elsewhere" that group "orders" of namespace NS may use`,
		},
		"a group that the cluster's configuration does not permit": {
			kafka: v1alpha1.KafkaSpec{Cluster: kafkaCluster, ApplicationID: "payments"}, wantReason: v1alpha1.ReasonUnknownCluster,
			wantMessage: `the operator has no Kafka cluster "prod" that group "payments" of namespace NS may use`,
		},
		"brokers of the user's own": {
			kafka: v1alpha1.KafkaSpec{BootstrapServers: []string{"broker:9092"}}, wantReason: v1alpha1.ReasonBootstrapServersNotPermitted,
			wantMessage: "`kafka.bootstrapServers` needs the operator's flag --allow-bootstrap-servers",
		},
		"no Kafka at all": {wantReason: v1alpha1.ReasonNoSource, wantMessage: "`kafka` is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createSet()
			w.share(w.readyPods()...)
			w.startOperator()
			w.createApp(func(app *v1alpha1.StreamApp) { app.Spec.Kafka = tt.kafka })
			message := w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, tt.wantReason)
			w.Expect(message).To(gomega.HavePrefix(strings.ReplaceAll(tt.wantMessage, "NS", w.namespace)))
			w.Expect(w.groups.tracks(w.namespace + "/orders")).To(gomega.BeFalse())
		})
	}
}

func TestMembersThatCannotBeMatchedMakeEveryPodTheHeaviest(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.groups.show(ordersGroup("192.0.2.1", "192.0.2.2", "192.0.2.3")) // source NAT on the way
	w.startOperator()
	w.createApp()
	w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionFalse, v1alpha1.ReasonMembersNotMatched)).To(gomega.Equal(
		"group prod/orders: 3 processes have no pod, the first because no pod has the address 192.0.2.1 that the broker sees " +
			"(address translation on the way, or the pod is gone); every pod is planned for the heaviest of them"))
	w.Expect(w.injection().Spec.Memory.Limit).To(equalBytes(needOfOne(6)), "the heaviest, after a loss")
	w.staysQuiet()

	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
}

func TestAGroupThatRebalancesIsNoError(t *testing.T) {
	w := newWorld(t)
	w.createSet()
	w.startOperator()
	w.createApp()
	w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved)
	w.groups.set(assignment.Observation{State: "PreparingRebalance", At: time.Now()})
	w.passes(1)
	w.Expect(w.condition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionUnknown, v1alpha1.ReasonRebalancing)).To(
		gomega.Equal("group prod/orders is in state PreparingRebalance and has shown no assignment yet"))
}

func TestAPodEventHurriesThePolling(t *testing.T) {
	w := newWorld(t)
	w.enforced()
	before := w.groups.timesHurried()
	w.delete("orders-1", w.pod("orders-1"))
	w.Eventually(w.groups.timesHurried).Should(gomega.BeNumerically(">", before))
}
