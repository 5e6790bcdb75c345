// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"streamweir.dev/streamweir/api/v1alpha1"
)

var (
	streamAppLabels = []string{"namespace", "name"}

	needBytes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_need_bytes",
		Help: "Smallest memory limit of a pod that holds what it may have to run after the losses asked for.",
	}, streamAppLabels)
	limitBytes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_limit_bytes",
		Help: "Memory limit that the plan wants for a pod.",
	}, streamAppLabels)
	survivesPods = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_survives_pods",
		Help: "Largest number of lost pods after which every survivor still fits; -1 if the pods do not fit now.",
	}, streamAppLabels)
	ready = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "streamweir_streamapp_ready",
		Help: "1 if the condition Ready is True, 0 otherwise.",
	}, streamAppLabels)
	resizesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "streamweir_resizes_total",
		Help: "Resizes of running pods that were asked for, by the API server's answer: accepted or refused.",
	}, []string{"answer"})
)

func init() {
	metrics.Registry.MustRegister(needBytes, limitBytes, survivesPods, ready, resizesTotal)
}

// recordMetrics shows the figures of a status that was written.
func recordMetrics(app *v1alpha1.StreamApp, survives int) {
	labels := prometheus.Labels{"namespace": app.Namespace, "name": app.Name}
	show := func(gauge *prometheus.GaugeVec, known bool, value func() float64) {
		if !known { // what is not known any more must not be shown as if it were
			gauge.Delete(labels)
			return
		}
		gauge.With(labels).Set(value())
	}
	status := &app.Status
	show(needBytes, status.RequiredLimit != nil, func() float64 { return float64(status.RequiredLimit.Value()) })
	show(survivesPods, status.PodFailuresTolerated != nil, func() float64 { return float64(survives) })
	show(limitBytes, status.Limit != nil, func() float64 { return float64(status.Limit.Value()) })
	value := 0.0
	if isTrue(app.Status.Conditions, v1alpha1.ConditionReady) {
		value = 1
	}
	ready.With(labels).Set(value)
}

// forgetMetrics drops the figures of a StreamApp that is gone.
func forgetMetrics(namespace, name string) {
	labels := prometheus.Labels{"namespace": namespace, "name": name}
	for _, gauge := range []*prometheus.GaugeVec{needBytes, limitBytes, survivesPods, ready} {
		gauge.Delete(labels)
	}
}
