// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/memplan"
)

// What the pods report comes before what brokers show, and that before what the spec says: field by field. What the application has set
// is a fact; what the plan has set is not, or the plan would take its own choice for the application's will.

// appSettings are the settings that the application itself has set, as the newest process reports them; nil without a report.
func (o *observation) appSettings() map[string]string {
	c := o.reports.client(o.reports.newest())
	if c == nil {
		return nil
	}
	settings := map[string]string{}
	for _, s := range c.Settings {
		if s.By == report.SetByApp {
			settings[s.Name] = s.Value
		}
	}
	return settings
}

// propertiesOf are the application's properties: those that it reports, else those that the spec names.
func (o *observation) propertiesOf() map[string]string {
	if settings := o.appSettings(); settings != nil {
		return settings
	}
	properties := map[string]string{}
	for _, c := range o.app.Spec.Streams.Configs {
		properties[c.Name] = c.Value
	}
	return properties
}

// reportedVersion is the version of Kafka Streams that runs; of several the oldest.
func (o *observation) reportedVersion() (memplan.Fact[memplan.Version], bool) {
	if !o.reports.usable {
		return memplan.Fact[memplan.Version]{}, false
	}
	version, err := memplan.ParseVersion(o.reports.group.Group.VersionHint)
	return memplan.Known(version, memplan.Measured), err == nil
}

// applyReports takes what the processes say of themselves.
func applyReports(w *memplan.Workload, obs *observation) {
	if measured := obs.measured.AverageRecord; measured != nil {
		w.Records.Average = believed(w.Records.Average, measured, obs.measured.Age)
	}
	reported := obs.reports.newest()
	if reported == nil {
		return
	}
	if obs.reports.usable {
		w.TLS = memplan.Known(obs.reports.group.Group.TLS, memplan.Measured)
	}
	if c := obs.reports.client(reported); c != nil && c.StateDir.Type != "" {
		w.StateDir.InMemory = c.StateDir.Type == "tmpfs" || c.StateDir.Type == "ramfs"
	}
	switch name := reported.Allocator.Name; {
	case name == "glibc" && reported.Allocator.Arenas > 0:
		w.Allocator = memplan.Known(memplan.GlibcArenas, memplan.Measured)
	case name == "jemalloc":
		w.Allocator = memplan.Known(memplan.Jemalloc, memplan.Measured)
	case name == "musl":
		w.Allocator = memplan.Known(memplan.Musl, memplan.Measured)
	}
	if obs.app.Spec.Streams.OwnCaches != v1alpha1.OwnCachesReplace {
		w.RocksDB.OwnCache, w.RocksDB.OwnCaches = ownCaches(reported)
	}
}

// ownCaches is the capacity of the block caches that the application has kept: together where stores share them, else the largest, and
// each store has one.
func ownCaches(from *report.Report) (capacity memplan.Fact[memplan.Bytes], each bool) {
	caches := from.RocksDB.OwnCaches
	sum, largest := memplan.Bytes(0), memplan.Bytes(0)
	for _, c := range caches {
		sum, largest = sum.Add(memplan.Bytes(c.Capacity)), max(largest, memplan.Bytes(c.Capacity))
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

// reportedFlags are the flags with which the application sizes its JVM, in scripts and files that the pod template does not show. The
// flags that the plan itself sets are left out: in a report nobody can tell whose they are.
func (o *observation) reportedFlags() []string {
	reported := o.reports.newest()
	if reported == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(reported.JVM.Flags), func(flag string) bool {
		return strings.Contains(flag, "RAM") || strings.Contains(flag, "IgnoreUnrecognizedVMOptions")
	})
}

// applyReportedJVM takes what was measured of the JVM.
func applyReportedJVM(jvm *memplan.JVM, obs *observation) {
	if reported := obs.reports.newest(); reported != nil && reported.JVM.Version > 0 {
		jvm.Version = memplan.Known(reported.JVM.Version, memplan.Measured)
	}
	jvm.Metaspace = believed(jvm.Metaspace, obs.measured.Metaspace, obs.measured.Age)
	jvm.CodeCache = believed(jvm.CodeCache, obs.measured.CodeCache, obs.measured.Age)
}

// growth is the part by which a region that is smaller than assumed may still grow: paths that a warm process has not run yet. A choice.
const growthNum, growthDen = 5, 4

// believed is what counts of a region of which something was measured. More than assumed counts at once, and as it is; less only from a
// warm process, and with a part for growth.
func believed(assumed memplan.Fact[memplan.Bytes], measured *resource.Quantity, age v1alpha1.ProcessAge) memplan.Fact[memplan.Bytes] {
	if measured == nil || assumed.From == memplan.App {
		return assumed
	}
	value := memplan.Bytes(measured.Value())
	switch {
	case value >= assumed.Value:
		return memplan.Known(value, memplan.Measured)
	case age == v1alpha1.ProcessWarmedUp:
		return memplan.Known(min(assumed.Value, value.Scale(growthNum, growthDen)), memplan.Measured)
	}
	return assumed
}

// warmAfter is how long a process must have run for its figures to be believed where they are below what is assumed: its code is
// compiled, its classes are loaded, and its day has begun. A choice.
const warmAfter = time.Hour

// measuredStep is the step to which measured regions are rounded up, so that a plan does not follow each small figure. A choice: less
// than a hundredth of the limit of an ordinary pod.
const measuredStep = 8 << 20

// measuredOf brings what was measured up to date: the most that any pod of the newest image has reported. What another image took says
// nothing of this one.
func measuredOf(obs *observation) v1alpha1.MeasuredRegions {
	measured := *obs.app.Status.Measured.DeepCopy()
	newest := obs.newestImage()
	if newest == "" {
		return measured
	}
	if measured.ImageID != newest {
		measured = v1alpha1.MeasuredRegions{ImageID: newest, Age: v1alpha1.ProcessWarmingUp}
	}
	for i := range obs.pods {
		p := &obs.pods[i]
		reported := obs.reports.of(p)
		if reported == nil || p.imageID != newest || !plausible(reported, p) {
			continue
		}
		raise(&measured.Metaspace, steps(reported.JVM.Metaspace))
		raise(&measured.CodeCache, steps(reported.JVM.CodeCache))
		if live := reported.JVM.HeapLive; live > 0 {
			raise(&measured.ApplicationHeap, steps(max(1, live-recordCache(reported))))
		}
		for _, c := range reported.Clients {
			if size := c.Records.AverageSize; size > 0 && size <= maxRecord {
				raise(&measured.AverageRecord, int64(1)<<bits.Len64(uint64(size-1))) // to a power of two
			}
		}
		if obs.now.Sub(time.UnixMilli(reported.Started)) >= warmAfter {
			measured.Age = v1alpha1.ProcessWarmedUp
		}
	}
	return measured
}

// plausible tells whether the regions of a process fit into the limit of its pod. Whoever reports more is not believed.
func plausible(reported *report.Report, p *podFacts) bool {
	limit := p.effectiveLimit()
	sum := memplan.Bytes(reported.JVM.Metaspace).Add(memplan.Bytes(reported.JVM.CodeCache)).Add(memplan.Bytes(reported.JVM.HeapLive))
	return limit == nil || int64(sum) <= limit.Value()
}

// maxRecord is the largest record that is believed: a producer holds a request in one array.
const maxRecord = 1 << 31

// newestImage is the digest that the process that was started last has reported from; "" for none.
func (o *observation) newestImage() string {
	image, started := "", int64(0)
	for i := range o.pods {
		p := &o.pods[i]
		if reported := o.reports.of(p); reported != nil && reported.Started > started && p.imageID != "" && len(p.imageID) <= maxImage {
			image, started = p.imageID, reported.Started
		}
	}
	return image
}

func steps(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return int64(memplan.Bytes(bytes).Add(measuredStep-1) / measuredStep * measuredStep)
}

func raise(quantityOf **resource.Quantity, bytes int64) {
	if bytes > 0 && (*quantityOf == nil || (*quantityOf).Value() < bytes) {
		*quantityOf = new(quantity(bytes))
	}
}

// recordCache is the capacity of the record caches of a process: what lives in them is planned for by itself. Each of their bytes takes
// more than one on the heap, so what is left over is not too little once they are full.
func recordCache(reported *report.Report) int64 {
	sum := memplan.Bytes(0)
	for i := range reported.Clients {
		properties := map[string]string{}
		for _, s := range reported.Clients[i].Settings {
			properties[s.Name] = s.Value
		}
		w := memplan.NewWorkload(memplan.Fact[memplan.Version]{})
		if err := w.ApplyProperties(properties); err != nil {
			continue // a fault in one of them is told where the plan is made
		}
		sum = sum.Add(max(0, w.Clients.RecordCache.Value))
	}
	return int64(sum)
}

// reportNotes is what a person should know of what the pods report.
func reportNotes(obs *observation) []string {
	var notes []string
	seen := map[string]bool{}
	for _, uid := range sortedKeys(obs.reports.pods) {
		answer := obs.reports.pods[uid]
		if told(answer.Err) {
			notes = append(notes, fmt.Sprintf("pod %s: %s", answer.Pod, answer.Err.Message()))
		}
		if answer.Report == nil {
			continue
		}
		if p := findPod(obs.pods, answer.Pod); p != nil && !plausible(answer.Report, p) {
			notes = append(notes, fmt.Sprintf("pod %s reports more memory than its limit: its figures are not counted", answer.Pod))
		}
		for _, finding := range answer.Report.Findings {
			if !seen[finding.Reason] { // one is enough: the others are alike, or in that pod's own log
				seen[finding.Reason] = true
				notes = append(notes, fmt.Sprintf("agent of %s: %s: %s", answer.Pod, finding.Reason, finding.Message))
			}
		}
	}
	if obs.reports.group.Guessed {
		notes = append(notes, fmt.Sprintf("the pods run several applications; %s is planned for, as it has most tasks: say in `kafka.applicationId` which is meant",
			obs.reports.group.Group.ApplicationID))
	}
	if obs.topology != nil && obs.reports.usable {
		for _, a := range obs.topology.pieces.Assumptions {
			if !settled(obs.reports.group.Group.Subtopologies, a.Text) {
				notes = append(notes, "topology, "+a.String())
			}
		}
	}
	return notes
}

// settled tells whether an assumption on the kind of a store is none any more, since the store was seen open. How many segments one with
// windows has shows only its changelog topic.
func settled(subtopologies []assignment.Subtopology, assumption string) bool {
	for _, s := range subtopologies {
		for _, open := range s.Stores {
			windowed := open.Kind == assignment.Window || open.Kind == assignment.JoinWindow
			if !windowed && strings.HasPrefix(assumption, "store "+open.Name+" counts as ") {
				return true
			}
		}
	}
	return false
}

// furtherClients are the other applications whose clients run in the same processes: each with the most that it may have in one of them
// after the losses.
func furtherClients(obs *observation, losses int) []memplan.Client {
	var clients []memplan.Client
	for i := range obs.reports.group.Further {
		further := &obs.reports.group.Further[i]
		version, err := memplan.ParseVersion(further.Group.VersionHint)
		fact := memplan.Known(version, memplan.Measured)
		if err != nil {
			fact = memplan.Fact[memplan.Version]{}
		}
		w := memplan.NewWorkload(fact)
		applyGroup(&w, &further.Group)
		for _, s := range further.Group.Subtopologies {
			w.Subtopologies = append(w.Subtopologies, subtopologyOf(s))
		}
		var spread memplan.Assignment
		for _, load := range further.Loads {
			spread.Pods = append(spread.Pods, podOf(load))
		}
		if len(spread.Pods) == 0 {
			continue
		}
		load, _ := heaviestLoad(w, spread, memplan.DefaultPolicy(), min(losses, len(spread.Pods)-1))
		clients = append(clients, memplan.Client{ApplicationID: further.Group.ApplicationID, Workload: w, Load: load})
	}
	return clients
}
