// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// World is everything that one pass has read. Nothing in it is changed after it was gathered.
type World struct {
	// Now is the time of the pass.
	Now time.Time
	// TrackedSince is the time at which this process began to track the StreamApp: its sources are requested since then. Zero outside of
	// the operator.
	TrackedSince time.Time
	App          *v1alpha1.StreamApp
	// Hold is the reason for which the operator's configuration holds all applications; empty if it does not.
	Hold string
	// InjectionUnavailable is the reason for which the cluster cannot inject plans into new pods; empty if it can.
	InjectionUnavailable string
	// ConflictingApp is the name of an older StreamApp with the same target; empty without one.
	ConflictingApp string

	// StatefulSet or Deployment is the target, whichever kind it has; both are nil if it does not exist.
	StatefulSet *appsv1.StatefulSet
	Deployment  *appsv1.Deployment
	// CreateFailure is the message of the newest event with which the controller of a StatefulSet reports that it cannot create a pod; empty
	// without one. A Deployment has a condition for it.
	CreateFailure string
	// Pods are the pods of the target.
	Pods []corev1.Pod
	// Nodes are the nodes of the pods, by name. A nil entry is a node that does not exist. A node without an entry counts as healthy.
	Nodes map[string]*corev1.Node
	// NodeRequests are the memory requests of all pods on these nodes, in bytes by the node's name, as the scheduler counts them.
	NodeRequests map[string]int64
	// LimitRanges and ResourceQuotas are those of the namespace.
	LimitRanges    []corev1.LimitRange
	ResourceQuotas []corev1.ResourceQuota
	// ConfigMaps are those that the container takes environment variables from, by name, as far as they exist.
	ConfigMaps map[string]*corev1.ConfigMap

	// PlanConfigMap and Injection are the objects that earlier passes wrote; nil if there are none.
	PlanConfigMap *corev1.ConfigMap
	Injection     *v1alpha1.PodInjection
	// AgentConfigMap is the name of the ConfigMap of the agent for new pods; empty if they get no agent.
	AgentConfigMap string

	// Group is the Kafka group of the application.
	Group GroupSource
	// Reports are the reports of the pods' agents by the pod's UID; nil if no pod is expected to report.
	Reports map[string]report.PodReport

	// Topology is a description of the topology that the user has supplied; nil in the operator, which takes it from the reports.
	Topology *Topology
	// AssumeBounded plans as if every injected pod were bounded.
	AssumeBounded bool
	// ColdStart plans the first pod of a cold start, which runs every task.
	ColdStart bool
}

// GroupSource is a Kafka group as a source of facts.
type GroupSource struct {
	Ref assignment.Ref
	// Unavailable is the reason for which the group is not read; not found if it is read.
	Unavailable Problem
	// ConfigFault is a fault of the operator's configuration, as text: an earlier version of it is active. Empty without one.
	ConfigFault string
	// Latest is the latest observation of the group. No other source changes it.
	Latest assignment.Observation
}

// Topology is the text of Topology#describe() with the partitions of its topics.
type Topology struct {
	Text string
	// Partitions of topics by name; internal topics with or without the prefix of the application ID.
	Partitions map[string]int32
	// Scale multiplies all partitions; 0 leaves them.
	Scale float64
}

// Problem is the reason and the message of a condition that is not True.
type Problem struct{ Reason, Message string }

// Found returns whether there is a problem.
func (p Problem) Found() bool { return p.Reason != "" }

// Template returns the pod template of the target; nil without a target.
func (w *World) Template() *corev1.PodTemplateSpec {
	switch {
	case w.StatefulSet != nil:
		return &w.StatefulSet.Spec.Template
	case w.Deployment != nil:
		return &w.Deployment.Spec.Template
	default:
		return nil
	}
}

// ConflictingApp returns the name of the oldest StreamApp with the same target; empty if it is this one. Of two created in the same second
// the name decides.
func ConflictingApp(app *v1alpha1.StreamApp, sameTarget []v1alpha1.StreamApp) string {
	all := append([]v1alpha1.StreamApp{*app}, sameTarget...)
	oldest := slices.MinFunc(all, func(a, b v1alpha1.StreamApp) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if oldest.Name == app.Name {
		return ""
	}
	return oldest.Name
}

// AgentEndpoint is a pod to request a report from.
type AgentEndpoint struct {
	Pod, UID string
	// Address is host:port of the agent; empty as long as the pod has no address.
	Address string
	// PlanConfigMap is the plan that the pod mounts, which contains the token of its report.
	PlanConfigMap string
	// Started is the time at which the container began to run.
	Started time.Time
}

// AgentEndpoints returns the running pods with an agent, sorted by name.
func AgentEndpoints(w World) []AgentEndpoint {
	template := w.Template()
	if template == nil {
		return nil
	}
	container := FindContainer(template, w.App.Spec.Container)
	if container == nil {
		return nil
	}
	var endpoints []AgentEndpoint
	for _, p := range runningPods(podsOf(&w, container.Name)) {
		if p.AgentConfigMap == "" {
			continue
		}
		endpoint := AgentEndpoint{Pod: p.Name, UID: string(p.UID), Started: p.Started, PlanConfigMap: p.PlanConfigMap}
		if len(p.Addresses) > 0 {
			endpoint.Address = net.JoinHostPort(p.Addresses[0], strconv.Itoa(report.Port))
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints
}
