// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"streamweir.dev/streamweir/api/v1alpha1"
)

var (
	streamAppLabels = []string{"namespace", "name"}

	requiredLimitBytes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_required_limit_bytes",
		Help: "Smallest memory limit of a pod that holds its tasks after the pod failures to tolerate.",
	}, streamAppLabels)
	limitBytes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_limit_bytes",
		Help: "Planned memory limit of a pod.",
	}, streamAppLabels)
	toleratedPodFailures = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_tolerated_pod_failures",
		Help: "Largest number of pod failures after which every survivor is within its limit; -1 if the pods exceed their limits now.",
	}, streamAppLabels)
	ready = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_ready",
		Help: "1 if the condition Ready is True, 0 otherwise.",
	}, streamAppLabels)
	configReloadSuccessful = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "streamweir_config_last_reload_successful",
		Help: "1 if the operator's configuration file was good when it was last read, 0 if an earlier version stays active.",
	})
	resizesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "streamweir_resizes_total",
		Help: "Requested resizes of running pods, by the API server's response: accepted or refused.",
	}, []string{"answer"})
)

func init() {
	metrics.Registry.MustRegister(requiredLimitBytes, limitBytes, toleratedPodFailures, ready, configReloadSuccessful, resizesTotal)
	configReloadSuccessful.Set(1)
}

// RecordConfigReload sets the metric of the configuration file.
func RecordConfigReload(successful bool) {
	value := 0.0
	if successful {
		value = 1
	}
	configReloadSuccessful.Set(value)
}

// recordMetrics sets the metrics of a written status.
func recordMetrics(app *v1alpha1.StreamApp, tolerated int) {
	labels := prometheus.Labels{"namespace": app.Namespace, "name": app.Name}
	set := func(gauge *prometheus.GaugeVec, known bool, value func() float64) {
		if !known { // a stale figure would be taken for a present one
			gauge.Delete(labels)
			return
		}
		gauge.With(labels).Set(value())
	}
	status := &app.Status
	set(requiredLimitBytes, status.RequiredLimit != nil, func() float64 { return float64(status.RequiredLimit.Value()) })
	set(toleratedPodFailures, status.PodFailuresTolerated != nil, func() float64 { return float64(tolerated) })
	set(limitBytes, status.Limit != nil, func() float64 { return float64(status.Limit.Value()) })
	value := 0.0
	if meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ConditionReady) {
		value = 1
	}
	ready.With(labels).Set(value)
}

// deleteMetrics deletes the metrics of a deleted StreamApp.
func deleteMetrics(namespace, name string) {
	labels := prometheus.Labels{"namespace": namespace, "name": name}
	for _, gauge := range []*prometheus.GaugeVec{requiredLimitBytes, limitBytes, toleratedPodFailures, ready} {
		gauge.Delete(labels)
	}
}
