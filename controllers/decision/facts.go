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
	Now, TrackedSince time.Time
	App               *v1alpha1.StreamApp
	// Hold is the reason for which all applications are held; empty if they are not.
	Hold string
	// ConflictingApp is an older StreamApp with the same target; empty without one.
	ConflictingApp string
	// Workload and Container are nil if they were not found.
	Workload  *Workload
	Container *Container
	Pods      []Pod // sorted by name
	// Cap is that of LimitRanges and quotas, LimitRangeCap that of LimitRanges alone.
	Cap, LimitRangeCap NamespaceCap
	Failures           Failures

	// Kafka is the Kafka group as a source, Reports the reports; Assignment combines them.
	Kafka      GroupSource
	Reports    Reports
	Assignment Assignment

	Images   Images
	Measured v1alpha1.MeasuredRegions
	// Proven: new pods count as bounded.
	Proven bool
	// TargetProblem is the reason for which there is no container to plan for; not found if there is one.
	TargetProblem Problem
	// Autoscaler is the conflict with an autoscaler that acts on the container's memory; not found without one.
	Autoscaler Problem
	// NotInjectable is the reason for which the plan cannot be injected into new pods; not found if it can.
	NotInjectable Problem
	// InjectionUnavailable is the reason for which mode Enforce cannot inject into any pod of the cluster; not found if it can.
	InjectionUnavailable Problem

	PlanConfigMap  *corev1.ConfigMap
	Injection      *v1alpha1.PodInjection
	AgentConfigMap string

	SuppliedTopology *Topology
	AssumeBounded    bool
	ColdStart        bool

	Memory Memory
}

// edited returns whether the StreamApp has changed since the last pass.
func (f *Facts) edited() bool {
	seen := f.Memory.ObservedGeneration
	return seen > 0 && seen != f.App.Generation
}

// plannable returns whether there is a container with a memory limit to plan for.
func (f *Facts) plannable() bool { return !f.TargetProblem.Found() }

// withCap returns the facts with another cap.
func (f *Facts) withCap(c NamespaceCap) *Facts {
	result := *f
	result.Cap = c
	return &result
}

// readsPlan returns whether the published plan must be safe for a pod's limit: the pod mounts this plan. A pod mounting the plan of
// another StreamApp, such as one from before a rename, keeps that plan until it is restarted.
func (f *Facts) readsPlan(p *Pod) bool {
	return p.PlanConfigMap == PlanConfigMapName(f.App.Name) && p.usesMemory()
}

// Mode returns the effective mode.
func (f *Facts) Mode() v1alpha1.Mode {
	if f.App.Spec.Mode == "" {
		return v1alpha1.ModeObserve
	}
	return f.App.Spec.Mode
}

// excludedImage returns whether pods with the template's image are no longer injected.
func (f *Facts) excludedImage() bool {
	return f.Container != nil && slices.Contains(f.Images.excluded(f.Pods, f.Now), f.Container.Image)
}
