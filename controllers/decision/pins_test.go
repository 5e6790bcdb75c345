// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/golden"
	"streamweir.dev/streamweir/internal/testobjects"
	"streamweir.dev/streamweir/memplan"
)

// pinnedSeeds is the number of random worlds whose decisions are pinned, pinnedRounds the number of passes over each.
const (
	pinnedSeeds  = 160
	pinnedRounds = 2
)

// chance draws from a fixed sequence, so that a seed names the same world for ever.
type chance struct{ *rand.Rand }

func (c chance) oneIn(n int) bool { return c.IntN(n) == 0 }

func (c chance) pick(options ...string) string { return options[c.IntN(len(options))] }

// pinnedFixture is a random world: half of them with agents that report, the others with a Kafka group or with the spec alone.
func pinnedFixture(seed uint64) fixture {
	c := chance{rand.New(rand.NewPCG(seed, 1))}
	limit := c.pick("768Mi", "1Gi", "1536Mi", "2Gi", "3Gi")
	g := fixture{app: testobjects.StreamApp(testobjects.LimitsBetween(c.pick("", "", "512Mi", "1Gi"), c.pick("", "1Gi", "2Gi", "4Gi", "8Gi")), pinnedSpec(c))}
	if g.app.Spec.Memory.MinLimit != nil && g.app.Spec.Memory.MaxLimit != nil && g.app.Spec.Memory.MinLimit.Cmp(*g.app.Spec.Memory.MaxLimit) > 0 {
		g.app.Spec.Memory.MinLimit = nil
	}
	replicas := int32(1 + c.IntN(5))
	if c.oneIn(3) {
		g.workload = testobjects.Deployment(replicas, testobjects.PodTemplate(limit, pinnedTemplate(c)))
	} else {
		g.workload = testobjects.StatefulSet(replicas, testobjects.PodTemplate(limit, pinnedTemplate(c)))
	}
	g.nodes = []*corev1.Node{testobjects.Node("node-1", corev1.ConditionStatus(c.pick("True", "True", "Unknown", "False")))}
	g.agent = c.oneIn(2)
	if g.agent {
		g.reports = map[string]report.PodReport{}
	}
	var tasks []int
	first := 0
	for i := range 1 + c.IntN(5) {
		count := c.IntN(9)
		tasks = append(tasks, count)
		pinnedPod(c, &g, i, first, count)
		first += count
	}
	if c.oneIn(2) && !g.agent || c.oneIn(4) {
		g.group = groupOf(tasks...)
		pinnedGroup(c, g.group)
	}
	if g.group == nil && !g.agent {
		g.app.Spec.Streams.Subtopologies = []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: int32(4 + c.IntN(20))}}
		g.app.Spec.Streams.Stores = []v1alpha1.Store{{Name: "totals", Kind: v1alpha1.StoreKeyValue, Subtopology: new(int32(0))}}
	}
	if c.oneIn(5) {
		g.quotas = []corev1.ResourceQuota{{
			ObjectMeta: metav1.ObjectMeta{Name: "team"},
			Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("6Gi")},
				Used: corev1.ResourceList{corev1.ResourceLimitsMemory: resource.MustParse("3Gi")},
			},
		}}
	}
	pinnedStatus(c, &g)
	return g
}

func pinnedSpec(c chance) testobjects.Change[v1alpha1.StreamApp] {
	return func(app *v1alpha1.StreamApp) {
		app.Spec.Memory.Requests = v1alpha1.RequestsPolicy(c.pick("", "Keep", "FollowLimit", "Expected"))
		if c.oneIn(3) {
			app.Spec.Memory.PodFailuresToTolerate = new(int32(c.IntN(3)))
		}
		if c.oneIn(6) {
			app.Spec.Memory.HeadroomPercent = new(int32(5 * c.IntN(6)))
		}
		if c.oneIn(6) {
			app.Spec.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.Region(c.pick("Heap", "Metaspace", "BlockCache")), Size: testobjects.Memory("200Mi")}}
		}
		if c.oneIn(4) {
			app.Spec.Streams.Threads = int32(1 + c.IntN(4))
		}
		if c.oneIn(4) {
			app.Spec.Streams.StandbyReplicas = new(int32(c.IntN(2)))
		}
		if c.oneIn(5) {
			app.Spec.Streams.Version = c.pick("2.8.2", "3.6.0", "4.1.0")
		}
		if c.oneIn(10) {
			app.Spec.Mode = v1alpha1.ModeObserve
		}
	}
}

func pinnedTemplate(c chance) testobjects.Change[corev1.PodTemplateSpec] {
	return container(func(container *corev1.Container) {
		if c.oneIn(6) {
			container.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: c.pick("-Xmx300m", "-XX:MaxRAMPercentage=60", "-XX:+UseZGC", "-Xss2m")}}
		}
		if c.oneIn(8) {
			container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}
		if c.oneIn(10) {
			container.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
			container.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}
	})
}

// pinnedPod adds a pod with its report, unless the pod is missing.
func pinnedPod(c chance, g *fixture, ordinal, first, tasks int) {
	if c.oneIn(7) {
		return
	}
	kind := c.IntN(14)
	pod := testobjects.RunningPod(ordinal, c.pick("768Mi", "1Gi", "2Gi", "3Gi"), func(p *corev1.Pod) {
		if g.agent && kind != 1 {
			withAgent(p)
		}
		switch kind {
		case 0:
			p.Status.Phase = corev1.PodPending
		case 1:
			testobjects.NotInjected(p)
		case 2:
			p.DeletionTimestamp = new(metav1.NewTime(testobjects.Now))
		case 3:
			p.Status.ContainerStatuses[0].State = runningSince(testobjects.Now.Add(-time.Minute))
		case 4:
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		}
	})
	g.pods = append(g.pods, pod)
	if g.agent && kind != 0 && kind != 1 && !c.oneIn(30) {
		g.reports[pod.Name] = reportWith(first, tasks, pinnedReport(c))
	}
}

func pinnedReport(c chance) testobjects.Change[report.Report] {
	return func(r *report.Report) {
		switch c.IntN(6) {
		case 0:
			r.Bounded = report.BoundedPending
		case 1:
			r.Bounded = report.BoundedOff
		case 2:
			r.RocksDB.OwnCaches = []report.Cache{{Capacity: 64 << 20, Stores: 2}}
		}
		if c.oneIn(3) {
			r.JVM.Metaspace, r.JVM.CodeCache, r.JVM.HeapLive = int64(40+c.IntN(120))<<20, int64(20+c.IntN(120))<<20, int64(20+c.IntN(120))<<20
			r.Started = testobjects.Now.Add(-2 * time.Hour).UnixMilli()
		}
		if c.oneIn(4) {
			r.Clients[0].Settings = []report.Setting{
				{Name: "num.standby.replicas", Value: "1", By: report.SetByApp}, {Name: "buffer.memory", Value: "8388608", By: report.SetByApp},
			}
		}
		if c.oneIn(4) {
			r.Clients[0].Records.AverageSize = int64(50 + c.IntN(5000))
		}
	}
}

func pinnedGroup(c chance, group *assignment.Group) {
	if c.oneIn(3) {
		group.Protocol, group.Standbys = assignment.Streams, new(int32(c.IntN(2)))
	}
	if c.oneIn(3) {
		group.Subtopologies[0].Changelogs[0].Kind, group.Subtopologies[0].Changelogs[0].Retention = assignment.Window, time.Hour
	}
	if c.oneIn(8) {
		group.Processes = group.Processes[:max(1, len(group.Processes)-1)]
	}
	if c.oneIn(8) {
		group.Processes[0].Host = "10.9.9.9"
	}
}

// pinnedStatus is what earlier passes have left in the status.
func pinnedStatus(c chance, g *fixture) {
	if c.oneIn(2) {
		return
	}
	g.app.Status.ObservedGeneration = g.app.Generation
	if c.oneIn(2) {
		g.app.Status.PodsUnavailableSinceTime = new(metav1.NewTime(testobjects.Now.Add(-time.Duration(c.IntN(60)) * time.Second)))
	}
	if g.agent && c.oneIn(2) {
		state := v1alpha1.ImageState(c.pick(string(v1alpha1.ImageStarted), string(v1alpha1.ImageProven), string(v1alpha1.ImageProven), string(v1alpha1.ImageFailedToStart)))
		g.app.Status.Images = []v1alpha1.ImageStatus{known(testImage, testDigest, state, 30*time.Minute)}
	}
	if g.agent && c.oneIn(2) {
		g.app.Status.Measured = v1alpha1.MeasuredRegions{ImageID: testDigest, Metaspace: testobjects.Memory("88Mi"), Age: v1alpha1.ProcessWarmedUp}
	}
}

// TestPinnedDecisions holds the decisions of random worlds against recorded ones: the first pass, and a second one after the kubelets
// have carried out the first. Numbers and objects stand in one file, sentences for people in another.
func TestPinnedDecisions(t *testing.T) {
	var numbers, texts strings.Builder
	for seed := range uint64(pinnedSeeds) {
		g := pinnedFixture(seed)
		for round := range pinnedRounds {
			d := g.decide(t)
			title := fmt.Sprintf("== seed %d pass %d\n", seed, round+1)
			numbers.WriteString(title + pinnedNumbers(d))
			texts.WriteString(title + pinnedTexts(d))
			if d.Injection == nil || d.Frozen.Found() {
				break
			}
			next := g.after(t)
			next.pods = carriedOut(g.pods, d)
			g = next
		}
	}
	golden.Compare(t, filepath.Join("pinned", "decisions.golden"), numbers.String())
	golden.Compare(t, filepath.Join("pinned", "texts.golden"), texts.String())
}

func pinnedNumbers(d *Decision) string {
	var out strings.Builder
	f, p := &d.Facts, &d.Plan
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("failures: instances %d unavailable %d starting %d tolerated %d recheck %s",
		f.Failures.Instances, f.Failures.Unavailable, f.Failures.Starting, f.Failures.Tolerated, d.RecheckAfter)
	line("tasks %d known %t invalid %d notes %d", p.Tasks, p.TasksKnown, len(p.Invalid), len(p.Notes))
	line("required %d now %d bounded now %d tolerates %d cold start %d", p.Required, p.RequiredNow, p.RequiredNowActive, p.Tolerated, p.ColdStart)
	for _, name := range slices.Sorted(maps.Keys(p.Pods)) {
		pod := p.Pods[name]
		line("pod %s tasks %d required %d now %d", name, pod.Tasks, pod.Required, pod.RequiredNow)
	}
	line("limit %d capped %t injectable %t frozen %t withdrawn %t", p.Limit, p.Capped != "", !f.NotInjectable.Found(), d.Frozen.Found(), d.Memory.Withdrawal != nil)
	r := &p.Representative
	line("representative: limit %d heap %d expected %d fits %t lines %d settings %d", r.Limit, r.Heap, r.Expected, r.Fits, len(r.Lines), len(r.Settings))
	line("options %q", d.Files[planfile.OptionsKey])
	line("properties %q", d.Files[planfile.PropertiesKey])
	if i := d.Injection; i != nil {
		m := i.Memory
		line("injection: limit %v for %v image %q request %v agent %q excluded %v own options %t", m.Limit, m.ForLimit, m.ForImage, m.Request, i.AgentConfigMap,
			i.ExcludedImages, i.OwnOptions != nil)
	}
	for _, r := range d.Resizes {
		line("resize %s from %d to %d request %d", r.Pod, r.From, r.To, r.Request)
	}
	for _, r := range d.Restarts {
		line("restart %s from %d to %d request %d", r.Pod, r.From, r.To, r.Request)
	}
	var refreshed []string
	for _, refresh := range d.Refreshes {
		refreshed = append(refreshed, refresh.Pod)
	}
	line("refresh %v not acknowledged %v", refreshed, d.NotAcknowledged)
	for _, image := range f.Images {
		line("image %s proven %t started %t", image.ImageID, image.State == v1alpha1.ImageProven, image.State == v1alpha1.ImageStarted)
	}
	m := f.Measured
	line("measured %s %v %v %v %v", m.ImageID, m.Metaspace, m.CodeCache, m.ApplicationHeap, m.AverageRecord)
	for _, pod := range d.status().DivergentPods {
		line("differs: %s limit %v required %v tasks %d resize %s", pod.Name, pod.Limit, pod.RequiredLimit, deref(pod.Tasks), pod.Resize)
	}
	return out.String()
}

func pinnedTexts(d *Decision) string {
	var out strings.Builder
	status := d.status()
	for _, c := range status.Conditions {
		fmt.Fprintf(&out, "%s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, warning := range status.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", warning)
	}
	return out.String()
}

// TestPinnedPrecedence records, for every combination of sources, the value of each field and its source.
func TestPinnedPrecedence(t *testing.T) {
	var out strings.Builder
	for combination := range 48 {
		spec, configs, reports := combination&1 != 0, combination&2 != 0, combination&4 != 0
		protocol := []assignment.Protocol{"", assignment.Classic, assignment.Streams}[combination/16]
		described := combination&8 != 0
		if described && !reports {
			continue
		}
		fmt.Fprintf(&out, "== spec %t configs %t reports %t topology %t group %q\n", spec, configs, reports, described, protocol)
		out.WriteString(pinnedFacts(precedenceFixture(spec, configs, reports, described, protocol).decide(t).Plan.resolved.planned))
	}
	golden.Compare(t, filepath.Join("pinned", "precedence.golden"), out.String())
}

// precedenceFixture gives each source a value of its own.
func precedenceFixture(spec, configs, reports, described bool, protocol assignment.Protocol) fixture {
	g := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi")), pods: testobjects.RunningPods(3, "1Gi")}
	if reports {
		g = reported(func(r *report.Report) {
			client := &r.Clients[0]
			client.Settings = []report.Setting{
				{Name: "max.warmup.replicas", Value: "6", By: report.SetByApp}, {Name: "max.poll.records", Value: "700", By: report.SetByPlan},
				{Name: "buffer.memory", Value: "9437184", By: report.SetByApp},
			}
			client.Brokers, client.StateDir.Type, client.Records.AverageSize = 5, "tmpfs", 300
			r.JVM.Metaspace, r.JVM.CodeCache, r.JVM.HeapLive = 150<<20, 130<<20, 100<<20
			r.Allocator = report.Allocator{Name: "jemalloc"}
			if described {
				client.Topology = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [in, more])\n      --> KSTREAM-AGGREGATE-0000000001\n" +
					"    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [totals])\n      --> none\n      <-- s\n"
			}
		})
	}
	g.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) {
		if spec {
			app.Spec.Streams = v1alpha1.StreamsSpec{
				Version: "3.6.0", Threads: 7, StandbyReplicas: new(int32(3)), WarmupReplicas: new(int32(4)), ProcessingGuarantee: v1alpha1.ExactlyOnceV2,
				GroupProtocol: v1alpha1.StreamsProtocol, Records: v1alpha1.RecordsSpec{AverageSize: testobjects.Memory("2Ki"), LargestSize: testobjects.Memory("3Mi")},
				Subtopologies: []v1alpha1.Subtopology{{ID: new(int32(0)), Tasks: 30, WrittenPartitions: new(int32(9)), InputPartitionsPerTask: 3}},
				Stores:        []v1alpha1.Store{{Name: "totals", Kind: v1alpha1.StoreSession, Subtopology: new(int32(0)), RetentionSeconds: 7200}},
			}
			app.Spec.JVM.ApplicationHeap, app.Spec.JVM.Version = testobjects.Memory("77Mi"), 17
		}
		if configs {
			app.Spec.Streams.Configs = []v1alpha1.Config{
				{Name: "num.stream.threads", Value: "2"}, {Name: "num.standby.replicas", Value: "2"}, {Name: "max.poll.records", Value: "900"},
				{Name: "buffer.memory", Value: "5242880"},
			}
		}
	})
	if protocol != "" {
		g.group = groupOf(5, 5, 5)
		g.group.Protocol, g.group.Standbys, g.group.VersionHint, g.group.Brokers = protocol, new(int32(1)), "3.9", 4
		g.group.Processes[1].Threads = 4
		changelog := &g.group.Subtopologies[0].Changelogs[0]
		changelog.Kind, changelog.Retention = assignment.Window, time.Hour
	}
	return g
}

func pinnedFacts(w memplan.Workload) string {
	var out strings.Builder
	c := &w.Clients
	fmt.Fprintf(&out, "version %v %v | protocol %v %v | guarantee %v %v\n", w.Version.Value, w.Version.From, w.Protocol.Value, w.Protocol.From, w.Guarantee.Value, w.Guarantee.From)
	fmt.Fprintf(&out, "threads %v %v | standbys %v %v | warm-ups %v %v | brokers %v %v | TLS %v %v\n", w.Threads.Value, w.Threads.From, w.Standbys.Value, w.Standbys.From,
		w.WarmUps.Value, w.WarmUps.From, w.Brokers.Value, w.Brokers.From, w.TLS.Value, w.TLS.From)
	fmt.Fprintf(&out, "average %v %v | largest %v %v | buffer.memory %v %v | max.poll.records %v %v\n", w.Records.Average.Value, w.Records.Average.From,
		w.Records.Largest.Value, w.Records.Largest.From, c.Producer.BufferMemory.Value, c.Producer.BufferMemory.From, c.Main.MaxPollRecords.Value, c.Main.MaxPollRecords.From)
	fmt.Fprintf(&out, "metaspace %v %v | code cache %v %v | live heap %v %v | Java %v %v | allocator %v %v | in memory %t persistent %t | bounded %t\n",
		w.JVM.Metaspace.Value, w.JVM.Metaspace.From, w.JVM.CodeCache.Value, w.JVM.CodeCache.From, w.Application.LiveSet.Value, w.Application.LiveSet.From,
		w.JVM.Version.Value, w.JVM.Version.From, w.Allocator.Value, w.Allocator.From, w.StateDir.InMemory, w.StateDir.Persistent, w.Bounded)
	for _, s := range w.Subtopologies {
		fmt.Fprintf(&out, "subtopology %s tasks %d inputs %d written %d\n", s.ID, s.Tasks, s.InputPartitions, s.WrittenPartitions)
		stores := slices.Clone(s.Stores)
		for _, store := range stores {
			fmt.Fprintf(&out, "  store %s kind %d retention %d %v in memory %t cached %t unlogged %t\n", store.Name, store.Kind, store.RetentionMs.Value, store.RetentionMs.From,
				store.InMemory, store.Caching, store.Unlogged)
		}
	}
	return out.String()
}
