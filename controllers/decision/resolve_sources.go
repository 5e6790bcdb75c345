// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// sourcesOf reads every source but the measured figures, which depend on the others. The version of Kafka Streams is also returned, because
// the defaults depend on it.
func sourcesOf(f *Facts) (map[sourceName]*source, memplan.Fact[memplan.Version], error) {
	spec, specErr := specSource(&f.App.Spec, f.Reports.Client != nil)
	group, groupErr := groupSource(f.Assignment.Group)
	sources := map[sourceName]*source{
		sourceReports:  reportSource(f),
		sourceBroker:   brokerSource(f.Assignment.Group),
		sourceGroup:    group,
		sourceSpec:     spec,
		sourceTemplate: templateSource(f.Container),
	}
	var w memplan.Workload
	applySources(&w, sources)
	switch {
	case sources[sourceReports].version != nil:
		return sources, w.Version, nil
	case spec.version != nil:
		return sources, w.Version, specErr
	default:
		return sources, w.Version, groupErr
	}
}

// reportedSettings returns the settings that the application itself made, as the newest process reports them; nil without a report. Settings
// made by the plan do not count: the plan would take its own choice for the application's.
func reportedSettings(reports *Reports) map[string]string {
	if reports.Client == nil {
		return nil
	}
	settings := map[string]string{}
	for _, s := range reports.Client.Settings {
		if s.By == report.SetByApp {
			settings[s.Name] = s.Value
		}
	}
	return settings
}

// reportSource reads the reports.
func reportSource(f *Facts) *source {
	s := &source{}
	r := f.Reports.Newest
	if r == nil {
		return s
	}
	if f.Reports.Usable {
		s.tls = new(memplan.Known(f.Reports.Group.Group.TLS, memplan.Measured))
		if version, err := memplan.ParseVersion(f.Reports.Group.Group.VersionHint); err == nil {
			s.version = new(memplan.Known(version, memplan.Measured))
		}
	}
	if r.JVM.Version > 0 {
		s.javaVersion = new(memplan.Known(r.JVM.Version, memplan.Measured))
	}
	if c := f.Reports.Client; c != nil && c.StateDir.Type != "" {
		s.stateInMemory = new(c.StateDir.Type == "tmpfs" || c.StateDir.Type == "ramfs")
	}
	s.allocator = reportedAllocator(r.Allocator)
	if f.App.Spec.Streams.OwnCaches != v1alpha1.OwnCachesReplace {
		capacity, perStore := ownCaches(r.RocksDB.OwnCaches)
		s.ownCache = &capacity
		s.ownCachePerStore = &perStore
	}
	return s
}

// reportedAllocator returns the allocator of a process; nil if it is unknown.
func reportedAllocator(a report.Allocator) *memplan.Fact[memplan.Allocator] {
	switch {
	case a.Name == "glibc" && a.Arenas > 0:
		return new(memplan.Known(memplan.GlibcArenas, memplan.Measured))
	case a.Name == "glibc":
		return new(memplan.Known(memplan.Glibc, memplan.Measured))
	case a.Name == "jemalloc":
		return new(memplan.Known(memplan.Jemalloc, memplan.Measured))
	case a.Name == "musl":
		return new(memplan.Known(memplan.Musl, memplan.Measured))
	}
	return nil
}

// ownCaches returns the capacity of the block caches that the application keeps: their sum where stores share them, else the largest, of
// which each store has one.
func ownCaches(caches []report.Cache) (capacity memplan.Fact[memplan.Bytes], perStore bool) {
	var sum, largest memplan.Bytes
	for _, c := range caches {
		sum = sum.Add(memplan.Bytes(c.Capacity))
		largest = max(largest, memplan.Bytes(c.Capacity))
	}
	shared := slices.ContainsFunc(caches, func(c report.Cache) bool { return c.Stores > 1 })
	switch {
	case sum <= 0:
		return memplan.Fact[memplan.Bytes]{}, false
	case shared || len(caches) == 1:
		return memplan.Known(sum, memplan.Measured), false
	}
	return memplan.Known(largest, memplan.Measured), true
}

// brokerSource reads the config of a streams group.
func brokerSource(group *assignment.Group) *source {
	s := &source{}
	if group == nil || group.Protocol != assignment.Streams {
		return s
	}
	s.warmUps = new(memplan.Known(0, memplan.Default)) // the broker's assignor has no warm-ups up to 4.4
	if group.Standbys != nil {
		s.standbys = new(memplan.Known(int(*group.Standbys), memplan.Measured))
	}
	return s
}

// groupSource reads the members of a group.
func groupSource(group *assignment.Group) (*source, error) {
	s := &source{}
	if group == nil {
		return s, nil
	}
	protocol := memplan.Classic
	if group.Protocol == assignment.Streams {
		protocol = memplan.Streams
	}
	s.protocol = new(memplan.Known(protocol, memplan.Measured))
	if group.Standbys != nil {
		s.standbys = new(memplan.Known(int(*group.Standbys), memplan.Measured))
	}
	if group.Brokers > 0 {
		s.brokers = new(memplan.Known(group.Brokers, memplan.Measured))
	}
	s.tls = new(memplan.Known(group.TLS, memplan.Assumed)) // that of the operator's own connections
	threads := 0
	for _, p := range group.Processes {
		threads = max(threads, p.Threads)
	}
	if threads > 0 {
		s.threads = new(memplan.Known(threads, memplan.Measured))
	}
	if group.VersionHint == "" {
		return s, nil
	}
	version, err := memplan.ParseVersion(group.VersionHint)
	s.version = new(memplan.Known(version, memplan.Assumed))
	return s, err
}

var protocols = map[v1alpha1.GroupProtocol]memplan.Protocol{
	v1alpha1.ClassicProtocol: memplan.Classic, v1alpha1.StreamsProtocol: memplan.Streams,
}

var guarantees = map[v1alpha1.ProcessingGuarantee]memplan.Guarantee{
	v1alpha1.AtLeastOnce: memplan.AtLeastOnce, v1alpha1.ExactlyOnce: memplan.ExactlyOnceV1, v1alpha1.ExactlyOnceV2: memplan.ExactlyOnceV2,
}

// specSource reads the spec. settingsReported: the application reports its settings. A setting that it does not report is then at Kafka's
// default, so the spec's settings are dropped.
func specSource(spec *v1alpha1.StreamAppSpec, settingsReported bool) (*source, error) {
	s := &source{
		averageRecord:     specBytes(spec.Streams.Records.AverageSize),
		largestRecord:     specBytes(spec.Streams.Records.LargestSize),
		largestBatch:      specBytes(spec.Streams.Records.LargestBatchSize),
		liveHeap:          specBytes(spec.JVM.ApplicationHeap),
		applicationNative: specBytes(spec.JVM.ApplicationNative),
	}
	if spec.JVM.Version > 0 {
		s.javaVersion = new(memplan.Known(int(spec.JVM.Version), memplan.Spec))
	}
	if !settingsReported {
		s.readSettings(&spec.Streams)
	}
	if spec.Streams.Version == "" {
		return s, nil
	}
	version, err := memplan.ParseVersion(spec.Streams.Version)
	s.version = new(memplan.Known(version, memplan.Spec))
	return s, err
}

// readSettings reads the fields of the spec that stand for settings of the application.
func (s *source) readSettings(streams *v1alpha1.StreamsSpec) {
	if streams.Threads > 0 {
		s.threads = new(memplan.Known(int(streams.Threads), memplan.Spec))
	}
	if streams.StandbyReplicas != nil {
		s.standbys = new(memplan.Known(int(*streams.StandbyReplicas), memplan.Spec))
	}
	if streams.WarmupReplicas != nil {
		s.warmUps = new(memplan.Known(int(*streams.WarmupReplicas), memplan.Spec))
	}
	if g, ok := guarantees[streams.ProcessingGuarantee]; ok {
		s.guarantee = new(memplan.Known(g, memplan.Spec))
	}
	if p, ok := protocols[streams.GroupProtocol]; ok {
		s.protocol = new(memplan.Known(p, memplan.Spec))
	}
}

// specBytes returns an amount of the spec; nil if it is not set.
func specBytes(q *resource.Quantity) *memplan.Fact[memplan.Bytes] {
	if q == nil {
		return nil
	}
	return new(memplan.Known(memplan.Bytes(q.Value()), memplan.Spec))
}

// templateSource reads the pod template.
func templateSource(c *Container) *source {
	if c == nil {
		return &source{allocator: new(memplan.Known(memplan.Glibc, memplan.Assumed))}
	}
	s := &source{stateInMemory: &c.StateInMemory, statePersistent: &c.StatePersistent}
	if c.CPULimit != nil {
		s.cpus = new(memplan.Known(int(math.Ceil(c.CPULimit.AsApproximateFloat64())), memplan.App))
	}
	_, arenasSet := c.Env["MALLOC_ARENA_MAX"]
	s.allocator = new(memplan.Known(memplan.GlibcArenas, memplan.Derived)) // the injection sets MALLOC_ARENA_MAX where the user did not
	if c.Options.HasEnvFrom && !arenasSet {
		// The injection leaves it out, because envFrom may set it.
		s.allocator = new(memplan.Known(memplan.Glibc, memplan.Assumed))
	}
	if strings.Contains(c.Env["LD_PRELOAD"], "jemalloc") {
		// The library may be missing in the image, or built for another processor: the loader then ignores it.
		s.allocator = new(memplan.Known(memplan.Jemalloc, memplan.Assumed))
	}
	return s
}
