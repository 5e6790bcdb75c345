// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import "slices"

// newestVersion is the newest version of Kafka Streams with a known use of memory.
var newestVersion = Version{Major: 4, Minor: 4}

// effectiveVersion returns the version to plan with: an unknown version counts as the newest.
func effectiveVersion(v Fact[Version]) Version {
	if v.Value == (Version{}) {
		return newestVersion
	}
	return v.Value
}

// feature is a difference between versions of Kafka Streams, its clients and its RocksDB that affects memory.
type feature uint8

// The features, in the order of their versions.
const (
	// splitStreamsClosed: the parts of a split batch close their compressors (KAFKA-9703, apache/kafka #8286).
	splitStreamsClosed feature = iota
	// zstdBuffered: ZstdCompression has a buffer of 16 KiB before the output array, which comes from a pool (KAFKA-10470, apache/kafka #9499).
	zstdBuffered
	// outerJoinList: the shared store of both sides of an outer join is a list; in 3.0 it was a window store (KAFKA-10847).
	outerJoinList
	// stateUpdater: a separate thread restores and reads changelogs (__state.updater.enabled__, on by default).
	stateUpdater
	// fetchSkipsBuffered: a consumer sends no fetch to a broker while partitions of it are buffered (KAFKA-17182).
	fetchSkipsBuffered
	// eosV1Gone: exactly_once and exactly_once_beta are no longer valid (StreamsConfig).
	eosV1Gone
	// compactionReadahead: RocksDB 9 and newer read 2 MiB ahead of each input file (compaction_readahead_size, 0 in 7.9.2).
	compactionReadahead
	// cacheKeepsSource: an entry of the record cache holds key and value of its source record as well (sourceRawKey and sourceRawValue of
	// its context; KIP-1034). Read in the bytecode of 4.0.1 and 4.1.1.
	cacheKeepsSource
	// sparseFilters: new files have no filter on the bottom level (setOptimizeFiltersForHits, Kafka commit a83bfda39b).
	sparseFilters
	// offsetsFamily: each instance has a column family for offsets, and memtables are no longer flushed at commits (KIP-1035).
	offsetsFamily
	// transactionalStores: enable.transactional.statestores (KIP-892).
	transactionalStores
)

// since is the first version with each feature.
var since = [...]Version{
	splitStreamsClosed:  {2, 6, 0},
	zstdBuffered:        {2, 8, 0},
	outerJoinList:       {3, 1, 0},
	stateUpdater:        {3, 8, 0},
	fetchSkipsBuffered:  {4, 0, 0},
	eosV1Gone:           {4, 0, 0},
	compactionReadahead: {4, 0, 0},
	cacheKeepsSource:    {4, 1, 0},
	sparseFilters:       {4, 2, 0},
	offsetsFamily:       {4, 3, 0},
	transactionalStores: {4, 4, 0},
}

// hasFeature reports whether a version has a feature.
func hasFeature(v Version, f feature) bool { return !before(v, since[f]) }

// asIn returns the workload as it runs in a version: the shared store of outer joins may be a window store, with segments.
func (w *Workload) asIn(v Version) *Workload {
	if hasFeature(v, outerJoinList) {
		return w
	}
	changed := *w
	changed.Subtopologies = slices.Clone(w.Subtopologies)
	for i := range changed.Subtopologies {
		stores := slices.Clone(changed.Subtopologies[i].Stores)
		for j := range stores {
			if stores[j].Kind == OuterJoinList {
				stores[j].Kind = JoinWindow
			}
		}
		changed.Subtopologies[i].Stores = stores
	}
	return &changed
}

// leak is memory that some versions lose, or let grow without bound. No plan includes it: no limit is large enough.
type leak struct {
	// from is the first version with the leak, fixed the first version of its line without it.
	from, fixed  Version
	issue, cause string
	// applies reports whether the workload is affected; nil: every workload is.
	applies func(*Workload) bool
}

// leaks are the known leaks and unbounded growths of Kafka Streams and its clients in released versions, by the Apache Kafka issue.
// It lacks the leaks that were found before a release (KAFKA-14324, KAFKA-14432 and KAFKA-16089).
var leaks = []leak{
	{fixed: Version{2, 2, 0}, issue: "KAFKA-7660", cause: "the metrics of each closed task stay on the heap"},
	{fixed: Version{2, 3, 0}, issue: "KAFKA-8637 and KAFKA-8323", cause: "native memory leaks with each restore and each opened store"},
	{fixed: Version{2, 5, 0}, issue: "KAFKA-9700", cause: "compressed batches grow without bound", applies: compressed},
	{fixed: Version{2, 6, 0}, issue: "KAFKA-9703", cause: "a split batch keeps 0.3 MB of heap and 0.8 MB of native memory for each part", applies: zstd},
	{from: Version{2, 6, 0}, fixed: Version{2, 7, 0}, issue: "apache/kafka #9498", cause: "each closed store leaks the cache of its default options"},
	{fixed: Version{2, 8, 0}, issue: "KAFKA-12500", cause: "the cache of a closed stream thread leaks"},
	{from: Version{4, 0, 0}, fixed: Version{4, 2, 1}, issue: "KAFKA-20398", cause: "each replaced stream thread leaks a metrics reporter"},
	{from: Version{4, 1, 0}, fixed: Version{4, 1, 1}, issue: "KAFKA-19748", cause: "range scans, session and sliding windows and joins leak native memory"},
	{from: Version{4, 3, 0}, fixed: Version{4, 3, 1}, issue: "KAFKA-20616, KAFKA-20688 and KAFKA-20663", cause: "each opened store leaks native memory"},
	{from: Version{4, 0, 0}, fixed: Version{4, 3, 0}, issue: "KAFKA-17411 and KAFKA-19434",
		cause: "every task directory that is not empty is open from the start to the first assignment", applies: persistent},
}

func compressed(w *Workload) bool {
	return w.Clients.Producer.Compression.Value != NoCompression && w.Clients.Producer.Compression.Value != ""
}

func persistent(w *Workload) bool { return w.StateDir.Persistent }

func zstd(w *Workload) bool { return w.Clients.Producer.Compression.Value == Zstd }

// ofVersion adds warnings of known leaks of the version.
func (n *notes) ofVersion(w *Workload) {
	version := w.Version.Value
	if version == (Version{}) {
		return
	}
	for _, l := range leaks {
		affected := !before(version, l.from) && before(version, l.fixed)
		if affected && (l.applies == nil || l.applies(w)) {
			n.warn("Kafka Streams %v has %s: %s; upgrade to %v, no limit covers it", version, l.issue, l.cause, l.fixed)
		}
	}
}

// before reports whether a is older than b.
func before(a, b Version) bool { return a.Before(b.Major, b.Minor, b.Patch) }
