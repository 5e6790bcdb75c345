// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/memplan"
)

// jvmOf reads the JVM's flags where they can be seen, weakest first, as HotSpot ranks them: JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, the
// command line, _JAVA_OPTIONS (measured on JDK 17). Where the application leaves the heap to the JVM, and the plan is in force, the
// plan decides it.
func jvmOf(obs *observation) (memplan.JVM, error) {
	c := obs.container
	if c == nil {
		return memplan.NewJVM(), nil
	}
	var flags []string
	for _, variable := range []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"} {
		flags = append(flags, expand(optionsText(obs, variable), c.env))
	}
	for _, arg := range c.args {
		flags = append(flags, expand(arg, c.env)) // a shell's -c has them all in one argument
	}
	flags = append(flags, expand(c.env["_JAVA_OPTIONS"], c.env))
	flags = append(flags, obs.reportedFlags()...)
	jvm, err := memplan.ParseJVMFlags(flags)
	if err != nil {
		err = fmt.Errorf("JVM flags of container %s: %w", c.name, err)
	}
	if obs.app.Spec.JVM.Version > 0 {
		jvm.Version = memplan.Known(int(obs.app.Spec.JVM.Version), memplan.Spec)
	}
	applyReportedJVM(&jvm, obs)
	if c.cpuLimit != nil {
		jvm.CPUs = memplan.Known(int(math.Ceil(c.cpuLimit.AsApproximateFloat64())), memplan.App)
	}
	if heapIsOurs(jvm) && !injectionBlocked(obs).found() {
		jvm.HeapMode = memplan.HeapPlanned
	}
	for _, pin := range obs.app.Spec.Memory.Pins {
		if pin.Region == v1alpha1.RegionHeap && pin.Size != nil && jvm.HeapMode == memplan.HeapPlanned {
			jvm.MaxHeap = specBytes(pin.Size)
		}
	}
	return jvm, err
}

// reference is a variable in a text: $(NAME) as Kubernetes expands it, ${NAME} or $NAME as a shell does.
var reference = regexp.MustCompile(`\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)`)

// expand puts the values of variables into a text, as far as the container's env shows them.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if value, ok := env[strings.Trim(match, "$(){}")]; ok {
			return value
		}
		return match
	})
}

// optionsText is the value of a variable with JVM options, as far as it can be read: the container's own env, what envFrom gives from
// a ConfigMap, or what the user says is there.
func optionsText(obs *observation, variable string) string {
	if value, ok := obs.container.env[variable]; ok {
		return value
	}
	if variable != string(optionsVariable(obs.app)) {
		return ""
	}
	inherited := ""
	if obs.inherited != nil {
		inherited = *obs.inherited
	}
	if own := obs.app.Spec.JVM.OwnOptions; own != nil {
		return strings.ReplaceAll(*own, "$("+variable+")", inherited)
	}
	return inherited
}

// heapIsOurs: the application says nothing of the size of its heap, so the plan may.
func heapIsOurs(jvm memplan.JVM) bool {
	return jvm.HeapMode == memplan.HeapPercent && jvm.MaxRAMPercentage.From != memplan.App && jvm.MinRAMPercentage.From != memplan.App &&
		jvm.MaxRAM.From != memplan.App
}

// withHeapInForce is the workload as a pod runs it that was started with the plan: its JVM keeps the heap that the published plan gave
// it, whatever a new plan says, and may have a larger one after its next start.
func withHeapInForce(obs *observation, w memplan.Workload) memplan.Workload {
	if w.JVM.HeapMode != memplan.HeapPlanned {
		return w
	}
	jvm := publishedJVM(obs)
	if jvm.MaxRAM.Value > 0 {
		w.JVM.LeastHeap = max(w.JVM.LeastHeap, jvm.HeapUnder(jvm.MaxRAM.Value))
	}
	return w
}

// publishedJVM reads the JVM's flags that are published. Nobody but the operator writes them, so what cannot be read counts as nothing.
func publishedJVM(obs *observation) memplan.JVM {
	if obs.planConfigMap == nil {
		return memplan.JVM{}
	}
	jvm, err := memplan.ParseJVMFlags(strings.Fields(obs.planConfigMap.Data[planfile.OptionsKey]))
	if err != nil {
		return memplan.JVM{}
	}
	return jvm
}

// publishedFor is the limit that the published plan is for; 0 if there is none.
func publishedFor(obs *observation) int64 { return int64(publishedJVM(obs).MaxRAM.Value) }

// withoutPlan is the workload as a pod runs it that was created before the plan was injected: its heap is the JVM's own choice.
func withoutPlan(obs *observation, w memplan.Workload) memplan.Workload {
	w.Bounded = false
	if w.JVM.HeapMode == memplan.HeapPlanned {
		w.JVM.HeapMode = memplan.HeapPercent
		w.JVM.MaxHeap = memplan.Fact[memplan.Bytes]{}
	}
	if _, set := obs.container.env["MALLOC_ARENA_MAX"]; !set && w.Allocator.Value == memplan.GlibcArenas {
		w.Allocator = memplan.Known(memplan.Glibc, memplan.Assumed)
	}
	return w
}

func allocatorOf(obs *observation) memplan.Fact[memplan.Allocator] {
	if obs.container == nil {
		return memplan.Known(memplan.Glibc, memplan.Assumed)
	}
	if strings.Contains(obs.container.env["LD_PRELOAD"], "jemalloc") {
		// The library may be missing in the image, or built for another processor: then the loader ignores it.
		return memplan.Known(memplan.Jemalloc, memplan.Assumed)
	}
	return memplan.Known(memplan.GlibcArenas, memplan.Derived) // the injection sets MALLOC_ARENA_MAX where the user did not
}
