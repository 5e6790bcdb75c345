// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
	"streamweir.dev/streamweir/memplan"
)

// streamsApp is a StreamApp whose `streams` are changed.
func streamsApp(apply testobjects.Change[v1alpha1.StreamsSpec]) *v1alpha1.StreamApp {
	return testobjects.StreamApp(func(app *v1alpha1.StreamApp) { apply(&app.Spec.Streams) })
}

// planned resolves the workload of a new pod. No setting may be invalid.
func (g fixture) planned(t *testing.T) memplan.Workload {
	t.Helper()
	resolved := resolveApplication(g.facts(t))
	if len(resolved.invalid) > 0 {
		t.Errorf("invalid: %v", resolved.invalid)
	}
	return resolved.planned
}

// TestSources: the group counts, else the spec, else Kafka's defaults. Each fact has its source.
func TestSources(t *testing.T) {
	spec := streamsApp(func(s *v1alpha1.StreamsSpec) {
		*s = v1alpha1.StreamsSpec{
			Version: "4.1.0", Threads: 7, StandbyReplicas: new(int32(3)), WarmupReplicas: new(int32(5)),
			GroupProtocol: v1alpha1.StreamsProtocol, ProcessingGuarantee: v1alpha1.ExactlyOnceV2,
		}
	})
	classic := groupOf(4, 4, 4)
	classic.Processes[1].Threads = 4
	classic.Standbys = new(int32(1))
	classic.TLS = true
	streams := groupOf(4, 4, 4)
	streams.Protocol = assignment.Streams
	streams.Standbys = new(int32(1))
	type facts struct {
		Version                    memplan.Fact[memplan.Version]
		Threads, Standbys, WarmUps memplan.Fact[int]
		Protocol                   memplan.Fact[memplan.Protocol]
	}
	version := func(major, minor int, from memplan.Provenance) memplan.Fact[memplan.Version] {
		return memplan.Known(memplan.Version{Major: major, Minor: minor}, from)
	}
	defaults := memplan.NewWorkload(memplan.Fact[memplan.Version]{})
	cases := map[string]struct {
		input fixture
		want  facts
	}{
		"no source": {fixture{}, facts{memplan.Fact[memplan.Version]{}, defaults.Threads, defaults.Standbys, defaults.WarmUps, defaults.Protocol}},
		"spec": {fixture{app: spec}, facts{
			version(4, 1, memplan.Spec), memplan.Known(7, memplan.Spec), memplan.Known(3, memplan.Spec), memplan.Known(5, memplan.Spec),
			memplan.Known(memplan.Streams, memplan.Spec),
		}},
		"classic group: at least its present standbys": {fixture{group: classic}, facts{
			version(4, 4, memplan.Assumed), memplan.Known(4, memplan.Measured), memplan.Known(1, memplan.Measured), defaults.WarmUps,
			memplan.Known(memplan.Classic, memplan.Measured),
		}},
		"classic group and spec": {fixture{app: spec, group: classic}, facts{
			version(4, 1, memplan.Spec), memplan.Known(4, memplan.Measured), memplan.Known(3, memplan.Spec), memplan.Known(5, memplan.Spec),
			memplan.Known(memplan.Classic, memplan.Measured),
		}},
		"streams group and spec: the broker's config counts": {fixture{app: spec, group: streams}, facts{
			version(4, 1, memplan.Spec), memplan.Known(1, memplan.Measured), memplan.Known(1, memplan.Measured), memplan.Known(0, memplan.Default),
			memplan.Known(memplan.Streams, memplan.Measured),
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := c.input.planned(t)
			wantNoDiff(t, "facts", c.want, facts{w.Version, w.Threads, w.Standbys, w.WarmUps, w.Protocol})
		})
	}
	t.Run("guarantee, brokers and TLS", func(t *testing.T) {
		w := fixture{app: spec, group: classic}.planned(t)
		wantNoDiff(t, "guarantee", memplan.Known(memplan.ExactlyOnceV2, memplan.Spec), w.Guarantee)
		wantNoDiff(t, "brokers", memplan.Known(3, memplan.Measured), w.Brokers)
		wantNoDiff(t, "TLS", memplan.Known(true, memplan.Assumed), w.TLS)
	})
}

// TestOrderOfSources: an order other than the usual one has a reason, and no field has two rules.
func TestOrderOfSources(t *testing.T) {
	usual := []sourceName{sourceReports, sourceMeasured, sourceBroker, sourceGroup, sourceSpec, sourceTemplate}
	fields := map[string]bool{}
	for _, r := range precedence {
		if fields[r.field] {
			t.Errorf("%s has two rules", r.field)
		}
		fields[r.field] = true
		var ranks []int
		for _, name := range r.order {
			ranks = append(ranks, slices.Index(usual, name))
		}
		if len(ranks) == 0 || slices.Contains(ranks, -1) {
			t.Errorf("%s: sources %v", r.field, r.order)
		}
		if slices.IsSorted(ranks) != (r.reason == "") {
			t.Errorf("%s: sources %v with reason %q", r.field, r.order, r.reason)
		}
	}
}

func TestTopologyOfGroupAndSpec(t *testing.T) {
	group := groupOf(4, 4, 4)
	subtopology := &group.Subtopologies[0]
	subtopology.SinkTopics = []assignment.Topic{{Name: "repartition", Partitions: 6}}
	subtopology.UnloggedStores = []string{"scratch"}
	subtopology.Changelogs = append(subtopology.Changelogs, assignment.Changelog{
		Store: "hourly", Kind: assignment.Window, Retention: 2 * time.Hour, Assumed: true,
	})
	group.GlobalStores = []string{"rates"}
	app := streamsApp(func(s *v1alpha1.StreamsSpec) {
		s.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 999}, {ID: new(int32(7)), Tasks: 5}}
		s.Stores = []v1alpha1.Store{
			{Name: "hourly", Kind: v1alpha1.StoreSession, SegmentSeconds: 60, Caching: v1alpha1.CachingDisabled, Size: testobjects.Memory("1Mi")},
			{Name: "rates", Kind: v1alpha1.StoreGlobal, Storage: v1alpha1.StorageInMemory},
			{Name: "fresh", Subtopology: new(int32(0)), Kind: v1alpha1.StoreVersioned},
			{Name: "nowhere", Subtopology: new(int32(7))},
		}
	})
	w := fixture{app: app, group: group}.planned(t)
	want := []memplan.Subtopology{{
		ID: "0", Tasks: 12, InputPartitions: 1, WrittenPartitions: 6,
		Stores: []memplan.Store{
			{Name: "totals", Kind: memplan.TimestampedKeyValue, Caching: true, RetentionMs: memplan.Known(int64(0), memplan.Measured)},
			{
				Name: "hourly", Kind: memplan.Session, RetentionMs: memplan.Known(int64(7_200_000), memplan.Assumed),
				SegmentIntervalMs: memplan.Known(int64(60_000), memplan.Spec), Size: memplan.Known(memplan.MiB, memplan.Spec),
			},
			{Name: "scratch", Kind: memplan.TimestampedKeyValue, Caching: true, Unlogged: true},
			{Name: "fresh", Kind: memplan.Versioned, Caching: true},
		},
	}}
	wantNoDiff(t, "subtopologies", want, w.Subtopologies)
	wantNoDiff(t, "global stores", []memplan.Store{{Name: "rates", Kind: memplan.TimestampedKeyValue, InMemory: true}}, w.GlobalStores)
}

func TestTopologyOfSpec(t *testing.T) {
	app := streamsApp(func(s *v1alpha1.StreamsSpec) {
		s.Subtopologies = []v1alpha1.Subtopology{
			{ID: new(int32(0)), Tasks: 12, InputPartitionsPerTask: 2, WrittenPartitions: new(int32(24))}, {ID: new(int32(1)), Tasks: 6},
		}
		s.Stores = []v1alpha1.Store{{Name: "totals", Subtopology: new(int32(1)), RetentionSeconds: 60, Kind: v1alpha1.StoreWindow}, {Name: "lost"}}
	})
	want := []memplan.Subtopology{
		{ID: "0", Tasks: 12, InputPartitions: 2, WrittenPartitions: 24},
		{ID: "1", Tasks: 6, InputPartitions: 1, Stores: []memplan.Store{
			{Name: "totals", Kind: memplan.Window, Caching: true, RetentionMs: memplan.Known(int64(60_000), memplan.Spec)},
		}},
	}
	wantNoDiff(t, "subtopologies", want, fixture{app: app}.planned(t).Subtopologies)
	if plan := (fixture{app: app}).decide(t).Plan; !plan.TasksKnown || plan.Tasks != 18 {
		t.Errorf("%d tasks, known = %t; want 18", plan.Tasks, plan.TasksKnown)
	}
}

// TestEveryValueIsMapped fails if a value is added to the API, or to the group, without a meaning for the planner.
func TestEveryValueIsMapped(t *testing.T) {
	const api, group = "../../api/v1alpha1/", "../../assignment/types.go"
	cases := map[string]struct {
		file, typeName string
		mapped         func(value string) bool
	}{
		"guarantees": {api + "streams_types.go", "ProcessingGuarantee", func(v string) bool { return mapped(guarantees, v1alpha1.ProcessingGuarantee(v)) }},
		"protocols":  {api + "streams_types.go", "GroupProtocol", func(v string) bool { return mapped(protocols, v1alpha1.GroupProtocol(v)) }},
		"kinds of stores": {api + "streams_types.go", "StoreKind", func(v string) bool {
			return mapped(storeKinds, v1alpha1.StoreKind(v)) || v == string(v1alpha1.StoreGlobal) // a list of its own
		}},
		"regions": {api + "streamapp_types.go", "Region", func(v string) bool {
			return mapped(pinnedRegions, v1alpha1.Region(v)) || v == string(v1alpha1.RegionHeap) // a pool, not a line
		}},
		"kinds of changelogs": {group, "StoreKind", func(v string) bool { return mapped(shownKinds, assignment.StoreKind(v)) }},
		"workloads": {api + "streamapp_types.go", "WorkloadKind", func(v string) bool {
			return v == string(v1alpha1.KindStatefulSet) || v == string(v1alpha1.KindDeployment)
		}},
	}
	for name, c := range cases {
		for constant, value := range constantsOfType(t, c.file, c.typeName) {
			if !c.mapped(value) {
				t.Errorf("%s: %s has no meaning for the planner", name, constant)
			}
		}
	}
}

func mapped[K comparable, V any](values map[K]V, key K) bool {
	_, ok := values[key]
	return ok
}

func TestEverySourceIsUsed(t *testing.T) {
	sources := map[v1alpha1.Source]bool{}
	for from := memplan.Assumed; from <= memplan.Measured; from++ {
		source := sourceOf(from)
		sources[source] = true
		if !strings.EqualFold(string(source), from.String()) {
			t.Errorf("%s is shown as %s", from, source)
		}
	}
	if want := len(constantsOfType(t, "../../api/v1alpha1/status_types.go", "Source")); len(sources) != want {
		t.Errorf("%d sources are used, want all %d", len(sources), want)
	}
}

// constantsOfType reads the string constants of a type from a source file.
func constantsOfType(t *testing.T, file, typeName string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for node := range ast.Preorder(parsed) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			continue
		}
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if name, ok := spec.Type.(*ast.Ident); !ok || !isLiteral || name.Name != typeName {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		constants[spec.Names[0].Name] = value
	}
	if len(constants) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typeName)
	}
	return constants
}

// TestJVMFlags: weakest first JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, the command line, _JAVA_OPTIONS.
func TestJVMFlags(t *testing.T) {
	type change = testobjects.Change[corev1.Container]
	env := func(pairs ...string) change {
		return func(c *corev1.Container) {
			for i := 0; i < len(pairs); i += 2 {
				c.Env = append(c.Env, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
			}
		}
	}
	command := func(parts ...string) change { return func(c *corev1.Container) { c.Command = parts } }
	args := func(parts ...string) change { return func(c *corev1.Container) { c.Args = parts } }
	notInjectable := func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: v1alpha1.PlanMountPath}}
	}
	ownOptions := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OwnOptions = new("-Xmx2g") })
	pinned := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionHeap, Size: testobjects.Memory("1Gi")}}
	})
	const gib = memplan.GiB
	cases := map[string]struct {
		app       *v1alpha1.StreamApp
		container []change
		inherited *string
		mode      memplan.HeapMode
		heap      memplan.Bytes // 0 for any
	}{
		"no flags":                {mode: memplan.HeapPlanned},
		"JAVA_TOOL_OPTIONS":       {container: []change{env("JAVA_TOOL_OPTIONS", "-Xmx1g")}, mode: memplan.HeapFixed, heap: gib},
		"JDK_JAVA_OPTIONS":        {container: []change{env("JAVA_TOOL_OPTIONS", "-Xmx1g", "JDK_JAVA_OPTIONS", "-Xmx2g")}, mode: memplan.HeapFixed, heap: 2 * gib},
		"order in env: no effect": {container: []change{env("JDK_JAVA_OPTIONS", "-Xmx2g", "JAVA_TOOL_OPTIONS", "-Xmx1g")}, mode: memplan.HeapFixed, heap: 2 * gib},
		"command line": {
			container: []change{env("JDK_JAVA_OPTIONS", "-Xmx2g"), command("java", "-Xmx3g", "-jar", "app.jar")}, mode: memplan.HeapFixed, heap: 3 * gib,
		},
		"command line of a shell": {
			container: []change{command("sh", "-c"), args("exec java -Xmx3g -jar app.jar")}, mode: memplan.HeapFixed, heap: 3 * gib,
		},
		"variable on the command line": {
			container: []change{env("HEAP", "-Xmx3g"), command("java"), args("$(HEAP)", "-jar", "app.jar")}, mode: memplan.HeapFixed, heap: 3 * gib,
		},
		"variable in a shell": {
			container: []change{env("JAVA_OPTS", "-Xss1m -Xmx3g"), command("sh", "-c", "exec java ${JAVA_OPTS} -jar app.jar")}, mode: memplan.HeapFixed, heap: 3 * gib,
		},
		"_JAVA_OPTIONS":                        {container: []change{env("JDK_JAVA_OPTIONS", "-Xmx2g", "_JAVA_OPTIONS", "-Xmx4g")}, mode: memplan.HeapFixed, heap: 4 * gib},
		"envFrom":                              {inherited: new("-Xmx2g"), mode: memplan.HeapFixed, heap: 2 * gib},
		"env replaces envFrom":                 {inherited: new("-Xmx2g"), container: []change{env("JDK_JAVA_OPTIONS", "-Xmx1g")}, mode: memplan.HeapFixed, heap: gib},
		"ownOptions":                           {app: ownOptions, mode: memplan.HeapFixed, heap: 2 * gib},
		"own MaxRAMPercentage":                 {container: []change{env("JDK_JAVA_OPTIONS", "-XX:MaxRAMPercentage=60")}, mode: memplan.HeapPercent},
		"own MinRAMPercentage":                 {container: []change{env("JDK_JAVA_OPTIONS", "-XX:MinRAMPercentage=60")}, mode: memplan.HeapPercent},
		"own MaxRAM":                           {container: []change{env("JDK_JAVA_OPTIONS", "-XX:MaxRAM=1g")}, mode: memplan.HeapPercent},
		"initial heap: not the maximum":        {container: []change{env("JDK_JAVA_OPTIONS", "-Xms256m")}, mode: memplan.HeapPlanned},
		"pinned heap":                          {app: pinned, mode: memplan.HeapPlanned, heap: gib},
		"not injectable: the JVM's own choice": {container: []change{notInjectable}, mode: memplan.HeapPercent},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template := testobjects.PodTemplate("8Gi")
			for _, apply := range c.container {
				apply(&template.Spec.Containers[0])
			}
			jvm := fixture{app: c.app, workload: testobjects.StatefulSet(3, template), inherited: c.inherited}.planned(t).JVM
			if jvm.HeapMode != c.mode || (c.heap > 0 && jvm.MaxHeap.Value != c.heap) {
				t.Errorf("heap mode %v of %v, want %v of %v", jvm.HeapMode, jvm.MaxHeap.Value, c.mode, c.heap)
			}
		})
	}
}

func TestCPUs(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "1500m": 2, "200m": 1, "8": 8} {
		limited := container(func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse(text) })
		got := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", limited))}.planned(t).JVM.CPUs
		wantNoDiff(t, "CPUs of a limit of "+text, memplan.Known(want, memplan.App), got)
	}
}

func TestAllocatorAndStateDirectory(t *testing.T) {
	preload := container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	})
	w := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", preload))}.planned(t)
	wantNoDiff(t, "allocator", memplan.Known(memplan.Jemalloc, memplan.Assumed), w.Allocator)
	wantNoDiff(t, "state directory", memplan.StateDir{Persistent: true}, w.StateDir)
}

func TestGlibcWithoutALimitOnArenasIsNamed(t *testing.T) {
	envFrom := container(func(c *corev1.Container) {
		c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
	})
	w := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", envFrom))}.planned(t)
	wantNoDiff(t, "with envFrom", memplan.Known(memplan.Glibc, memplan.Assumed), w.Allocator)
	set := container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "MALLOC_ARENA_MAX", Value: "2"}} })
	w = fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", envFrom, set))}.planned(t)
	wantNoDiff(t, "with envFrom and the variable", memplan.Known(memplan.GlibcArenas, memplan.Derived), w.Allocator)

	for arenas, want := range map[int]memplan.Allocator{0: memplan.Glibc, 2: memplan.GlibcArenas} {
		g := reported(func(r *report.Report) { r.Allocator = report.Allocator{Name: "glibc", Arenas: arenas} })
		d := g.decide(t)
		wantNoDiff(t, "reported allocator", memplan.Known(want, memplan.Measured), d.Plan.resolved.planned.Allocator)
		named := slices.ContainsFunc(d.Plan.Notes, func(note string) bool { return strings.Contains(note, "set MALLOC_ARENA_MAX=2") })
		if named != (arenas == 0) {
			t.Errorf("with %d arenas the notes are %q", arenas, d.Plan.Notes)
		}
	}
}

// TestPodWithoutThePlan: without the injection the JVM sizes the heap, and glibc has its default arenas.
func TestPodWithoutThePlan(t *testing.T) {
	w := fixture{}.planned(t)
	without := withoutPlan(w, fixture{}.facts(t).Container)
	if w.Allocator.Value != memplan.GlibcArenas || without.Allocator.Value != memplan.Glibc {
		t.Errorf("allocator %v, and %v without the plan; want fewer arenas with it only", w.Allocator.Value, without.Allocator.Value)
	}
	if w.JVM.HeapMode != memplan.HeapPlanned || without.JVM.HeapMode != memplan.HeapPercent {
		t.Errorf("heap mode %v, and %v without the plan", w.JVM.HeapMode, without.JVM.HeapMode)
	}
}

func TestEveryInvalidSettingIsNamed(t *testing.T) {
	app := streamsApp(func(s *v1alpha1.StreamsSpec) {
		s.Version = "4.x.0"
		s.Configs = []v1alpha1.Config{{Name: "num.stream.threads", Value: "many"}, {Name: "buffered.records.per.partition", Value: "few"}}
	})
	template := testobjects.PodTemplate("1Gi", javaOptions("-XX:+UseG1GC -XX:+UseSerialGC"))
	text := strings.Join(fixture{app: app, workload: testobjects.StatefulSet(3, template)}.decide(t).Plan.Invalid, "\n")
	for _, part := range []string{"4.x.0", "num.stream.threads", "buffered.records.per.partition", "UseG1GC"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not name %s", text, part)
		}
	}
}

// planFlags are the flags of a process that was started with a plan.
func planFlags(maxRAM int64, percent string, others ...string) []string {
	return append([]string{
		"-XX:+IgnoreUnrecognizedVMOptions", fmt.Sprintf("-XX:MaxRAM=%d", maxRAM), "-XX:MaxRAMPercentage=" + percent, "-XX:MinRAMPercentage=" + percent,
	}, others...)
}

// TestHeapOfTheProcessCounts: set by any option.
func TestHeapOfTheProcessCounts(t *testing.T) {
	xmx := testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", container(func(c *corev1.Container) { c.Args = []string{"java", "-Xmx256m"} })))
	percentage := testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", container(func(c *corev1.Container) {
		c.Args = []string{"java", "-XX:MaxRAMPercentage=30"}
	})))
	pinned := testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "16Gi"), func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionHeap, Size: testobjects.Memory("256Mi")}}
	})
	for name, input := range map[string]fixture{
		"planned": {}, "-Xmx": {workload: xmx}, "MaxRAMPercentage": {workload: percentage}, "pinned": {app: pinned},
	} {
		t.Run(name, func(t *testing.T) {
			required := func(heapOfFirst int64) (first, other int64) {
				g := reported()
				if input.workload != nil {
					g.workload = input.workload
				}
				g.app = input.app
				r := *g.reports["orders-0"].Report
				r.JVM.HeapMax = heapOfFirst
				g.reports["orders-0"] = report.PodReport{Report: &r, At: testobjects.Now}
				g = g.after(t)
				d := g.decide(t)
				return d.Plan.Pods["orders-0"].Required, d.Plan.Pods["orders-1"].Required
			}
			unknown, before := required(0)
			small, _ := required(64 * mib)
			large, after := required(900 * mib)
			if small != unknown || before != unknown || after != before {
				t.Errorf("required: %s with a small heap, %s unknown; the other pod %s, then %s; want the same",
					bytesText(small), bytesText(unknown), bytesText(before), bytesText(after))
			}
			if large < 900*mib+(unknown-256*mib-100*mib) {
				t.Errorf("required: %s with a heap of 900 MiB, %s otherwise; want the heap and the rest", bytesText(large), bytesText(unknown))
			}
		})
	}
}

// TestHeapOfTheImageCountsForNewPods: an image whose entry point sets the heap keeps doing so.
func TestHeapOfTheImageCountsForNewPods(t *testing.T) {
	const limit = 1 << 30
	ownPercent := []string{"-XX:MaxRAMPercentage=75.0"}
	visible := testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", container(func(c *corev1.Container) {
		c.Args = []string{"java", "-XX:MaxRAMPercentage=75.0"}
	})))
	cases := map[string]struct {
		flags      []string
		heap       int64
		cgroup     int64
		workload   any
		remembered int32
		want       int32
	}{
		"the plan's own":                    {flags: planFlags(limit, "25"), heap: limit / 4},
		"rounded up":                        {flags: planFlags(limit, "25"), heap: limit/4 + 2*mib},
		"that of an earlier plan":           {flags: planFlags(2*limit, "40"), heap: 2 * limit / 10 * 4},
		"a smaller cgroup at the start":     {flags: planFlags(2*limit, "40"), heap: limit / 10 * 4},
		"the image's":                       {flags: planFlags(limit, "25", ownPercent...), heap: limit / 4 * 3, want: 75},
		"the image's, remembered":           {heap: 0, remembered: 75, want: 75},
		"the image's, not any more":         {flags: planFlags(limit, "25"), heap: limit / 4, remembered: 75},
		"the image's, and a raised limit":   {flags: ownPercent, heap: limit / 4 * 3, cgroup: 3 * limit / 2, remembered: 75, want: 75},
		"unknown flags":                     {heap: limit / 4 * 3, cgroup: limit},
		"unknown flags, the JVM's own heap": {heap: limit / 4, cgroup: limit, remembered: 75},
		"more than the limit":               {flags: planFlags(limit, "25", ownPercent...), heap: 2 * limit},
		"visible in the template":           {flags: planFlags(limit, "25", ownPercent...), heap: limit / 4 * 3, workload: visible},
		"a reported -Xmx":                   {flags: planFlags(limit, "25", "-Xmx768m"), heap: limit / 4 * 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := reported(func(r *report.Report) {
				r.JVM.Flags = c.flags
				r.JVM.HeapMax = c.heap
				r.Cgroup.Limit = c.cgroup
			})
			if c.workload != nil {
				g.workload = c.workload
			}
			g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "16Gi"))
			g.app.Status.Measured = v1alpha1.MeasuredRegions{ImageID: testDigest, HeapPercent: c.remembered}
			if c.cgroup > 0 && c.flags != nil { // the published plan leaves the heap to the image
				g.plan = &corev1.ConfigMap{Data: map[string]string{planfile.OptionsKey: fmt.Sprintf("-XX:MaxRAM=%d\n", limit)}}
			}
			d := g.decide(t)
			wantNoDiff(t, "percentage", c.want, d.Facts.Measured.HeapPercent)
			wantNoDiff(t, "remembered", c.want, d.Memory.Measured.HeapPercent)
			jvm := d.Plan.resolved.planned.JVM
			if c.want > 0 {
				if heap := jvm.HeapUnder(4 * memplan.GiB); jvm.HeapMode != memplan.HeapPercent || heap < 3*memplan.GiB {
					t.Errorf("a new pod with 4 GiB has a heap of %v, want three quarters", heap)
				}
				if !slices.Contains(d.Plan.Notes, ownHeapText(75)) {
					t.Errorf("the notes are %q", d.Plan.Notes)
				}
			}
		})
	}
}
