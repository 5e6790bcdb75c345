// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strconv"

	"streamweir.dev/streamweir/memplan"
)

// startCold makes the plan one for the first pod of a cold start, which runs every task.
func (p *planning) startCold() {
	load := memplan.ColdStart(p.workload, 0)
	p.worst = []memplan.Load{load}
	p.need = int64(memplan.RequiredLimit(p.workload, load, p.policy))
	p.needNow, p.cold = p.need, true
}

// answerOf puts together what there is to tell of a plan.
func answerOf(obs *observation, lost losses, p *planning) (*Answer, error) {
	want := decide(obs, lost, p)
	plan := memplan.PlanFor(p.workload, p.worst[0], p.policy, memplan.Bytes(want.limit))
	if err := memplan.Check(p.workload, p.policy, plan.Limit); err != nil {
		return nil, err
	}
	files := publishedOf(plan)
	answer := &Answer{
		Namespace: obs.app.Namespace, StreamApp: obs.app.Name, WorkloadKind: obs.workload.kind, Workload: obs.workload.name, Container: obs.container.name,
		Verdict: VerdictDoesNotFit, Instances: lost.instances, Tasks: p.tasks,
		PodFailuresTolerated: p.survives,
		Limit:                new(quantity(files.limit)), Heap: new(quantity(files.heap)), Expected: new(quantity(files.expected)),
		Load:  Load{Threads: plan.Load.Threads, Active: plan.Load.Active, Total: plan.Load.Total},
		Lines: files.lines, Settings: files.settings, Warnings: append(p.notes, plan.Warnings...),
		Pods: podAnswers(obs, p), Facts: factsOf(&p.workload), Text: plan.Explain(),
	}
	if want.limit == obs.container.limit.Value() {
		answer.Limit = obs.container.limit // as the template writes it
	}
	required := min(lost.tolerated, max(0, lost.instances-1))
	if !p.cold {
		answer.PodFailuresToTolerate = &required
	}
	if plan.Fits() && (p.cold || p.survives >= required) {
		answer.Verdict = VerdictFits
	}
	if p.need < neverFits {
		answer.RequiredLimit = new(quantity(p.need))
	}
	if p.coldStart > 0 && p.coldStart < neverFits {
		answer.ColdStart = new(quantity(p.coldStart))
	}
	for _, shortage := range plan.Deficits {
		answer.Missing = append(answer.Missing, shortage.Message)
	}
	if want.capped != "" {
		answer.Missing = append(answer.Missing, want.capped)
	}
	if want.blocked.found() {
		answer.Warnings = append(answer.Warnings, "the operator cannot inject a plan: "+want.blocked.message)
	}
	if obs.topology != nil {
		for _, a := range obs.topology.pieces.Assumptions {
			answer.Assumptions = append(answer.Assumptions, "topology, "+a.String())
		}
	}
	answer.Start = startOf(obs, want, files)
	return answer, nil
}

// startOf is what the operator would inject.
func startOf(obs *observation, want *desired, files published) Start {
	start := Start{Plan: files.file}
	if request := requestFor(obs, want.limit, files.expected); request > 0 {
		start.Request = new(quantity(request))
	}
	if len(files.file.Options) > 0 {
		start.OptionsVariable = string(optionsVariable(obs.app))
		start.OwnOptions = optionsText(obs, start.OptionsVariable)
	}
	_, set := obs.container.env["MALLOC_ARENA_MAX"]
	start.LimitArenas = !set
	return start
}

// factsOf lists what a plan is made of, with what a person can say better.
func factsOf(w *memplan.Workload) []Fact {
	c := &w.Clients
	facts := []Fact{
		{Name: "version of kafka-streams", Value: versionText(w.Version.Value), Source: sourceOf(w.Version.From), OverrideWith: "`streams.version`"},
		number("stream threads", w.Threads, "`num.stream.threads`, or `streams.threads`"),
		number("standbys", w.Standbys, "`num.standby.replicas`, or `streams.standbyReplicas`"),
		number("warm-ups", w.WarmUps, "`max.warmup.replicas`, or `streams.warmupReplicas`"),
		named("group protocol", w.Protocol, map[memplan.Protocol]string{memplan.Classic: "classic", memplan.Streams: "streams"}, "`streams.groupProtocol`"),
		named("processing guarantee", w.Guarantee, map[memplan.Guarantee]string{
			memplan.AtLeastOnce: "at_least_once", memplan.ExactlyOnceV1: "exactly_once", memplan.ExactlyOnceV2: "exactly_once_v2",
		}, "`streams.processingGuarantee`"),
		number("brokers", w.Brokers, "the brokers to ask"),
		named("TLS", w.TLS, map[bool]string{true: "yes", false: "no"}, "`security.protocol`"),
		amount("average record", w.Records.Average, "`streams.records.averageSize`"),
		amount("largest record", w.Records.Largest, "`streams.records.largestSize`"),
		amount("largest batch", w.Records.LargestBatch, "`streams.records.largestBatchSize`"),
		amount("buffer.memory", c.Producer.BufferMemory, ""),
		amount("batch.size", c.Producer.BatchSize, ""),
		{Name: "compression.type", Value: string(c.Producer.Compression.Value), Source: sourceOf(c.Producer.Compression.From)},
		amount("fetch.max.bytes", c.Main.FetchMaxBytes, ""),
		amount("max.partition.fetch.bytes", c.Main.MaxPartitionFetchBytes, ""),
		number("max.poll.records", c.Main.MaxPollRecords, ""),
		number("buffered.records.per.partition", c.BufferedRecordsPerPartition, ""),
		amount("record cache", c.RecordCache, "`statestore.cache.max.bytes`"),
		amount("application's own live heap", w.Application.LiveSet, "`jvm.applicationHeap`"),
		amount("application's own native memory", w.Application.Native, "`jvm.applicationNative`"),
		named("allocator", w.Allocator, map[memplan.Allocator]string{
			memplan.Glibc: "glibc", memplan.GlibcArenas: "glibc with MALLOC_ARENA_MAX", memplan.Jemalloc: "jemalloc", memplan.Musl: "musl",
		}, "the container's env"),
		named("state directory", memplan.Known(w.StateDir, memplan.App), map[memplan.StateDir]string{
			{}: "on disk, gone with the pod", {Persistent: true}: "on disk, and stays", {InMemory: true}: "in memory", {InMemory: true, Persistent: true}: "in memory",
		}, "the container's volumes"),
		named("size of the heap", memplan.Known(w.JVM.HeapMode, memplan.App), map[memplan.HeapMode]string{
			memplan.HeapPercent: "the JVM's own percentage", memplan.HeapFixed: w.JVM.MaxHeap.Value.String(), memplan.HeapPlanned: "planned",
		}, "the JVM's flags"),
		number("CPUs", w.JVM.CPUs, "the container's CPU limit"),
		{Name: "version of the JVM", Value: jvmVersionText(w.JVM.Version.Value), Source: sourceOf(w.JVM.Version.From), OverrideWith: "`jvm.version`"},
	}
	return facts
}

func versionText(v memplan.Version) string {
	if v == (memplan.Version{}) {
		return "unknown, counts as the newest"
	}
	return v.String()
}

func jvmVersionText(version int) string {
	if version == 0 {
		return "unknown"
	}
	return strconv.Itoa(version)
}

func number(name string, fact memplan.Fact[int], say string) Fact {
	return Fact{Name: name, Value: strconv.Itoa(fact.Value), Source: sourceOf(fact.From), OverrideWith: say}
}

func amount(name string, fact memplan.Fact[memplan.Bytes], say string) Fact {
	return Fact{Name: name, Value: fact.Value.String(), Source: sourceOf(fact.From), OverrideWith: say}
}

func named[T comparable](name string, fact memplan.Fact[T], names map[T]string, say string) Fact {
	value, known := names[fact.Value]
	if !known {
		value = fmt.Sprint(fact.Value)
	}
	return Fact{Name: name, Value: value, Source: sourceOf(fact.From), OverrideWith: say}
}
