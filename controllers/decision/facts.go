// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Facts are derived from the World and the Memory: each fact once. They are not changed afterwards.
type Facts struct {
	Now time.Time
	App *v1alpha1.StreamApp
	// ConflictingApp is an older StreamApp with the same target; empty without one.
	ConflictingApp string
	// Workload and Container are nil if they were not found.
	Workload  *Workload
	Container *Container
	Pods      []Pod // sorted by name
	Cap       NamespaceCap
	Failures  Failures

	// Kafka is the Kafka group as a source, Reports the reports; Assignment combines them.
	Kafka      GroupSource
	Reports    Reports
	Assignment Assignment

	Images   Images
	Measured v1alpha1.MeasuredRegions
	// Proven: new pods count as bounded.
	Proven bool
	// NotInjectable is the reason for which the plan cannot be injected into new pods; not found if it can.
	NotInjectable Problem

	PlanConfigMap  *corev1.ConfigMap
	Injection      *v1alpha1.PodInjection
	AgentConfigMap string

	SuppliedTopology *Topology
	AssumeBounded    bool
	ColdStart        bool

	Memory Memory
}

// deriveFacts derives the facts of one pass.
func deriveFacts(w World, m Memory) Facts {
	f := Facts{
		Now: w.Now, App: w.App, ConflictingApp: w.ConflictingApp, Kafka: w.Group,
		PlanConfigMap: w.PlanConfigMap, Injection: w.Injection, AgentConfigMap: w.AgentConfigMap,
		SuppliedTopology: w.Topology, AssumeBounded: w.AssumeBounded, ColdStart: w.ColdStart, Memory: m,
	}
	f.Workload = workloadOf(w.StatefulSet, w.Deployment)
	if f.Workload != nil {
		f.Container = containerOf(w.App, f.Workload.Template, w.ConfigMaps)
	}
	toTolerate := w.App.Spec.Memory.PodFailuresToTolerate
	if f.Container != nil {
		f.Pods = podsOf(w.Pods, f.Container.Name, w.Nodes)
		f.NotInjectable = notInjectable(&w.App.Spec, f.Container)
	}
	if w.Reports != nil {
		f.Pods = withReports(f.Pods, w.Reports, toTolerate)
		f.Reports = reportsOf(f.Pods, w.App.Spec.Kafka.ApplicationID, m.Topology, m.Tasks, w.Now)
	}
	f.Assignment = assignmentOf(w.Group.Latest.Group, &f.Reports, f.Pods)
	f.Images = imagesOf(m.Images, f.edited(), f.Pods, w.Now)
	f.Measured = measuredOf(m.Measured, f.Pods, w.Now)
	if f.Container != nil {
		f.Proven = f.AgentConfigMap != "" && f.Images.proven(f.Container.Image, f.Pods)
	}
	f.Failures = Failures{Tolerated: 1}
	if f.Workload != nil {
		f.Failures = countFailures(f.Pods, f.Workload.Replicas, f.Workload.RollingOut, toTolerate, m.PodsUnavailableSince, w.Now)
		f.Failures.Starting = f.Assignment.startingPods(f.Pods, w.Now)
	}
	if f.Container != nil && f.Container.Limit != nil {
		now := usageOf(f.Container, f.Workload.Replicas, w.App.Spec.Memory.Requests, f.Pods)
		f.Cap = namespaceCap(w.LimitRanges, w.ResourceQuotas, now)
	}
	return f
}

// edited returns whether the StreamApp has changed since the last pass.
func (f *Facts) edited() bool {
	seen := f.Memory.ObservedGeneration
	return seen > 0 && seen != f.App.Generation
}

// plannable returns whether there is a container with a memory limit to plan for.
func (f *Facts) plannable() bool { return !targetProblem(f).Found() }

// Mode returns the effective mode.
func (f *Facts) Mode() v1alpha1.Mode {
	if f.App.Spec.Mode == "" {
		return v1alpha1.ModeObserve
	}
	return f.App.Spec.Mode
}

// excludedImage returns whether pods with the template's image are no longer injected.
func (f *Facts) excludedImage() bool {
	return f.Container != nil && slices.Contains(f.Images.excluded(f.Pods), f.Container.Image)
}

// Earliest returns the shortest wait. A wait of 0 means never.
func Earliest(waits ...time.Duration) time.Duration {
	waits = slices.DeleteFunc(waits, func(wait time.Duration) bool { return wait == 0 })
	if len(waits) == 0 {
		return 0
	}
	return slices.Min(waits)
}
