// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// streams changes what the spec says of the application.
func streams(apply change[v1alpha1.StreamsSpec]) *v1alpha1.StreamApp {
	return streamApp(func(app *v1alpha1.StreamApp) { apply(&app.Spec.Streams) })
}

// workloadFor is the planner's workload of a world.
func workloadFor(t *testing.T, g given) memplan.Workload {
	t.Helper()
	w, invalid := workloadOf(observed(t, g))
	if len(invalid) > 0 {
		t.Errorf("invalid: %v", invalid)
	}
	return w
}

// TestWhoWins: what the group shows, else what the spec says, else Kafka's defaults; each with where it came from.
func TestWhoWins(t *testing.T) {
	spec := streams(func(s *v1alpha1.StreamsSpec) {
		s.Version, s.Threads, s.StandbyReplicas, s.WarmupReplicas = "4.1.0", 7, new(int32(3)), new(int32(5))
		s.GroupProtocol, s.ProcessingGuarantee = v1alpha1.StreamsProtocol, v1alpha1.ExactlyOnceV2
	})
	classic, broker := groupOf(4, 4, 4), groupOf(4, 4, 4)
	classic.Processes[1].Threads, classic.Standbys, classic.TLS = 4, new(int32(1)), true
	broker.Protocol, broker.Standbys = assignment.Streams, new(int32(1))
	type facts struct {
		version                    memplan.Fact[memplan.Version]
		threads, standbys, warmUps memplan.Fact[int]
		protocol                   memplan.Fact[memplan.Protocol]
	}
	version := func(major, minor int, from memplan.Provenance) memplan.Fact[memplan.Version] {
		return memplan.Known(memplan.Version{Major: major, Minor: minor}, from)
	}
	defaults := memplan.NewWorkload(memplan.Fact[memplan.Version]{})
	cases := map[string]struct {
		given given
		want  facts
	}{
		"no one says anything": {given{}, facts{memplan.Fact[memplan.Version]{}, defaults.Threads, defaults.Standbys, defaults.WarmUps, defaults.Protocol}},
		"the spec alone": {given{app: spec}, facts{
			version(4, 1, memplan.Spec), memplan.Known(7, memplan.Spec), memplan.Known(3, memplan.Spec), memplan.Known(5, memplan.Spec), memplan.Known(memplan.Streams, memplan.Spec),
		}},
		"a classic group alone: its standbys are no fewer than it shows": {given{group: classic}, facts{
			version(4, 4, memplan.Assumed), memplan.Known(4, memplan.Measured), memplan.Known(1, memplan.Measured), defaults.WarmUps, memplan.Known(memplan.Classic, memplan.Measured),
		}},
		"a classic group and the spec": {given{app: spec, group: classic}, facts{
			version(4, 1, memplan.Spec), memplan.Known(4, memplan.Measured), memplan.Known(3, memplan.Spec), memplan.Known(5, memplan.Spec), memplan.Known(memplan.Classic, memplan.Measured),
		}},
		"a streams group and the spec: the broker's config counts": {given{app: spec, group: broker}, facts{
			version(4, 1, memplan.Spec), memplan.Known(1, memplan.Measured), memplan.Known(1, memplan.Measured), memplan.Known(0, memplan.Default), memplan.Known(memplan.Streams, memplan.Measured),
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := workloadFor(t, c.given)
			got := facts{w.Version, w.Threads, w.Standbys, w.WarmUps, w.Protocol}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
	w := workloadFor(t, given{app: spec, group: classic})
	if w.Guarantee != memplan.Known(memplan.ExactlyOnceV2, memplan.Spec) || w.Brokers != memplan.Known(3, memplan.Measured) || w.TLS != memplan.Known(true, memplan.Assumed) {
		t.Errorf("guarantee %+v, brokers %+v, TLS %+v", w.Guarantee, w.Brokers, w.TLS)
	}
}

func TestTopology(t *testing.T) {
	group := groupOf(4, 4, 4)
	group.Subtopologies[0].SinkTopics = []assignment.Topic{{Name: "repartition", Partitions: 6}}
	group.Subtopologies[0].UnloggedStores = []string{"scratch"}
	group.Subtopologies[0].Changelogs = append(group.Subtopologies[0].Changelogs, assignment.Changelog{
		Store: "hourly", Kind: assignment.Window, Retention: 2 * time.Hour, Assumed: true,
	})
	group.GlobalStores = []string{"rates"}
	app := streams(func(s *v1alpha1.StreamsSpec) {
		s.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 999}, {ID: new(int32(7)), Tasks: 5}}
		s.Stores = []v1alpha1.Store{
			{Name: "hourly", Kind: v1alpha1.StoreSession, SegmentSeconds: 60, Caching: v1alpha1.CachingDisabled, Size: memory("1Mi")},
			{Name: "rates", Kind: v1alpha1.StoreGlobal, Storage: v1alpha1.StorageInMemory},
			{Name: "fresh", Subtopology: new(int32(0)), Kind: v1alpha1.StoreVersioned},
			{Name: "nowhere", Subtopology: new(int32(7))},
		}
	})
	w := workloadFor(t, given{app: app, group: group})
	want := []memplan.Subtopology{{
		ID: "0", Tasks: 12, InputPartitions: 1, WrittenPartitions: 6,
		Stores: []memplan.Store{
			{Name: "totals", Kind: memplan.TimestampedKeyValue, Caching: true, RetentionMs: memplan.Known(int64(0), memplan.Measured)},
			{Name: "hourly", Kind: memplan.Session, RetentionMs: memplan.Known(int64(7_200_000), memplan.Assumed),
				SegmentIntervalMs: memplan.Known(int64(60_000), memplan.Spec), Size: memplan.Known(memplan.MiB, memplan.Spec)},
			{Name: "scratch", Kind: memplan.TimestampedKeyValue, Caching: true, Unlogged: true},
			{Name: "fresh", Kind: memplan.Versioned, Caching: true},
		},
	}}
	wantNoDiff(t, "subtopologies", want, w.Subtopologies)
	wantNoDiff(t, "global stores", []memplan.Store{{Name: "rates", Kind: memplan.TimestampedKeyValue, InMemory: true}}, w.GlobalStores)
}

func TestTopologyFromTheSpecAlone(t *testing.T) {
	app := streams(func(s *v1alpha1.StreamsSpec) {
		s.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 12, InputPartitionsPerTask: 2, WrittenPartitions: new(int32(24))}, {ID: new(int32(1)), Tasks: 6}}
		s.Stores = []v1alpha1.Store{{Name: "totals", Subtopology: new(int32(1)), RetentionSeconds: 60, Kind: v1alpha1.StoreWindow}, {Name: "lost"}}
	})
	w := workloadFor(t, given{app: app})
	want := []memplan.Subtopology{
		{ID: "0", Tasks: 12, InputPartitions: 2, WrittenPartitions: 24},
		{ID: "1", Tasks: 6, InputPartitions: 1, Stores: []memplan.Store{{Name: "totals", Kind: memplan.Window, Caching: true, RetentionMs: memplan.Known(int64(60_000), memplan.Spec)}}},
	}
	wantNoDiff(t, "subtopologies", want, w.Subtopologies)
	if p := passOf(t, given{app: app}).planned; !p.tasksKnown || p.tasks != 18 {
		t.Errorf("%d tasks, known %v; want 18", p.tasks, p.tasksKnown)
	}
}

// TestEveryValueHasAMeaning fails when a value is added to the API, or to what the group shows, that the planner is not told of.
func TestEveryValueHasAMeaning(t *testing.T) {
	api, group := "../api/v1alpha1/", "../assignment/types.go"
	mapped := map[string]struct {
		file, kind string
		known      func(value string) bool
	}{
		"guarantees": {api + "streams_types.go", "ProcessingGuarantee", func(v string) bool { _, ok := guarantees[v1alpha1.ProcessingGuarantee(v)]; return ok }},
		"protocols":  {api + "streams_types.go", "GroupProtocol", func(v string) bool { _, ok := protocols[v1alpha1.GroupProtocol(v)]; return ok }},
		"store kinds": {api + "streams_types.go", "StoreKind", func(v string) bool {
			_, ok := storeKinds[v1alpha1.StoreKind(v)]
			return ok || v == string(v1alpha1.StoreGlobal) // a list of its own
		}},
		"regions": {api + "streamapp_types.go", "Region", func(v string) bool {
			_, ok := pinnedRegions[v1alpha1.Region(v)]
			return ok || v == string(v1alpha1.RegionHeap) // a pool, not a line
		}},
		"kinds of changelogs": {group, "StoreKind", func(v string) bool {
			plain := v == string(assignment.KeyValue)
			return plain || storeOf(assignment.Changelog{Kind: assignment.StoreKind(v)}).Kind != memplan.KeyValue
		}},
		"workloads": {api + "streamapp_types.go", "WorkloadKind", func(v string) bool {
			return v == string(v1alpha1.KindStatefulSet) || v == string(v1alpha1.KindDeployment)
		}},
	}
	for name, c := range mapped {
		for constant, value := range constantsOf(t, c.file, c.kind) {
			if !c.known(value) {
				t.Errorf("%s: %s has no meaning for the planner", name, constant)
			}
		}
	}
}

func TestProvenanceOfThePlannerIsASource(t *testing.T) {
	sources := map[v1alpha1.Source]bool{}
	for from := memplan.Assumed; from <= memplan.Measured; from++ {
		sources[sourceOf(from)] = true
		if !strings.EqualFold(string(sourceOf(from)), from.String()) {
			t.Errorf("%v is shown as %s", from, sourceOf(from))
		}
	}
	if want := len(constantsOf(t, "../api/v1alpha1/status_types.go", "Source")); len(sources) != want {
		t.Errorf("%d sources are used, want all %d", len(sources), want)
	}
}

// TestFlagsOfTheJVM: weakest first JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, the command line, _JAVA_OPTIONS.
func TestFlagsOfTheJVM(t *testing.T) {
	env := func(pairs ...string) change[corev1.Container] {
		return func(c *corev1.Container) {
			for i := 0; i < len(pairs); i += 2 {
				c.Env = append(c.Env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
			}
		}
	}
	const gib = memplan.GiB
	cases := map[string]struct {
		app       *v1alpha1.StreamApp
		container []change[corev1.Container]
		inherited *string
		mode      memplan.HeapMode
		heap      memplan.Bytes
	}{
		"no flags: the plan decides":  {mode: memplan.HeapPlanned},
		"JAVA_TOOL_OPTIONS":           {container: []change[corev1.Container]{env("JAVA_TOOL_OPTIONS", "-Xmx1g")}, mode: memplan.HeapFixed, heap: gib},
		"JDK_JAVA_OPTIONS over it":    {container: []change[corev1.Container]{env("JAVA_TOOL_OPTIONS", "-Xmx1g", "JDK_JAVA_OPTIONS", "-Xmx2g")}, mode: memplan.HeapFixed, heap: 2 * gib},
		"the order in env is nothing": {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-Xmx2g", "JAVA_TOOL_OPTIONS", "-Xmx1g")}, mode: memplan.HeapFixed, heap: 2 * gib},
		"the command line over both": {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-Xmx2g"), func(c *corev1.Container) {
			c.Command = []string{"java", "-Xmx3g", "-jar", "app.jar"}
		}}, mode: memplan.HeapFixed, heap: 3 * gib},
		"a shell's command line": {container: []change[corev1.Container]{func(c *corev1.Container) {
			c.Command, c.Args = []string{"sh", "-c"}, []string{"exec java -Xmx3g -jar app.jar"}
		}}, mode: memplan.HeapFixed, heap: 3 * gib},
		"a variable on the command line": {container: []change[corev1.Container]{env("HEAP", "-Xmx3g"), func(c *corev1.Container) {
			c.Command, c.Args = []string{"java"}, []string{"$(HEAP)", "-jar", "app.jar"}
		}}, mode: memplan.HeapFixed, heap: 3 * gib},
		"a variable in a shell": {container: []change[corev1.Container]{env("JAVA_OPTS", "-Xss1m -Xmx3g"), func(c *corev1.Container) {
			c.Command = []string{"sh", "-c", "exec java ${JAVA_OPTS} -jar app.jar"}
		}}, mode: memplan.HeapFixed, heap: 3 * gib},
		"_JAVA_OPTIONS over all":        {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-Xmx2g", "_JAVA_OPTIONS", "-Xmx4g")}, mode: memplan.HeapFixed, heap: 4 * gib},
		"by envFrom":                    {inherited: new("-Xmx2g"), mode: memplan.HeapFixed, heap: 2 * gib},
		"env hides what envFrom gives":  {inherited: new("-Xmx2g"), container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-Xmx1g")}, mode: memplan.HeapFixed, heap: gib},
		"as the user says":              {app: streamApp(func(a *v1alpha1.StreamApp) { a.Spec.JVM.OwnOptions = new("-Xmx2g") }), mode: memplan.HeapFixed, heap: 2 * gib},
		"percentages of the app's own":  {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-XX:MaxRAMPercentage=60")}, mode: memplan.HeapPercent},
		"for small containers too":      {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-XX:MinRAMPercentage=60")}, mode: memplan.HeapPercent},
		"MaxRAM of the app's own":       {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-XX:MaxRAM=1g")}, mode: memplan.HeapPercent},
		"an initial heap is no maximum": {container: []change[corev1.Container]{env("JDK_JAVA_OPTIONS", "-Xms256m")}, mode: memplan.HeapPlanned},
		"a pinned heap": {app: streamApp(func(a *v1alpha1.StreamApp) {
			a.Spec.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionHeap, Size: memory("1Gi")}}
		}), mode: memplan.HeapPlanned, heap: gib},
		"not injected: the JVM's own choice": {container: []change[corev1.Container]{func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: v1alpha1.PlanMountPath}}
		}}, mode: memplan.HeapPercent},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template := podTemplate("8Gi")
			for _, apply := range c.container {
				apply(&template.Spec.Containers[0])
			}
			jvm := workloadFor(t, given{app: c.app, workload: statefulSet(3, template), inherited: c.inherited}).JVM
			if jvm.HeapMode != c.mode || c.heap > 0 && jvm.MaxHeap.Value != c.heap {
				t.Errorf("heap mode %v of %v, want %v of %v", jvm.HeapMode, jvm.MaxHeap.Value, c.mode, c.heap)
			}
		})
	}
}

func TestProcessors(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1500m": 2, "200m": 1, "8": 8} {
		limited := container(func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse(text) })
		if got := workloadFor(t, given{workload: statefulSet(3, podTemplate("1Gi", limited))}).JVM.CPUs; got != memplan.Known(want, memplan.App) {
			t.Errorf("%s CPUs: the JVM sees %+v, want %d", text, got, want)
		}
	}
}

func TestAllocatorAndStateDirectory(t *testing.T) {
	preload := container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	})
	w := workloadFor(t, given{workload: statefulSet(3, podTemplate("1Gi", preload))})
	if w.Allocator != memplan.Known(memplan.Jemalloc, memplan.Assumed) || w.StateDir != (memplan.StateDir{Persistent: true}) {
		t.Errorf("allocator %+v, state directory %+v", w.Allocator, w.StateDir)
	}
	injected := observed(t, given{})
	w, _ = workloadOf(injected)
	if w.Allocator.Value != memplan.GlibcArenas || withoutPlan(injected, w).Allocator.Value != memplan.Glibc {
		t.Errorf("allocator %v, and %v without the plan; want fewer arenas with it alone", w.Allocator.Value, withoutPlan(injected, w).Allocator.Value)
	}
	if without := withoutPlan(injected, w); without.JVM.HeapMode != memplan.HeapPercent || w.JVM.HeapMode != memplan.HeapPlanned {
		t.Errorf("heap mode %v, and %v without the plan", w.JVM.HeapMode, without.JVM.HeapMode)
	}
}

func TestInvalidSettingsAreAllNamed(t *testing.T) {
	app := streams(func(s *v1alpha1.StreamsSpec) {
		s.Version = "4.x.0"
		s.Configs = []v1alpha1.Config{{Name: "num.stream.threads", Value: "many"}, {Name: "buffered.records.per.partition", Value: "few"}}
	})
	_, invalid := workloadOf(observed(t, given{app: app, workload: statefulSet(3, podTemplate("1Gi", javaOptions("-XX:+UseG1GC -XX:+UseSerialGC")))}))
	text := strings.Join(invalid, "\n")
	for _, part := range []string{"4.x.0", "num.stream.threads", "buffered.records.per.partition", "UseG1GC"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not name %s", text, part)
		}
	}
}
