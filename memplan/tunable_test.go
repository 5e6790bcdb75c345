// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// derivable is a bounded application that left everything at its default: 8 tasks of 2 input partitions and a cached store.
func derivable() Workload {
	w := keyValueApp(8)
	w.Bounded = true
	w.Subtopologies[0].InputPartitions = 2
	w.Records = Records{Average: Known(Bytes(1000), Measured), Largest: Known(64*KiB, Measured), LargestBatch: Known(256*KiB, Measured)}
	w.JVM.HeapMode = HeapPlanned
	return w
}

// derivedValues are the configs of Kafka Streams that a plan chose.
func derivedValues(p Plan) map[string]int64 {
	values := map[string]int64{}
	for _, c := range p.Configs {
		if name, ok := strings.CutPrefix(c.Name, "streams."); ok {
			values[name], _ = strconv.ParseInt(c.Value, 10, 64)
		}
	}
	return values
}

func TestALoadThatFitsAtDefaultsKeepsThem(t *testing.T) {
	if got := derivedValues(PlanFor(derivable(), onlyCap(1, 8, 8), DefaultPolicy(), 4*GiB)); len(got) > 0 {
		t.Errorf("derived %v without a deficit", got)
	}
}

// Every limit from one that holds the defaults down to the required one fits.
func TestConfigsAreLoweredToTheirFloorsAndNoFurther(t *testing.T) {
	w, load, policy := derivable(), onlyCap(2, 8, 8), DefaultPolicy()
	required := RequiredLimit(w, load, policy)
	lowest := map[string]int64{
		"restore.consumer.fetch.max.bytes": int64(512 * KiB), "main.consumer.fetch.max.bytes": int64(MiB),
		"restore.consumer.max.partition.fetch.bytes": int64(256 * KiB), "main.consumer.max.partition.fetch.bytes": int64(256 * KiB),
		"buffered.records.per.partition": 100, "main.consumer.max.poll.records": 100,
		"buffer.memory": int64(MiB), "statestore.cache.max.bytes": int64(8 * 64 * KiB),
	}
	seen := map[string]bool{}
	for limit := required + 512*MiB; limit >= required; limit -= MiB {
		plan := PlanFor(w, load, policy, limit)
		if !plan.Fits() {
			t.Fatalf("%v does not fit, %v is required", limit, required)
		}
		for name, value := range derivedValues(plan) {
			seen[name] = true
			if value < lowest[name] {
				t.Errorf("under %v %s is %d, below its floor of %d", limit, name, value, lowest[name])
			}
		}
	}
	for name := range lowest {
		if !seen[name] && !strings.HasPrefix(name, "restore.consumer.fetch") && !strings.HasPrefix(name, "main.consumer.fetch") {
			t.Errorf("%s is never lowered, not even at the required limit", name)
		}
	}
	plan := PlanFor(w, load, policy, required-MiB)
	if plan.Fits() || plan.Deficits[len(plan.Deficits)-1].Missing <= 0 || plan.RequiredLimit != required {
		t.Errorf("below the required limit: verdict %d, deficits %v, required %v", plan.Verdict, plan.Deficits, plan.RequiredLimit)
	}
}

func TestRequiredLimitAtDefaults(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		load, policy := g.load(w), g.policy()
		plan := PlanFor(w, load, policy, g.anyLimit())
		if plan.RequiredLimitAtDefaults < plan.RequiredLimit {
			t.Fatalf("required at defaults %v, required %v", plan.RequiredLimitAtDefaults, plan.RequiredLimit)
		}
		if plan.RequiredLimitAtDefaults == MaxBytes {
			return // no limit holds
		}
		if r := newProcess(&w, load, policy).atDefaults().at(plan.RequiredLimitAtDefaults); !r.fits() {
			return // a heap that no limit cures
		}
		for name, value := range derivedValues(PlanFor(w, load, policy, plan.RequiredLimitAtDefaults)) {
			if name != recordCacheConfig.nameIn(effectiveVersion(w.Version)) || Bytes(value) < w.Clients.RecordCache.Value {
				t.Errorf("%s is lowered to %d under %v, which holds the defaults", name, value, plan.RequiredLimitAtDefaults)
			}
		}
	})
}

func TestFetchSizesGoFirst(t *testing.T) {
	w, load, policy := derivable(), onlyCap(4, 8, 8), DefaultPolicy()
	w.Subtopologies[0].InputPartitions = 20
	w.Records.LargestBatch = Known(2*MiB, Measured)
	full := newProcess(&w, load, policy).atDefaults().requiredLimit(0)
	got := derivedValues(PlanFor(w, load, policy, full-10*MiB))
	for name := range got {
		if !strings.Contains(name, "fetch.max.bytes") {
			t.Errorf("10 MiB too little, and %v is derived: fetches alone would do", got)
		}
	}
	if len(got) == 0 {
		t.Error("10 MiB too little, and nothing is derived")
	}
}

func TestConfigsOfTheApplicationAreNotLowered(t *testing.T) {
	w, load := derivable(), onlyCap(1, 8, 8)
	if err := w.ApplyProperties(map[string]string{
		"fetch.max.bytes": "52428800", "max.partition.fetch.bytes": "1048576", "buffered.records.per.partition": "1000",
		"max.poll.records": "1000", "buffer.memory": "33554432", "cache.max.bytes.buffering": "0",
	}); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []Bytes{400 * MiB, GiB, 4 * GiB} {
		if got := derivedValues(PlanFor(w, load, DefaultPolicy(), limit)); len(got) > 0 {
			t.Errorf("under %v %v is derived, the application set all of it", limit, got)
		}
	}
	own := derivable()
	own.Clients.Main.MaxPartitionFetchBytes = Known(8*MiB, App)
	if got := derivedValues(PlanFor(own, load, DefaultPolicy(), 100*MiB))["main.consumer.fetch.max.bytes"]; got != int64(8*MiB) {
		t.Errorf("fetch.max.bytes %d, want the 8 MiB that the application fetches of one partition", got)
	}
}

func TestOnlyBoundedProcessesWithAKnownTopologyAreTuned(t *testing.T) {
	unbounded, unknown := derivable(), derivable()
	unbounded.Bounded, unknown.Subtopologies = false, nil
	for name, w := range map[string]Workload{"default RocksDB": unbounded, "no topology": unknown} {
		if got := derivedValues(PlanFor(w, onlyCap(1, 8, 8), DefaultPolicy(), 300*MiB)); len(got) > 0 {
			t.Errorf("%s: %v is derived", name, got)
		}
	}
}

func TestTheRecordCacheTakesTheRestOfTheHeap(t *testing.T) {
	w, load := derivable(), onlyCap(1, 8, 8)
	w.JVM.HeapMode, w.JVM.MaxHeap = HeapFixed, Known(GiB, App)
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(256*MiB, App), Known(96*MiB, App)
	cases := map[string]struct {
		change func(*Workload)
		want   int64 // 0: stays as it is
	}{
		"up to half of the memtables":        {change: func(*Workload) {}, want: int64(48 * MiB)},
		"not while the live set is unknown":  {change: func(w *Workload) { w.Application.LiveSet.From = Assumed }},
		"not if the application set it":      {change: func(w *Workload) { w.Clients.RecordCache.From = App }},
		"never from 0":                       {change: func(w *Workload) { w.Clients.RecordCache.Value = 0 }},
		"not without a store that is cached": {change: func(w *Workload) { w.Subtopologies[0].Stores[0].Caching = false }},
		"not beyond the heap":                {change: func(w *Workload) { w.Application.LiveSet.Value = 560 * MiB }, want: int64(27 * MiB)},
		"some, where the heap has a little":  {change: func(w *Workload) { w.Application.LiveSet.Value = 500 * MiB }, want: int64(48 * MiB)},
		"nothing, where memtables have less": {change: func(w *Workload) { w.RocksDB.WriteBufferLimit = Known(16*MiB, App) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := w
			w.Subtopologies = slices.Clone(w.Subtopologies)
			w.Subtopologies[0].Stores = slices.Clone(w.Subtopologies[0].Stores)
			w.Application.LiveSet = Known(100*MiB, Measured)
			c.change(&w)
			plan := PlanFor(w, load, DefaultPolicy(), 4*GiB)
			if got := derivedValues(plan)["statestore.cache.max.bytes"]; got != c.want {
				t.Errorf("record cache %d, want %d", got, c.want)
			}
			requireVerdict(t, plan, Fits)
		})
	}
}

func TestRecordCacheByItsName(t *testing.T) {
	for _, v := range []Version{{3, 3, 2}, {3, 4, 0}} {
		w := with(derivable(), version(v.Major, v.Minor, v.Patch))
		want := map[bool]string{true: "cache.max.bytes.buffering", false: "statestore.cache.max.bytes"}[before(v, Version{3, 4, 0})]
		if got := derivedValues(PlanFor(w, onlyCap(1, 8, 8), DefaultPolicy(), 100*MiB)); got[want] == 0 {
			t.Errorf("%v: %v, want %s in it", v, got, want)
		}
	}
}

func TestMemtable(t *testing.T) {
	cases := map[string]struct {
		manager Bytes
		from    Provenance
		want    Bytes
	}{
		"room for RocksDB's default":       {manager: 64 * MiB, from: Default, want: 0},
		"a quarter of the manager":         {manager: 40 * MiB, from: Default, want: 10 * MiB},
		"in whole MiB":                     {manager: 30 * MiB, from: Default, want: 7 * MiB},
		"not below the floor":              {manager: 1 * MiB, from: Default, want: 1 * MiB},
		"the application's own size stays": {manager: 40 * MiB, from: App, want: 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := derivable()
			w.RocksDB.WriteBuffer.From = c.from
			if got := newProcess(&w, onlyCap(1, 8, 8), DefaultPolicy()).memtable(c.manager); got != c.want {
				t.Errorf("write_buffer_size %v, want %v", got, c.want)
			}
		})
	}
	w := derivable()
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(64*MiB, App), Known(40*MiB, App)
	plan := PlanFor(w, onlyCap(1, 8, 8), DefaultPolicy(), 2*GiB)
	if !slices.Contains(plan.Configs, Config{Kind: Property, Name: "rocksdb.write.buffer.bytes", Value: "10485760", From: App}) {
		t.Errorf("configs %v have no write buffer of 10 MiB", plan.Configs)
	}
}

func TestDerivedValuesKeepFloorsAndDefaults(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w := g.workload()
		w.Bounded = true
		load, policy := g.load(w), g.policy()
		p := newProcess(&w, load, policy)
		plan := PlanFor(w, load, policy, g.anyLimit())
		got := derivedValues(plan)
		for i := range tunableSettings {
			k := &tunableSettings[i]
			name, was, floor := k.planName(p.version), k.number.get(&w, k.role), k.floor(p.client, k.role)
			value, ok := got[name]
			if !ok {
				continue
			}
			if was.From != Default || value < min(floor, was.Value) {
				t.Errorf("%s is %d; it was %d (%v), its floor is %d", name, value, was.Value, was.From, floor)
			}
			if value >= was.Value && name != recordCacheConfig.nameIn(p.version) {
				t.Errorf("%s was raised from %d to %d", name, was.Value, value)
			}
		}
	})
}
