// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// metricsOf returns the exported metrics of a StreamApp by name, without the prefix.
func metricsOf(t *testing.T, app *v1alpha1.StreamApp) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		name, own := strings.CutPrefix(family.GetName(), "streamweir_streamapp_")
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if own && labels["namespace"] == app.Namespace && labels["name"] == app.Name {
				values[name] = metric.GetGauge().GetValue()
			}
		}
	}
	return values
}

func TestMetricsFollowTheStatus(t *testing.T) {
	app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Name = "metrics" })
	app.Status = v1alpha1.StreamAppStatus{
		RequiredLimit: testobjects.Memory("2Gi"), PodFailuresTolerated: new(int32(2)), Limit: testobjects.Memory("1Gi"),
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
	}
	recordMetrics(app, 2)
	wantNoDiff(t, "metrics", map[string]float64{"required_limit_bytes": 2 << 30, "limit_bytes": 1 << 30, "tolerated_pod_failures": 2, "ready": 1},
		metricsOf(t, app))

	recordMetrics(app, -1)
	if got := metricsOf(t, app)["tolerated_pod_failures"]; got != -1 {
		t.Errorf("tolerated_pod_failures = %v, want -1: the pods exceed their limits now", got)
	}

	app.Status = v1alpha1.StreamAppStatus{Limit: testobjects.Memory("1Gi")}
	recordMetrics(app, 0)
	wantNoDiff(t, "metrics while the tasks are unknown", map[string]float64{"limit_bytes": 1 << 30, "ready": 0}, metricsOf(t, app))

	deleteMetrics(app.Namespace, app.Name)
	wantNoDiff(t, "metrics after the deletion", map[string]float64{}, metricsOf(t, app))
}
