// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "streamweir.dev/streamweir/memplan"

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
