// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// Verdict says whether an application fits.
type Verdict string

const (
	// VerdictFits: after the losses asked for, every pod still fits into its limit.
	VerdictFits Verdict = "Fits"
	// VerdictDoesNotFit: it does not.
	VerdictDoesNotFit Verdict = "DoesNotFit"
	// VerdictUnknown: it is not known which tasks there are.
	VerdictUnknown Verdict = "Unknown"
)

// Answer is what the planner says of an application. Amounts are quantities as Kubernetes writes them.
type Answer struct {
	Namespace string `json:"namespace"`
	// StreamApp and the workload and container that it names.
	StreamApp    string                `json:"streamApp"`
	WorkloadKind v1alpha1.WorkloadKind `json:"workloadKind"`
	Workload     string                `json:"workload"`
	Container    string                `json:"container,omitempty"`

	Verdict Verdict `json:"verdict"`
	// Instances is how many pods there are to be, Tasks what they run together.
	Instances int `json:"instances"`
	Tasks     int `json:"tasks"`
	// PodFailuresToTolerate is how many pods have to be lost without harm; nothing where a status does not tell it, and for a cold start. Survives is how
	// many can be: -1 if not even those that there are fit.
	PodFailuresToTolerate *int `json:"podFailuresToTolerate,omitempty"`
	PodFailuresTolerated  int  `json:"podFailuresTolerated"`
	// Limit is what a new pod gets, Need the smallest limit that holds what it may have to run after the losses; none holds it where
	// there is no Need. Expected is the peak to expect.
	Limit         *resource.Quantity `json:"limit,omitempty"`
	RequiredLimit *resource.Quantity `json:"requiredLimit,omitempty"`
	Heap          *resource.Quantity `json:"heap,omitempty"`
	Expected      *resource.Quantity `json:"expected,omitempty"`
	// ColdStart is the need of the first pod of a cold start, where pods start one after the other.
	ColdStart *resource.Quantity `json:"coldStart,omitempty"`

	// Load is the most that a pod runs after the losses. Lines are its memory, largest first.
	Load  Load            `json:"load,omitzero"`
	Lines []v1alpha1.Line `json:"lines,omitempty"`
	// Settings put the plan in force.
	Settings []v1alpha1.Setting `json:"settings,omitempty"`
	// Missing says what is missing where it does not fit, Remedies what would have to change.
	Missing  []string `json:"missing,omitempty"`
	Remedies []string `json:"remedies,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Pods that run now, or of a status those that differ.
	Pods []PodAnswer `json:"pods,omitempty"`
	// Facts that the plan is made of, and where each came from. Assumptions are those that the topology does not tell.
	Facts       []Fact   `json:"facts,omitempty"`
	Assumptions []string `json:"assumptions,omitempty"`

	// Start is how the plan comes into force where nobody injects it.
	Start Start `json:"-"`
	// Text is the plan for people; empty where only a status was read.
	Text string `json:"-"`
}

// Load is a bound of what one pod runs.
type Load struct {
	Threads int `json:"threads"`
	Active  int `json:"active"`
	Total   int `json:"total"`
}

// PodAnswer is what the planner says of one running pod.
type PodAnswer struct {
	Name          string             `json:"name"`
	Tasks         *int32             `json:"tasks,omitempty"`
	Limit         *resource.Quantity `json:"limit,omitempty"`
	RequiredLimit *resource.Quantity `json:"requiredLimit,omitempty"`
}

// Fact is something that a plan is made of.
type Fact struct {
	Name   string          `json:"name"`
	Value  string          `json:"value"`
	Source v1alpha1.Source `json:"source"`
	// OverrideWith is where a better value can be said.
	OverrideWith string `json:"overrideWith,omitempty"`
}

// Start is what a container starts with when the plan is put in force by hand.
type Start struct {
	// Plan is the plan as pods would mount it.
	Plan planfile.Plan
	// OptionsVariable is the environment variable for the plan's JVM options, empty if there are none. OwnOptions is its present value.
	OptionsVariable string
	OwnOptions      string
	// LimitArenas: MALLOC_ARENA_MAX is not set, and is to be.
	LimitArenas bool
	// Request is the memory request that goes with the limit; nil: it stays.
	Request *resource.Quantity
}

func (a *Answer) fits() bool { return a.Verdict == VerdictFits }

// AnswerOf is the answer that the operator has written into the status of a StreamApp.
func AnswerOf(app *v1alpha1.StreamApp) *Answer {
	status, target := &app.Status, app.Spec.TargetRef
	answer := &Answer{
		Namespace: app.Namespace, StreamApp: app.Name, WorkloadKind: target.Kind, Workload: target.Name, Container: app.Spec.Container,
		Limit: status.Limit, RequiredLimit: status.RequiredLimit, Heap: status.Heap, Expected: status.Expected,
		Lines: status.Lines, Settings: status.Settings, Warnings: status.Warnings,
		Instances: int(deref(status.Pods)), Tasks: int(deref(status.Tasks)), PodFailuresTolerated: int(deref(status.PodFailuresTolerated)),
		Verdict: verdictOf(status.Conditions),
	}
	if losses := app.Spec.Memory.PodFailuresToTolerate; losses != nil {
		answer.PodFailuresToTolerate = new(int(*losses))
	}
	if status.ObservedGeneration != app.Generation {
		answer.Warnings = append(slices.Clone(answer.Warnings), "the StreamApp has changed, and the operator has not looked at it since")
	}
	for _, conditionType := range conditionOrder {
		if c := meta.FindStatusCondition(status.Conditions, conditionType); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			answer.Missing = append(answer.Missing, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	for _, p := range status.DivergentPods {
		answer.Pods = append(answer.Pods, PodAnswer{Name: p.Name, Tasks: p.Tasks, Limit: p.Limit, RequiredLimit: p.RequiredLimit})
	}
	return answer
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

func deref(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// podAnswers lists the running pods.
func podAnswers(obs *observation, p *planning) []PodAnswer {
	var answers []PodAnswer
	for _, pod := range runningPods(obs) {
		answer := PodAnswer{Name: pod.name, Limit: pod.effectiveLimit()}
		if planned, known := p.pods[pod.name]; known {
			answer.Tasks = new(int32(planned.tasks))
			if planned.need < neverFits {
				answer.RequiredLimit = new(quantity(planned.need))
			}
		}
		answers = append(answers, answer)
	}
	return slices.Clip(answers)
}
