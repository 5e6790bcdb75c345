// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"slices"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/memplan"
)

// sourceName names a source of facts about the application.
type sourceName string

// The sources. Below all of them are the settings that the application itself made, and Kafka's defaults: a field without any
// source keeps its value of memplan.Workload.ApplyProperties.
const (
	// sourceReports are the reports of the pods' agents.
	sourceReports sourceName = "reports"
	// sourceMeasured are the figures of earlier reports, as far as they are effective.
	sourceMeasured sourceName = "measured"
	// sourceBroker is the config of the group on the broker (streams protocol only).
	sourceBroker sourceName = "broker"
	// sourceGroup are the members of the group, as the reports or Kafka show them.
	sourceGroup sourceName = "group"
	// sourceSpec is the spec of the StreamApp.
	sourceSpec sourceName = "spec"
	// sourceTemplate is the pod template.
	sourceTemplate sourceName = "template"
)

// source is one source of facts. A field that it does not have is nil.
type source struct {
	version                             *memplan.Fact[memplan.Version]
	protocol                            *memplan.Fact[memplan.Protocol]
	guarantee                           *memplan.Fact[memplan.Guarantee]
	threads, standbys, warmUps, brokers *memplan.Fact[int]
	tls                                 *memplan.Fact[bool]
	averageRecord, largestRecord        *memplan.Fact[memplan.Bytes]
	largestBatch                        *memplan.Fact[memplan.Bytes]
	liveHeap, applicationNative         *memplan.Fact[memplan.Bytes]
	metaspace, codeCache                *memplan.Fact[memplan.Bytes]
	javaVersion, cpus                   *memplan.Fact[int]
	allocator                           *memplan.Fact[memplan.Allocator]
	stateInMemory, statePersistent      *bool
	ownCache                            *memplan.Fact[memplan.Bytes]
	ownCachePerStore                    *bool
}

// rule names the sources of one field, best first.
type rule struct {
	field string
	order []sourceName
	// reason explains an order that differs from that of the constants above.
	reason string
	apply  func(*memplan.Workload, *source) bool
}

// from makes a rule: to is the field of the workload, in is the field of a source.
func from[T any](field string, to func(*memplan.Workload) *T, in func(*source) *T, reason string, order ...sourceName) rule {
	return rule{field: field, order: order, reason: reason, apply: func(w *memplan.Workload, s *source) bool {
		value := in(s)
		if value != nil {
			*to(w) = *value
		}
		return value != nil
	}}
}

// precedence is the order of the sources for each field.
var precedence = []rule{
	from("version", func(w *memplan.Workload) *memplan.Fact[memplan.Version] { return &w.Version },
		func(s *source) *memplan.Fact[memplan.Version] { return s.version },
		"the members of a Kafka group only show the oldest version that they can have", sourceReports, sourceSpec, sourceGroup),
	from("protocol", func(w *memplan.Workload) *memplan.Fact[memplan.Protocol] { return &w.Protocol },
		func(s *source) *memplan.Fact[memplan.Protocol] { return s.protocol }, "", sourceGroup, sourceSpec),
	from("guarantee", func(w *memplan.Workload) *memplan.Fact[memplan.Guarantee] { return &w.Guarantee },
		func(s *source) *memplan.Fact[memplan.Guarantee] { return s.guarantee }, "", sourceSpec),
	from("threads", func(w *memplan.Workload) *memplan.Fact[int] { return &w.Threads },
		func(s *source) *memplan.Fact[int] { return s.threads }, "", sourceGroup, sourceSpec),
	from("standbys", func(w *memplan.Workload) *memplan.Fact[int] { return &w.Standbys },
		func(s *source) *memplan.Fact[int] { return s.standbys },
		"a classic group shows no more standbys than it has processes for", sourceBroker, sourceSpec, sourceGroup),
	from("warm-ups", func(w *memplan.Workload) *memplan.Fact[int] { return &w.WarmUps },
		func(s *source) *memplan.Fact[int] { return s.warmUps }, "", sourceBroker, sourceSpec),
	from("brokers", func(w *memplan.Workload) *memplan.Fact[int] { return &w.Brokers },
		func(s *source) *memplan.Fact[int] { return s.brokers }, "", sourceGroup),
	from("TLS", func(w *memplan.Workload) *memplan.Fact[bool] { return &w.TLS },
		func(s *source) *memplan.Fact[bool] { return s.tls }, "", sourceReports, sourceGroup),
	from("average record", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.Records.Average },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.averageRecord }, "", sourceMeasured, sourceSpec),
	from("largest record", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.Records.Largest },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.largestRecord }, "", sourceSpec),
	from("largest batch", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.Records.LargestBatch },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.largestBatch }, "", sourceSpec),
	from("live heap of the application", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.Application.LiveSet },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.liveHeap },
		"the spec reserves heap for a peak that no report has shown yet", sourceSpec, sourceMeasured),
	from("native memory of the application", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.Application.Native },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.applicationNative }, "", sourceSpec),
	from("metaspace", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.JVM.Metaspace },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.metaspace }, "", sourceMeasured),
	from("code cache", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.JVM.CodeCache },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.codeCache }, "", sourceMeasured),
	from("Java version", func(w *memplan.Workload) *memplan.Fact[int] { return &w.JVM.Version },
		func(s *source) *memplan.Fact[int] { return s.javaVersion }, "", sourceReports, sourceSpec),
	from("CPUs", func(w *memplan.Workload) *memplan.Fact[int] { return &w.JVM.CPUs },
		func(s *source) *memplan.Fact[int] { return s.cpus }, "", sourceTemplate),
	from("allocator", func(w *memplan.Workload) *memplan.Fact[memplan.Allocator] { return &w.Allocator },
		func(s *source) *memplan.Fact[memplan.Allocator] { return s.allocator }, "", sourceReports, sourceTemplate),
	from("state directory in memory", func(w *memplan.Workload) *bool { return &w.StateDir.InMemory },
		func(s *source) *bool { return s.stateInMemory }, "", sourceReports, sourceTemplate),
	from("persistent state directory", func(w *memplan.Workload) *bool { return &w.StateDir.Persistent },
		func(s *source) *bool { return s.statePersistent }, "", sourceTemplate),
	from("the application's own block cache", func(w *memplan.Workload) *memplan.Fact[memplan.Bytes] { return &w.RocksDB.OwnCache },
		func(s *source) *memplan.Fact[memplan.Bytes] { return s.ownCache }, "", sourceReports),
	from("own block cache per store", func(w *memplan.Workload) *bool { return &w.RocksDB.OwnCaches },
		func(s *source) *bool { return s.ownCachePerStore }, "", sourceReports),
}

// apply sets every field from its best source.
func applySources(w *memplan.Workload, sources map[sourceName]*source) {
	for _, r := range precedence {
		for _, name := range r.order {
			if s := sources[name]; s != nil && r.apply(w, s) {
				break
			}
		}
	}
}

// application is the resolved application: the workload in each kind of pod, and the notes on its facts.
type application struct {
	planned, target memplan.Workload
	running         map[memplan.PodKind]memplan.Workload
	neighbours      []memplan.Neighbour
	// topology is the described topology; nil without a description.
	topology *describedTopology
	// notes are facts that the user should know, invalid are contradicting flags and bad values of properties.
	notes, invalid []string
}

// resolveApplication resolves the application from all sources. The result is a new value; no source is changed.
func resolveApplication(f *Facts) application {
	var app application
	var topologyErr error
	app.topology, topologyErr = describeTopology(f)
	w, invalid := resolveWorkload(f, app.topology)
	app.planned = w
	app.invalid = append(invalid, errorTexts(topologyErr)...)
	app.target = w
	app.target.Bounded = w.Bounded || f.AgentConfigMap != ""
	app.running = runningVariants(f, w)
	app.neighbours = neighboursOf(&f.Reports)
	app.notes = append(specNotes(f, &w), reportNotes(f, app.topology)...)
	return app
}

// resolveWorkload resolves the workload in a new pod. The returned texts are invalid settings; the rest of the workload holds.
func resolveWorkload(f *Facts, topology *describedTopology) (memplan.Workload, []string) {
	sources, version, versionErr := sourcesOf(f)
	w := memplan.NewWorkload(version)
	settings := reportedSettings(&f.Reports)
	if settings == nil {
		settings = specProperties(f.App)
	}
	propertiesErr := w.ApplyProperties(settings)
	jvm, jvmErr := jvmOf(f)
	w.JVM = jvm
	sources[sourceMeasured] = measuredSource(f.Measured, &w, sources[sourceSpec])
	applySources(&w, sources)
	applyTopology(&w, &f.App.Spec.Streams, f.Assignment.Group, topology)
	w.Bounded = f.AssumeBounded || f.Proven
	if f.Container != nil && f.Container.Limit != nil && w.JVM.HeapMode == memplan.HeapPlanned {
		// The application is known to work with the heap of its template. The plan takes none of it away.
		w.JVM.LeastHeap = w.JVM.HeapUnder(memplan.Bytes(f.Container.Limit.Value()))
	}
	return w, errorTexts(versionErr, propertiesErr, jvmErr)
}

// specProperties returns the properties of the spec.
func specProperties(app *v1alpha1.StreamApp) map[string]string {
	properties := map[string]string{}
	for _, c := range app.Spec.Streams.Configs {
		properties[c.Name] = c.Value
	}
	return properties
}

// errorTexts flattens errors into sentences.
func errorTexts(errs ...error) []string {
	var texts []string
	for _, err := range errs {
		var joined interface{ Unwrap() []error }
		switch {
		case err == nil:
		case errors.As(err, &joined):
			texts = append(texts, errorTexts(joined.Unwrap()...)...)
		default:
			texts = append(texts, err.Error())
		}
	}
	return slices.Clip(texts)
}
