// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/internal/testobjects"
)

// heaps returns applications whose heap is not the plan's.
func heaps() map[string]scenario {
	return map[string]scenario{"heap set on the command line": {byDefault: true, run: heapOnTheCommandLine}}
}

// heapOnTheCommandLine runs an application whose entry point sets the percentage of the heap, which wins over the plan, and which the pod
// template does not show. The report shows the heap, and the operator plans with it.
func heapOnTheCommandLine(t *testing.T, shared *fixture) {
	const limit = 400 * mib
	java := needJVM(t, 17)
	topic := shared.topic(t)
	volume := newPlan(t, goodPlan())
	files := planfile.WithRevision(map[string]string{
		planfile.PropertiesKey: properties(goodPlan()),
		planfile.OptionsKey:    fmt.Sprintf("-XX:+IgnoreUnrecognizedVMOptions\n-XX:MaxRAM=%d\n-XX:MaxRAMPercentage=32.0\n-XX:MinRAMPercentage=32.0\n", limit),
	})
	volume.publish(t, files)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = volume.path
	app.after = []string{"@" + filepath.Join(volume.path, planfile.OptionsKey)}
	app.ownHeap = true
	app.options = append(app.options, "-XX:MaxRAMPercentage=75.0")
	p := shared.started(t, topic, app)
	reported := p.eventually(t, "the running application", want{
		kafka: newest, bounded: report.BoundedActive, findings: []string{"PlanClamped"},
	}.checkRunning)
	if heap := reported.JVM.HeapMax; heap < limit*74/100 || heap > limit*76/100 {
		t.Errorf("the report has a heap of %d, want three quarters of %d", heap, limit)
	}
	if reported.Plan.Source != report.PlanClamped {
		t.Errorf("the source of the bounds is %s, want %s: the plan assumes a smaller heap", reported.Plan.Source, report.PlanClamped)
	}
	p.stop(t)

	decided := decide(reported, topic, files)
	required := decided.Plan.Pods["orders-0"].Required
	if rest := reported.JVM.Metaspace + reported.JVM.CodeCache + reported.RocksDB.CacheCapacity; required < reported.JVM.HeapMax+rest {
		t.Errorf("the required limit is %d, want the heap of %d and at least %d", required, reported.JVM.HeapMax, rest)
	}
	if percent := decided.Facts.Measured.HeapPercent; percent != 75 {
		t.Errorf("the heap of the image counts as %v per cent of the limit, want 75", percent)
	}
	shared.table.add(t, "heap set on the command line; Kafka Streams "+newest, java, "bounded, clamped; the operator plans with this heap", "PlanClamped")
}

// decide decides about an application of one pod with a report.
func decide(reported report.Report, applicationID string, plan map[string]string) decision.Decision {
	app := testobjects.StreamApp(testobjects.LimitsBetween("256Mi", "8Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Kafka.ApplicationID = applicationID })
	mounts := func(volume, configMap string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
		}}
	}
	planConfigMap := decision.PlanConfigMapName(app.Name)
	pod := testobjects.RunningPod(0, "400Mi", func(p *corev1.Pod) {
		p.UID = types.UID(podUID)
		p.Spec.Volumes = []corev1.Volume{mounts(v1alpha1.PlanVolume, planConfigMap), mounts(v1alpha1.AgentVolume, "streamweir-agent")}
		p.Status.ContainerStatuses[0].ImageID = "orders@sha256:1"
	})
	world := decision.World{
		Now: time.Now(), App: app, StatefulSet: testobjects.StatefulSet(1, testobjects.PodTemplate("400Mi")), Pods: []corev1.Pod{*pod},
		PlanConfigMap: &corev1.ConfigMap{Data: plan}, AgentConfigMap: "streamweir-agent",
		Group:   decision.GroupSource{Unavailable: decision.Problem{Reason: v1alpha1.ReasonNoSource, Message: decision.NoSourceText}},
		Reports: map[string]report.PodReport{podUID: {Pod: pod.Name, UID: podUID, Report: &reported, At: time.Now()}},
	}
	world.PlanConfigMap.Name = planConfigMap
	return decision.Decide(world, decision.Recall(app, nil, nil, world.Pods, decision.Volatile{}))
}
