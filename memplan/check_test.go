// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	store := func(s Store) func(*Workload) {
		return func(w *Workload) { s.Name = "counts"; w.Subtopologies[0].Stores = []Store{s} }
	}
	pins := func(p *Policy) { p.Pins = map[Region]Bytes{RegionMetaspace: -1, RegionCollector: -2} }
	cases := map[string]struct {
		change func(*Workload)
		policy func(*Policy)
		limit  Bytes
		want   string // empty: nothing is wrong
	}{
		"a sound application":         {},
		"no limit":                    {limit: -1, want: "the limit is -1 B: it must be the memory limit of the container in bytes"},
		"a limit of 300m":             {limit: 1, want: "the limit is 1 B: no JVM starts with it; if it is in milli-bytes (300m), set 300Mi"},
		"a limit in MiB":              {limit: 512, want: "the limit is 512 B"},
		"negative headroom":           {policy: func(p *Policy) { p.HeadroomPercent = -10 }, want: "headroom is -10: it must be a percentage of 0 to 90"},
		"more than all as headroom":   {policy: func(p *Policy) { p.HeadroomPercent = 200 }, want: "headroom is 200: it must be a percentage of 0 to 90"},
		"a page cache of 100 %":       {policy: func(p *Policy) { p.PageCachePercent = 100 }, want: "page cache is 100: it must be a percentage of 0 to 90"},
		"a negative page cache":       {policy: func(p *Policy) { p.PageCacheFloor = -1 }, want: "page-cache floor is -1: it must be at least 0"},
		"fewer failures than none":    {policy: func(p *Policy) { p.PodFailures = -1 }, want: "pod failures to tolerate is -1: it must be at least 0"},
		"negative pins, in order":     {policy: pins, want: "the pin of collector is -2 B: it must not be negative\nthe pin of metaspace is -1 B: it must not be negative"},
		"no threads":                  {change: func(w *Workload) { w.Threads = Known(0, App) }, want: "num.stream.threads is 0: it must be at least 1"},
		"negative standbys":           {change: func(w *Workload) { w.Standbys = Known(-1, App) }, want: "num.standby.replicas is -1: it must be at least 0"},
		"no brokers":                  {change: func(w *Workload) { w.Brokers = Known(0, Spec) }, want: "brokers is 0: it must be at least 1"},
		"a poll of nothing":           {change: func(w *Workload) { w.Clients.Restore.MaxPollRecords = Known(0, App) }, want: "max.poll.records of the restore consumer is 0: it must be at least 1"},
		"a poll of no global records": {change: func(w *Workload) { w.Clients.Global.MaxPollRecords = Known(0, App) }, want: "max.poll.records of the global consumer is 0: it must be at least 1"},
		"a send buffer below -1":      {change: func(w *Workload) { w.Clients.Producer.SendBuffer = Known(Bytes(-2), App) }, want: "send.buffer.bytes is -2: it must be at least -1"},
		"no warm-ups":                 {change: func(w *Workload) { w.WarmUps = Known(0, Default) }},
		"a negative record":           {change: func(w *Workload) { w.Records.Average = Known(Bytes(-5), Spec) }, want: "the average record is -5: it must be at least 0"},
		"a negative record cache":     {change: func(w *Workload) { w.Clients.RecordCache = Known(Bytes(-1), App) }, want: "statestore.cache.max.bytes is -1: it must be at least 0"},
		"memtables beyond the cache": {change: func(w *Workload) {
			w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(64*MiB, App), Known(65*MiB, App)
		}, want: "the write buffer manager of 65 MiB is larger than the shared cache of 64 MiB, which includes it: lower it"},
		"no percentage":            {change: func(w *Workload) { w.JVM.MaxRAMPercentage = Known(math.NaN(), App) }, want: "MaxRAMPercentage is NaN: it must be a percentage of 0 to 100"},
		"more than all of the RAM": {change: func(w *Workload) { w.JVM.MinRAMPercentage = Known(120.0, App) }, want: "MinRAMPercentage is 120: it must be a percentage of 0 to 100"},
		"a heap of bytes":          {change: func(w *Workload) { w.JVM.HeapMode, w.JVM.MaxHeap = HeapFixed, Known(Bytes(512), App) }, want: "the heap of 512 B is below the smallest heap of a JVM: -Xmx must be at least 2m"},
		"a subtopology twice":      {change: func(w *Workload) { w.Subtopologies = append(w.Subtopologies, w.Subtopologies[0]) }, want: "duplicate subtopology 0: each has a unique id"},
		"negative tasks":           {change: func(w *Workload) { w.Subtopologies[0].Tasks = -3 }, want: "subtopology 0: the number of tasks is -3: it must be 0 to 2147483647"},
		"absurd input partitions":  {change: func(w *Workload) { w.Subtopologies[0].InputPartitions = math.MaxInt }, want: "subtopology 0: the number of input partitions is 9223372036854775807"},
		"negative written":         {change: func(w *Workload) { w.Subtopologies[0].WrittenPartitions = -1 }, want: "subtopology 0: the number of written partitions is -1: it must be 0 to 2147483647"},
		"a store twice": {change: func(w *Workload) {
			w.Subtopologies[0].Stores = append(w.Subtopologies[0].Stores, w.Subtopologies[0].Stores[0])
		}, want: "subtopology 0: duplicate store counts: processors share a store, so it must be listed once"},
		"stores without names": {change: func(w *Workload) { w.Subtopologies[0].Stores = make([]Store, 2) }},
		"an unknown kind":      {change: store(Store{Kind: 42}), want: "subtopology 0: store counts has the unknown kind 42"},
		"a negative retention": {change: store(Store{Kind: Window, RetentionMs: Known(int64(-1), Spec)}), want: "subtopology 0: store counts: retention in ms is -1: it must be at least 0"},
		"a negative interval":  {change: store(Store{Kind: Window, SegmentIntervalMs: Known(int64(-1), Spec)}), want: "segment interval in ms is -1"},
		"a negative size":      {change: store(Store{Size: Known(Bytes(-1), Spec)}), want: "subtopology 0: store counts: size is -1: it must be at least 0"},
		"a negative suppress":  {change: store(Store{Kind: Suppress, MaxSuppress: Known(Bytes(-1), Spec)}), want: "maxBytes of suppress is -1"},
		"a million segments":   {change: store(Store{Kind: Window, RetentionMs: Known(int64(1<<40), Spec), SegmentIntervalMs: Known(int64(1), Spec)}), want: "more than 1048576 segments: the segment interval of 1 ms must be longer for a retention of 1099511627776 ms"},
		"another client":       {change: func(w *Workload) { w.Others = []Client{{ApplicationID: "billing", Workload: keyValueApp(1)}} }},
		"another client's numbers": {change: func(w *Workload) {
			w.Others = []Client{{ApplicationID: "billing", Workload: with(keyValueApp(1), func(w *Workload) { w.Threads.Value = 0 })}}
		}, want: "billing: num.stream.threads is 0: it must be at least 1"},
		"another client without id": {change: func(w *Workload) { w.Others = []Client{{Workload: keyValueApp(1)}} }, want: `the application id "" of another client must not be empty, and must be unique`},
		"two clients of one id": {change: func(w *Workload) {
			w.Others = []Client{{ApplicationID: "a", Workload: keyValueApp(1)}, {ApplicationID: "a", Workload: keyValueApp(1)}}
		}, want: `the application id "a" of another client`},
		"a global store too": {change: func(w *Workload) { w.GlobalStores = []Store{{Name: "all", Kind: 99}} }, want: "subtopology global: store all has the unknown kind 99"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, policy := keyValueApp(4), DefaultPolicy()
			if c.change != nil {
				c.change(&w)
			}
			if c.policy != nil {
				c.policy(&policy)
			}
			limit := max(c.limit, GiB)
			if c.limit != 0 {
				limit = c.limit
			}
			err := Check(w, policy, limit)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			warnings := strings.Join(PlanFor(w, onlyCap(1, 4, 4), policy, limit).Warnings, "\n")
			if err != nil && !strings.Contains(warnings, err.Error()) {
				t.Errorf("the plan's warnings %q lack it", warnings)
			}
		})
	}
}

func TestSetterWarnings(t *testing.T) {
	own := func(w *Workload) { w.RocksDB.Setter = Known("com.example.Setter", App) }
	requireWarning(t, PlanFor(with(keyValueApp(1), own), onlyCap(1, 1, 1), DefaultPolicy(), GiB), "rocksdb.config.setter com.example.Setter may change the caches")
	requireWarning(t, PlanFor(with(keyValueApp(1), own, version(2, 2, 0)), onlyCap(1, 1, 1), DefaultPolicy(), GiB), "before 2.3 the objects of a setter are never closed")
	sized := func(w *Workload) { w.RocksDB.BlockCache = Known(128*MiB, App) }
	for _, warning := range PlanFor(with(keyValueApp(1), own, sized), onlyCap(1, 1, 1), DefaultPolicy(), GiB).Warnings {
		if strings.Contains(warning, "rocksdb.config.setter") {
			t.Errorf("the sizes are known, and yet: %s", warning)
		}
	}
}
