// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// figuresOf are the metrics of a StreamApp as they are shown, by name without prefix.
func figuresOf(t *testing.T, app *v1alpha1.StreamApp) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "streamweir_streamapp_")
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if ours && labels["namespace"] == app.Namespace && labels["name"] == app.Name {
				figures[name] = metric.GetGauge().GetValue()
			}
		}
	}
	return figures
}

func TestMetricsFollowTheStatus(t *testing.T) {
	app := streamApp(func(app *v1alpha1.StreamApp) { app.Name = "metrics" })
	app.Status = v1alpha1.StreamAppStatus{
		RequiredLimit: memory("2Gi"), PodFailuresTolerated: new(int32(2)), Limit: memory("1Gi"),
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
	}
	recordMetrics(app, 2)
	wantNoDiff(t, "figures", map[string]float64{"need_bytes": 2 << 30, "limit_bytes": 1 << 30, "survives_pods": 2, "ready": 1}, figuresOf(t, app))

	recordMetrics(app, -1)
	if got := figuresOf(t, app)["survives_pods"]; got != -1 {
		t.Errorf("survives_pods = %v, want -1: the pods do not fit now", got)
	}

	app.Status = v1alpha1.StreamAppStatus{Limit: memory("1Gi")}
	recordMetrics(app, 0)
	wantNoDiff(t, "figures once the tasks are not known", map[string]float64{"limit_bytes": 1 << 30, "ready": 0}, figuresOf(t, app))

	forgetMetrics(app.Namespace, app.Name)
	wantNoDiff(t, "figures once it is gone", map[string]float64{}, figuresOf(t, app))
}
