// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// deriveFacts derives the facts of one pass.
func deriveFacts(w World, m Memory) Facts {
	f := Facts{
		Now: w.Now, TrackedSince: w.TrackedSince, App: w.App, Hold: w.Hold, ConflictingApp: w.ConflictingApp, Kafka: w.Group,
		PlanConfigMap: w.PlanConfigMap, Injection: w.Injection, AgentConfigMap: w.AgentConfigMap,
		SuppliedTopology: w.Topology, AssumeBounded: w.AssumeBounded, ColdStart: w.ColdStart, Memory: m,
	}
	f.Workload = workloadOf(w.StatefulSet, w.Deployment)
	if f.Workload != nil {
		f.Workload.CreateFailure = cmp.Or(f.Workload.CreateFailure, w.CreateFailure)
		f.Container = containerOf(w.App, f.Workload.Template, w.LimitRanges, w.ConfigMaps)
	}
	toTolerate := w.App.Spec.Memory.PodFailuresToTolerate
	if f.Container != nil {
		f.Pods = podsOf(&w, f.Container.Name)
		f.Autoscaler = conflictingAutoscaler(w.Autoscalers, f.Container)
		f.NotInjectable = notInjectable(&w.App.Spec, f.Container, w.AgentConfigMap != "")
	}
	if w.Reports != nil && f.Workload != nil {
		f.Pods = withReports(f.Pods, w.Reports, tolerated(f.Workload, toTolerate), m.Assignment)
		f.Reports = reportsOf(f.Pods, w.App.Spec.Kafka.ApplicationID, m.Assignment, m.Tasks, w.Group.Latest.Group, w.Now)
	}
	f.Assignment = assignmentOf(w.Group.Latest.Group, &f.Reports, f.Pods, m.Assignment, w.Now)
	f.Images = imagesOf(m.Images, f.edited(), f.Pods, w.Now)
	f.Measured = measuredOf(&f, m.Measured)
	if f.Container != nil {
		f.Proven = f.AgentConfigMap != "" && f.Images.proven(f.Container.Image, f.Pods)
	}
	f.Failures = Failures{Tolerated: 1}
	if f.Workload != nil {
		f.Failures = countFailures(f.Pods, f.Workload, toTolerate, m.PodsUnavailableSince, w.Now)
		f.Failures.Starting = f.Assignment.startingPods(f.Pods, w.Now)
	}
	if f.Container != nil && f.Container.Limit != nil {
		now := usageOf(f.Container, f.Workload.Replicas, w.App.Spec.Memory.Requests, f.Pods)
		f.Cap = namespaceCap(w.LimitRanges, w.ResourceQuotas, now)
		f.LimitRangeCap = namespaceCap(w.LimitRanges, nil, now)
	}
	if w.InjectionUnavailable != "" && f.Mode() == v1alpha1.ModeEnforce {
		f.InjectionUnavailable = Problem{v1alpha1.ReasonInjectionUnavailable, w.InjectionUnavailable}
	}
	f.TargetProblem = targetProblem(&f)
	return f
}

// targetProblem returns the reason for which there is no container to plan for, if there is one.
func targetProblem(f *Facts) Problem {
	switch {
	case f.ConflictingApp != "":
		return Problem{v1alpha1.ReasonConflictingStreamApp, conflictingAppText(f)}
	case f.Workload == nil:
		return Problem{v1alpha1.ReasonTargetNotFound, targetNotFoundText(f)}
	case f.Container == nil && f.App.Spec.Container == "":
		return Problem{v1alpha1.ReasonContainerAmbiguous, containerAmbiguousText(f)}
	case f.Container == nil:
		return Problem{v1alpha1.ReasonContainerNotFound, containerNotFoundText(f)}
	case f.Container.BestEffort, f.Container.Limit == nil:
		return f.NotInjectable
	}
	return Problem{}
}
