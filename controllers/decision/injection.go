// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// PlanConfigMapName returns the name of the ConfigMap with the plan of a StreamApp.
func PlanConfigMapName(app string) string { return v1alpha1.PlanConfigMapPrefix + app }

// oldestAgentJava is the Java version that the agent's classes are compiled for.
const oldestAgentJava = 11

// RunsAgent returns whether the JVM of the application can run the agent, as far as its version is known.
func RunsAgent(app *v1alpha1.StreamApp) bool {
	version := app.Spec.JVM.Version
	return version == 0 || version >= oldestAgentJava
}

// notInjectable returns the reason for which the plan cannot be injected into new pods; not found if it can. agent: it is injected with the agent.
func notInjectable(spec *v1alpha1.StreamAppSpec, c *Container, agent bool) Problem {
	options := &c.Options
	switch {
	case c.BestEffort:
		return Problem{v1alpha1.ReasonBestEffort, bestEffortText(c)}
	case c.Limit == nil:
		return Problem{v1alpha1.ReasonNoMemoryLimit, noMemoryLimitText(c)}
	case options.FromValue:
		return Problem{v1alpha1.ReasonOptionsNotVisible, optionsFromValueText(c)}
	case options.ConflictingMount != "":
		return Problem{v1alpha1.ReasonConflict, conflictingMountText(c)}
	case options.ConflictingVolume:
		return Problem{v1alpha1.ReasonConflict, conflictingVolumeText()}
	case options.OwnOptionsFile && options.Variable == v1alpha1.JavaToolOptions:
		return Problem{v1alpha1.ReasonConflict, ownOptionsFileText(c)}
	case len(options.Secrets) > 0 && options.Value == "" && spec.JVM.OwnOptions == nil:
		return Problem{v1alpha1.ReasonOptionsNotVisible, optionsInSecretText(c)}
	case agent && requiresAOTCache(visibleFlags(spec, c)):
		return Problem{v1alpha1.ReasonConflict, requiresAOTCacheText(c)}
	}
	return Problem{}
}

// injectionOf returns the injection for new pods. injectMemory: the plan's limit differs from the template's and is not withdrawn.
func injectionOf(f *Facts, plan *Plan, revision string, injectMemory bool) *v1alpha1.PodInjectionSpec {
	variable := f.Container.Options.Variable
	injection := &v1alpha1.PodInjectionSpec{
		Owner:           v1alpha1.WorkloadOwner{Kind: f.Workload.Kind, Name: f.Workload.Name},
		Container:       f.Container.Name,
		OptionsVariable: variable,
		Options:         v1alpha1.LauncherOptions,
		OwnOptions:      ownOptions(f),
		PlanConfigMap:   PlanConfigMapName(f.App.Name),
		PlanRevision:    revision,
		AgentConfigMap:  f.AgentConfigMap,
		ExcludedImages:  f.Images.excluded(f.Pods, f.Now),
	}
	if variable == v1alpha1.JavaToolOptions {
		injection.Options = v1alpha1.VMOptions
	}
	if injectMemory {
		injection.Memory = injectedMemory(f, plan.Limit, plan.Representative.Expected)
	}
	return injection
}

// ownOptions returns the options that follow the plan's if the container's env has no value of its own. A value from a ConfigMap of envFrom
// stays a reference, so that a change of the ConfigMap takes effect as before. Nil: the policy leaves a container with envFrom alone.
func ownOptions(f *Facts) *string {
	switch own := f.App.Spec.JVM.OwnOptions; {
	case own != nil:
		return own
	case f.NotInjectable.Found():
		return nil
	case f.Container.Options.Inherited != nil:
		return new(fmt.Sprintf("$(%s)", f.Container.Options.Variable))
	case f.Container.Options.HasEnvFrom:
		return new("")
	default: // a template that gains envFrom while the operator is down is left alone until the operator has read it
		return nil
	}
}

func injectedMemory(f *Facts, limit, expected int64) v1alpha1.InjectedMemory {
	memory := v1alpha1.InjectedMemory{ForLimit: new(*f.Container.Limit), Limit: new(quantity(limit))}
	if request := requestFor(f.Container, f.App.Spec.Memory.Requests, limit, expected); request > 0 {
		memory.Request = new(quantity(request))
	}
	if limit < f.Container.Limit.Value() {
		memory.ForImage = f.Container.Image
	}
	return memory
}

// requestFor returns the memory request for a limit; 0 if the pod keeps its own. It never changes the QoS class.
func requestFor(c *Container, policy v1alpha1.RequestsPolicy, limit, expected int64) int64 {
	if c.Guaranteed {
		return limit
	}
	request := int64(0)
	switch policy {
	case v1alpha1.RequestsFollowLimit:
		request = limit
	case v1alpha1.RequestsExpected:
		request = min(expected, limit)
	default:
		return 0
	}
	if c.CPUGuaranteed && request == limit { // an equal pair would make the pod Guaranteed
		return 0
	}
	return request
}
