// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"strings"
	"testing"
)

// beside is a workload with another client of the same kind in its JVM.
func beside(w Workload, id string, load Load) Workload {
	other := w
	other.Others = nil
	w.Others = append(w.Others, Client{ApplicationID: id, Workload: other, Load: load})
	return w
}

// sumOf is the sum of all lines of a region.
func (p Plan) sumOf(region Region) Bytes {
	sum := Bytes(0)
	for _, l := range p.Lines {
		if l.Region == region {
			sum += l.Bound
		}
	}
	return sum
}

func TestClientsOfOneJVMAddUp(t *testing.T) {
	alone, load := keyValueApp(8), onlyCap(2, 4, 6)
	one, two := PlanFor(alone, load, DefaultPolicy(), 8*GiB), PlanFor(beside(alone, "billing", load), load, DefaultPolicy(), 8*GiB)
	for _, region := range []Region{
		RegionProducer, RegionMainConsumer, RegionRestoreConsumer, RegionRestoreRecords, RegionRecordQueues, RegionRecordCache,
		RegionDirectMemory, RegionSockets, RegionBlockCache, RegionMemtables, RegionStoreFixed, RegionIterators, RegionRestoreBatches,
	} {
		if got, want := two.sumOf(region), 2*one.sumOf(region); got != want {
			t.Errorf("%s of two clients is %v, want %v", region, got, want)
		}
	}
	for _, region := range []Region{RegionMetaspace, RegionCodeCache, RegionCompiler, RegionCompaction, RegionApplicationHeap, RegionCollector, RegionKernel, RegionPageCache} {
		if got, want := two.sumOf(region), one.sumOf(region); got != want {
			t.Errorf("%s of the process is %v with two clients, want %v", region, got, want)
		}
	}
	requireBytes(t, "stacks", two.sumOf(RegionThreadStacks), (2*(2*3+2)+28+4)*256*KiB)
	if !strings.Contains(two.Explain(), "block caches of billing") {
		t.Error("the explanation has no owner of the block caches")
	}
}

func TestClientsOfOneJVMShareTheCache(t *testing.T) {
	w := keyValueApp(40)
	w.Bounded = true
	w.RocksDB.SharedCache, w.RocksDB.WriteBufferLimit = Known(256*MiB, App), Known(64*MiB, App)
	load := onlyCap(1, 40, 40)
	plan := PlanFor(beside(w, "billing", load), load, DefaultPolicy(), 4*GiB)
	requireBytes(t, "shared cache", plan.sumOf(RegionBlockCache), 256*MiB)
	arena := func(p Plan) string {
		for _, c := range p.Configs {
			if c.Name == "rocksdb.arena.block.bytes" {
				return c.Value
			}
		}
		return ""
	}
	if got := arena(plan); got != "102400" { // 64 MiB / (4 x 2 clients x 40 stores x 2 column families), in steps of 4 KiB
		t.Errorf("arena block %s, want one for the stores of both clients", got)
	}
}

func TestPinsAreForTheProcess(t *testing.T) {
	policy := DefaultPolicy()
	policy.Pins = map[Region]Bytes{RegionProducer: 40 * MiB}
	load := onlyCap(1, 4, 4)
	plan := PlanFor(beside(keyValueApp(4), "billing", load), load, policy, 4*GiB)
	requireBytes(t, "producers", plan.sumOf(RegionProducer), 40*MiB)
}

func TestTheSplitIsThatOfThePlannedApplication(t *testing.T) {
	load := onlyCap(1, 4, 4)
	alone, both := PlanFor(keyValueApp(4), load, DefaultPolicy(), 4*GiB), PlanFor(beside(keyValueApp(4), "billing", load), load, DefaultPolicy(), 4*GiB)
	if alone.Split.Producer != both.Split.Producer || alone.Split.Buffer != both.Split.Buffer {
		t.Errorf("producer %v and buffer %v of a thread, alone %v and %v", both.Split.Producer, both.Split.Buffer, alone.Split.Producer, alone.Split.Buffer)
	}
	if both.Split.Process <= alone.Split.Process {
		t.Errorf("the process takes %v of the heap, alone %v", both.Split.Process, alone.Split.Process)
	}
}

func TestWarningsNameTheClient(t *testing.T) {
	load := onlyCap(1, 4, 4)
	w := beside(keyValueApp(4), "billing", load)
	w.Others[0].Workload.Clients.TransactionalStores = Known(true, App)
	w.Others[0].Workload.Clients.Uncommitted = Known(Bytes(-1), App)
	w.Others[0].Workload.Version = Known(Version{4, 4, 0}, App)
	requireWarning(t, PlanFor(w, load, DefaultPolicy(), 4*GiB), "billing: statestore.uncommitted.max.bytes is -1")
}

func TestAnotherClientNeverLowersTheRequiredLimit(t *testing.T) {
	forSeeds(t, func(t *testing.T, g generator) {
		w, other := g.workload(), g.workload()
		load, policy := g.load(w), g.policy()
		alone := RequiredLimit(w, load, policy)
		w.Others = []Client{{ApplicationID: "other", Workload: other, Load: g.load(other)}}
		if both := RequiredLimit(w, load, policy); both < alone {
			t.Errorf("required %v with another client, %v without", both, alone)
		}
		plan := PlanFor(w, load, policy, min(RequiredLimit(w, load, policy), 1<<50))
		if plan.Fits() && plan.Bound > plan.Limit-plan.Headroom {
			t.Errorf("fits, but %v of %v - %v are planned", plan.Bound, plan.Limit, plan.Headroom)
		}
	})
}
