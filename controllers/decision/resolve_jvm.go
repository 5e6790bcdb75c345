// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/memplan"
)

// visibleFlags returns the JVM's flags where they are visible, weakest first, as HotSpot ranks them: JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, the
// command line, _JAVA_OPTIONS (measured on JDK 17). An element may have several flags.
func visibleFlags(spec *v1alpha1.StreamAppSpec, c *Container) []string {
	var flags []string
	for _, variable := range []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"} {
		flags = append(flags, expand(c.OptionsText(variable, spec.JVM.OwnOptions), c.Env))
	}
	for _, arg := range c.Args {
		flags = append(flags, expand(arg, c.Env)) // a shell's -c has all of them in one argument
	}
	return append(flags, expand(c.Env["_JAVA_OPTIONS"], c.Env))
}

// aotMode is the flag for the AOT cache of JDK 24 and later.
var aotMode = regexp.MustCompile(`-XX:AOTMode=(\w+)`)

// requiresAOTCache returns whether the JVM ends at its start if it cannot use its AOT cache. It cannot with an agent (measured on JDK 25). The
// last flag counts.
func requiresAOTCache(flags []string) bool {
	all := aotMode.FindAllStringSubmatch(strings.Join(flags, " "), -1)
	return len(all) > 0 && all[len(all)-1][1] == "on"
}

// jvmOf parses the JVM's flags, the visible ones and those in reports. Where the application leaves the heap to the JVM, and the plan can be injected, the
// plan decides the heap.
func jvmOf(f *Facts) (memplan.JVM, error) {
	c := f.Container
	if c == nil {
		return memplan.NewJVM(), nil
	}
	jvm, err := applicationFlags(f)
	var errs []error
	for _, text := range errorTexts(err) {
		errs = append(errs, fmt.Errorf("JVM flags of container %s: %s", c.Name, text))
	}
	if leavesHeapToJVM(jvm) && !f.NotInjectable.Found() {
		jvm = withOwnPercentage(jvm, f.Measured.HeapPercent)
	}
	for _, pin := range f.App.Spec.Memory.Pins {
		if pin.Region == v1alpha1.RegionHeap && pin.Size != nil && jvm.HeapMode == memplan.HeapPlanned {
			jvm.MaxHeap = *specBytes(pin.Size)
		}
	}
	return jvm, errors.Join(errs...)
}

// applicationFlags parses the flags of the application, those in reports included.
func applicationFlags(f *Facts) (memplan.JVM, error) {
	return memplan.ParseJVMFlags(append(visibleFlags(&f.App.Spec, f.Container), reportedFlags(&f.Reports)...))
}

// heapLeftToPlan returns whether the application leaves the size of its heap to the plan, as far as the pod template and reported sizes show.
func heapLeftToPlan(f *Facts) bool {
	if f.Container == nil || f.NotInjectable.Found() {
		return false
	}
	jvm, _ := applicationFlags(f) // an error concerns other flags, and the plan reports it
	return leavesHeapToJVM(jvm)
}

// withOwnPercentage returns the flags of a JVM whose heap the plan decides, unless the image sets it outside of the pod template: nothing that is
// visible does, but its processes have shown another share of the limit.
func withOwnPercentage(jvm memplan.JVM, percent int32) memplan.JVM {
	if percent == 0 {
		jvm.HeapMode = memplan.HeapPlanned
		return jvm
	}
	jvm.MaxRAMPercentage = memplan.Known(float64(percent), memplan.Measured)
	jvm.MinRAMPercentage = jvm.MaxRAMPercentage
	return jvm
}

// reportedFlags returns the flags with which the application sizes its JVM, including those in scripts and files that the pod template does
// not show. The plan's own flags are left out: a report does not distinguish them from the application's.
func reportedFlags(reports *Reports) []string {
	if reports.Newest == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(reports.Newest.JVM.Flags), func(flag string) bool {
		return strings.Contains(flag, "RAM") || strings.Contains(flag, "IgnoreUnrecognizedVMOptions")
	})
}

// reference is a variable in a text: $(NAME) as Kubernetes expands it, ${NAME} or $NAME as a shell does.
var reference = regexp.MustCompile(`\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)`)

// expand replaces references to variables, as far as the container's env has their values.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if value, ok := env[strings.Trim(match, "$(){}")]; ok {
			return value
		}
		return match
	})
}

// leavesHeapToJVM returns whether the application leaves the size of its heap to the JVM, so that the plan may set it.
func leavesHeapToJVM(jvm memplan.JVM) bool {
	return jvm.HeapMode == memplan.HeapPercent && jvm.MaxRAMPercentage.From != memplan.App && jvm.MinRAMPercentage.From != memplan.App &&
		jvm.MaxRAM.From != memplan.App
}

// runningVariants returns the workload in each kind of running pod.
func runningVariants(f *Facts, w memplan.Workload) map[memplan.PodKind]memplan.Workload {
	kinds := []memplan.PodKind{{Injected: true}, {Injected: true, Bounded: true}} // those of pods to come and of pods without a report
	for i := range f.Pods {
		kinds = append(kinds, podKind(f, &f.Pods[i]))
	}
	variants := map[memplan.PodKind]memplan.Workload{{}: withoutPlan(w, f.Container)}
	for _, kind := range kinds {
		if kind.Injected {
			variant := withStartedHeap(w, f.PlanConfigMap)
			variant.Bounded = kind.Bounded
			variants[kind] = withReportedHeap(variant, kind.Heap)
		}
	}
	return variants
}

// withReportedHeap returns the workload in a process with a known heap, set by any option. Its JVM never has a smaller one until its next start.
func withReportedHeap(w memplan.Workload, heap memplan.Bytes) memplan.Workload {
	jvm := &w.JVM
	larger := memplan.Known(heap, memplan.Measured)
	pinned := jvm.HeapMode == memplan.HeapPlanned && jvm.MaxHeap.Value > 0
	switch {
	case jvm.HeapMode == memplan.HeapFixed || pinned:
		if heap > jvm.MaxHeap.Value {
			jvm.MaxHeap = larger
		}
	case jvm.HeapMode == memplan.HeapPlanned:
		jvm.LeastHeap = max(jvm.LeastHeap, heap)
	case heap > jvm.InitialHeap.Value: // a percentage of the limit, but never less
		jvm.InitialHeap = larger
	}
	return w
}

// withStartedHeap returns the workload in a pod that was started with the plan: its JVM keeps the heap of the published plan until its next
// start, which may give it a larger one.
func withStartedHeap(w memplan.Workload, published *corev1.ConfigMap) memplan.Workload {
	if w.JVM.HeapMode != memplan.HeapPlanned {
		return w
	}
	jvm := publishedJVM(published)
	if jvm.MaxRAM.Value > 0 {
		w.JVM.LeastHeap = max(w.JVM.LeastHeap, jvm.HeapUnder(jvm.MaxRAM.Value))
	}
	return w
}

// publishedJVM parses the JVM options of the published plan. Only the operator writes them, so unreadable ones count as none.
func publishedJVM(published *corev1.ConfigMap) memplan.JVM {
	if published == nil {
		return memplan.JVM{}
	}
	jvm, err := memplan.ParseJVMFlags(strings.Fields(published.Data[planfile.OptionsKey]))
	if err != nil {
		return memplan.JVM{}
	}
	return jvm
}

// publishedLimit returns the limit that the published plan is for; 0 without one. Only the operator writes it, so an unreadable one counts as
// none.
func publishedLimit(published *corev1.ConfigMap) int64 {
	if published == nil {
		return 0
	}
	plan, err := planfile.Parse(published.Data)
	if err != nil {
		return 0
	}
	return plan.Limit
}

// withoutPlan returns the workload in a pod that was created without the plan: the JVM chooses its heap.
func withoutPlan(w memplan.Workload, c *Container) memplan.Workload {
	w.Bounded = false
	if w.JVM.HeapMode == memplan.HeapPlanned {
		w.JVM.HeapMode = memplan.HeapPercent
		w.JVM.MaxHeap = memplan.Fact[memplan.Bytes]{}
	}
	if _, set := c.Env["MALLOC_ARENA_MAX"]; !set && w.Allocator.Value == memplan.GlibcArenas {
		w.Allocator = memplan.Known(memplan.Glibc, memplan.Assumed)
	}
	return w
}
