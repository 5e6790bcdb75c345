// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// Verdict is the result for an application.
type Verdict string

const (
	// VerdictFits: after the pod failures to tolerate, every pod still fits into its limit.
	VerdictFits Verdict = "Fits"
	// VerdictDoesNotFit: some pod does not.
	VerdictDoesNotFit Verdict = "DoesNotFit"
	// VerdictUnknown: the application's tasks are unknown.
	VerdictUnknown Verdict = "Unknown"
)

// Answer is the plan of an application, for people and programs. Amounts are quantities in the format of Kubernetes.
type Answer struct {
	Namespace string `json:"namespace"`
	// StreamApp, and the workload and container that it names.
	StreamApp    string                `json:"streamApp"`
	WorkloadKind v1alpha1.WorkloadKind `json:"workloadKind"`
	Workload     string                `json:"workload"`
	Container    string                `json:"container,omitempty"`

	Verdict Verdict `json:"verdict"`
	// Instances is the number of pods, Tasks the number of tasks of all pods.
	Instances int `json:"instances"`
	Tasks     int `json:"tasks"`
	// PodFailuresToTolerate is nil for a cold start, and if a status does not show it. PodFailuresTolerated is -1 if the pods exceed their
	// limits now.
	PodFailuresToTolerate *int `json:"podFailuresToTolerate,omitempty"`
	PodFailuresTolerated  int  `json:"podFailuresTolerated"`
	// Limit is the limit of a new pod, RequiredLimit the smallest one that holds its tasks after the pod failures to tolerate; nil if none
	// does. Expected is the expected peak.
	Limit         *resource.Quantity `json:"limit,omitempty"`
	RequiredLimit *resource.Quantity `json:"requiredLimit,omitempty"`
	Heap          *resource.Quantity `json:"heap,omitempty"`
	Expected      *resource.Quantity `json:"expected,omitempty"`
	// ColdStart is the required limit of the first pod of a cold start, where pods become ready one after the other.
	ColdStart *resource.Quantity `json:"coldStart,omitempty"`

	// Load is the largest load of a pod after the failures. Lines are its memory, largest first.
	Load  decision.Load   `json:"load,omitzero"`
	Lines []v1alpha1.Line `json:"lines,omitempty"`
	// Settings apply the plan.
	Settings []v1alpha1.Setting `json:"settings,omitempty"`
	// Missing are the deficits if it does not fit, Remedies the changes with which it fits.
	Missing  []string `json:"missing,omitempty"`
	Remedies []string `json:"remedies,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Pods are the running pods; those of a status are the divergent ones.
	Pods []Pod `json:"pods,omitempty"`
	// Facts are the facts of the plan with their sources. Assumptions are facts that the description of the topology leaves open.
	Facts       []decision.ResolvedFact `json:"facts,omitempty"`
	Assumptions []string                `json:"assumptions,omitempty"`

	// Start are the settings of a container to which the plan is applied by hand.
	Start Start `json:"-"`
	// Text is the plan for people; empty if only a status was read.
	Text string `json:"-"`
}

// Pod is the plan of one running pod.
type Pod struct {
	Name          string             `json:"name"`
	Tasks         *int32             `json:"tasks,omitempty"`
	Limit         *resource.Quantity `json:"limit,omitempty"`
	RequiredLimit *resource.Quantity `json:"requiredLimit,omitempty"`
}

// Start are the settings of a container to which the plan is applied by hand.
type Start struct {
	Plan planfile.Plan
	// OptionsVariable is the variable for the plan's options; empty if the plan has none. OwnOptions is its present value.
	OptionsVariable string
	OwnOptions      string
	// LimitArenas: MALLOC_ARENA_MAX is to be set.
	LimitArenas bool
	// Request is the memory request for the limit; nil if it stays.
	Request *resource.Quantity
}

func (a *Answer) fits() bool { return a.Verdict == VerdictFits }

// answerOf returns the answer for a decision.
func answerOf(d *decision.Decision) *Answer {
	f, plan := &d.Facts, &d.Plan
	pod := &plan.Representative
	answer := &Answer{
		Namespace: f.App.Namespace, StreamApp: f.App.Name, WorkloadKind: f.Workload.Kind, Workload: f.Workload.Name, Container: f.Container.Name,
		Verdict: VerdictDoesNotFit, Instances: f.Failures.Instances, Tasks: plan.Tasks, PodFailuresTolerated: plan.Tolerated,
		Limit: quantity(plan.Limit), Heap: quantity(pod.Heap), Expected: quantity(pod.Expected),
		Load: pod.Load, Lines: pod.Lines, Settings: pod.Settings, Warnings: slices.Concat(plan.Notes, pod.Warnings),
		Missing: slices.Clone(pod.Deficits), Pods: podsOf(d), Facts: plan.Facts(), Assumptions: plan.Assumptions(), Text: pod.Explain(),
		Start: startOf(d),
	}
	if plan.Limit == f.Container.Limit.Value() {
		answer.Limit = f.Container.Limit // in the template's notation
	}
	toTolerate := min(f.Failures.Tolerated, max(0, f.Failures.Instances-1))
	if !f.ColdStart {
		answer.PodFailuresToTolerate = &toTolerate
	}
	if pod.Fits && (f.ColdStart || plan.Tolerated >= toTolerate) {
		answer.Verdict = VerdictFits
	}
	if plan.Required < decision.NoLimit {
		answer.RequiredLimit = quantity(plan.Required)
	}
	if plan.ColdStart > 0 && plan.ColdStart < decision.NoLimit {
		answer.ColdStart = quantity(plan.ColdStart)
	}
	if plan.Capped != "" {
		answer.Missing = append(answer.Missing, plan.Capped)
	}
	if f.NotInjectable.Found() {
		answer.Warnings = append(answer.Warnings, "the operator cannot inject the plan: "+f.NotInjectable.Message)
	}
	return answer
}

func quantity(bytes int64) *resource.Quantity { return resource.NewQuantity(bytes, resource.BinarySI) }

// podsOf returns the running pods.
func podsOf(d *decision.Decision) []Pod {
	var pods []Pod
	for i := range d.Facts.Pods {
		p := &d.Facts.Pods[i]
		if !p.Running() {
			continue
		}
		pod := Pod{Name: p.Name, Limit: p.EffectiveLimit()}
		if planned, known := d.Plan.Pods[p.Name]; known {
			pod.Tasks = new(int32(planned.Tasks))
			if planned.Required < decision.NoLimit {
				pod.RequiredLimit = quantity(planned.Required)
			}
		}
		pods = append(pods, pod)
	}
	return pods
}

// startOf returns the settings that the operator would inject.
func startOf(d *decision.Decision) Start {
	c := d.Facts.Container
	start := Start{Plan: d.Plan.Representative.File}
	if request := d.Request(); request > 0 {
		start.Request = quantity(request)
	}
	if len(start.Plan.Options) > 0 {
		start.OptionsVariable = string(c.Options.Variable)
		start.OwnOptions = c.OptionsText(start.OptionsVariable, d.Facts.App.Spec.JVM.OwnOptions)
	}
	_, set := c.Env["MALLOC_ARENA_MAX"]
	start.LimitArenas = !set
	return start
}

// AnswerOf returns the answer in the status of a StreamApp.
func AnswerOf(app *v1alpha1.StreamApp) *Answer {
	status, target := &app.Status, app.Spec.TargetRef
	answer := &Answer{
		Namespace: app.Namespace, StreamApp: app.Name, WorkloadKind: target.Kind, Workload: target.Name, Container: app.Spec.Container,
		Limit: status.Limit, RequiredLimit: status.RequiredLimit, Heap: status.Heap, Expected: status.Expected,
		Lines: status.Lines, Settings: status.Settings, Warnings: status.Warnings,
		Instances: valueOf(status.Pods), Tasks: valueOf(status.Tasks), PodFailuresTolerated: valueOf(status.PodFailuresTolerated),
		Verdict: verdictOf(status.Conditions),
	}
	if failures := app.Spec.Memory.PodFailuresToTolerate; failures != nil {
		answer.PodFailuresToTolerate = new(int(*failures))
	}
	if status.ObservedGeneration != app.Generation {
		answer.Warnings = append(slices.Clone(answer.Warnings), "the StreamApp has changed since the operator wrote this status")
	}
	for _, conditionType := range decision.ConditionOrder {
		if c := meta.FindStatusCondition(status.Conditions, conditionType); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			answer.Missing = append(answer.Missing, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	for _, p := range status.DivergentPods {
		answer.Pods = append(answer.Pods, Pod{Name: p.Name, Tasks: p.Tasks, Limit: p.Limit, RequiredLimit: p.RequiredLimit})
	}
	return answer
}

func valueOf(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

// verdictOf sums the conditions up.
func verdictOf(conditions []metav1.Condition) Verdict {
	verdict := VerdictFits
	for _, conditionType := range []string{v1alpha1.ConditionFits, v1alpha1.ConditionCascadeSafe} {
		c := meta.FindStatusCondition(conditions, conditionType)
		switch {
		case c != nil && c.Status == metav1.ConditionFalse:
			return VerdictDoesNotFit
		case c == nil || c.Status != metav1.ConditionTrue:
			verdict = VerdictUnknown
		}
	}
	return verdict
}
