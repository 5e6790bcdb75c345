// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/operatorconfig"
)

// configure gives the operator a configuration file and returns the function that writes it.
func (f *fixture) configure(content string) (write func(string)) {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "config.yaml")
	write = func(content string) {
		f.t.Helper()
		f.Expect(os.WriteFile(path+".new", []byte(content), 0o600)).To(gomega.Succeed())
		f.Expect(os.Rename(path+".new", path)).To(gomega.Succeed())
	}
	write(content)
	f.config = operatorconfig.Open(operatorconfig.Options{Path: path, Interval: 10 * time.Millisecond})
	f.run("the configuration", f.config.Start)
	return write
}

func TestConfigurationHoldsAllApplications(t *testing.T) {
	f := newFixture(t)
	write := f.configure("")
	f.enforce()
	before := f.snapshot()
	write("hold: an incident")
	f.Expect(f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonHeld)).To(
		gomega.Equal("the operator's configuration holds all applications: an incident"))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHeld)
	f.scaleIn() // the limits of the others would be raised
	f.expectQuiet()
	f.Expect(f.writes.count(writeResize)).To(gomega.BeZero())
	held := f.snapshot()
	f.Expect(held.plan).To(gomega.Equal(before.plan))
	f.Expect(held.injection).To(gomega.Equal(before.injection))

	write("hold: an incident\nclusters: [{}]") // a fault keeps the hold
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonHeld)
	write("")
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	f.Expect(f.writes.count(writeResize)).NotTo(gomega.BeZero())
	f.expectQuiet()
}

func TestFaultOfConfigurationIsNamedInStatus(t *testing.T) {
	f := newFixture(t)
	write := f.configure("clusters: [{name: prod}]") // faulty at the start
	f.enforce()
	message := func() string {
		f.passes(1)
		return f.expectCondition(v1alpha1.ConditionAssignmentKnown, metav1.ConditionTrue, v1alpha1.ReasonFromKafka)
	}
	fault := "the operator's configuration has a fault and its last good version is active: cluster \"prod\": bootstrapServers must name at least one host:port"
	f.Expect(message()).To(gomega.HaveSuffix(fault))
	f.expectCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPlanApplied)
	f.expectQuiet()
	write("clusters: [{name: prod, bootstrapServers: ['kafka:9092']}]")
	f.Eventually(message).ShouldNot(gomega.ContainSubstring("fault"))
	write("cluster: []")
	f.Eventually(message).Should(gomega.ContainSubstring("unknown field"))
}
