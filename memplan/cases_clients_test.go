// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"strings"
	"testing"
)

func requireNotContains(t *testing.T, text, part string) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%q has %q in it", text, part)
	}
}

func TestCaseC22APercentageScalesBothSides(t *testing.T) {
	fixed, percent := with(plainStores(4, 1), flags(t, "-Xmx4g -Xms4g")), with(plainStores(4, 1), flags(t, "-XX:MaxRAMPercentage=25"))
	for limit, want := range map[Bytes]Bytes{4 * GiB: 3 * GiB, 8 * GiB: 6 * GiB} {
		requireBytes(t, "beside the heap", limit-percent.JVM.HeapUnder(limit), want)
		requireBytes(t, "beside the fixed heap", limit-fixed.JVM.HeapUnder(limit), limit-4*GiB)
	}
	requireVerdict(t, PlanFor(fixed, onlyCap(1, 4, 4), DefaultPolicy(), 4*GiB), LimitTooSmall)
	requireVerdict(t, PlanFor(percent, onlyCap(1, 4, 4), DefaultPolicy(), 4*GiB), Fits)
}

func TestCaseC32InMemoryStoresHaveNoBound(t *testing.T) {
	w := with(plainStores(4, 1), flags(t, "-Xmx256m"))
	w.Records.Average = Known(Bytes(100), Measured)
	w.Subtopologies[0].Stores[0].InMemory = true
	plan := PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 2*GiB)
	requireBytes(t, "of no known size", plan.line(RegionInMemoryStores).Bound, 0)
	requireWarning(t, plan, "stores of unknown size on the heap (1) are not counted; set their size")
	w.Subtopologies[0].Stores[0].Size = Known(30*MiB, Spec)
	plan = PlanFor(w, onlyCap(1, 4, 4), DefaultPolicy(), 2*GiB)
	requireBytes(t, "of a size that was given", plan.line(RegionInMemoryStores).Bound, 4*(30*MiB).Scale(230, 100))
	requireBytes(t, "RocksDB", rocksDB(plan), 0)
	requireVerdict(t, plan, HeapTooSmall)
}

// C41 and C47: restoring takes heap beside the steady state, and a plan keeps it at all times.
func TestCaseC41RestoringTakesHeap(t *testing.T) {
	w := with(plainStores(48, 2), exactBatch, flags(t, "-Xmx320m"))
	w.Records.Average = Known(Bytes(1000), Measured)
	load := onlyCap(2, 48, 48)
	plan := PlanFor(w, load, DefaultPolicy(), 16*GiB)
	// 96 changelogs of 1 MiB, and before 4.0 the responses that they came in; a poll of 1000 records for each of 2 threads
	requireBytes(t, "restore consumers", plan.line(RegionRestoreConsumer).Bound, 2*96*MiB)
	requireBytes(t, "restore buffers", plan.line(RegionRestoreRecords).Bound, 2*1000*1200)
	requireBytes(t, "write batches", plan.line(RegionRestoreBatches).Bound, 2*1000*1000)
	requireVerdict(t, plan, HeapTooSmall)
	steady := DefaultPolicy()
	steady.Pins = map[Region]Bytes{RegionRestoreConsumer: 0, RegionRestoreRecords: 0, RegionMainConsumer: 32 * MiB, RegionRecordQueues: 64 * MiB}
	requireVerdict(t, PlanFor(w, load, steady, 16*GiB), Fits)
	w.Version = Known(Version{4, 2, 1}, App)
	requireBytes(t, "restore consumers from 4.0 on", PlanFor(w, load, DefaultPolicy(), 16*GiB).line(RegionRestoreConsumer).Bound, 96*MiB)
}

func TestCaseC45ScalingOutAddsAPodThatRestores(t *testing.T) {
	w := plainStores(12, 1)
	a := evenly(w, 2, 1) // 6 tasks each; 4 of them are to move to the new pod
	a.Pods = append(a.Pods, Pod{Name: "new", Threads: 1, Target: Tasks{Active: append(tasksOf(0, 2), tasksOf(6, 8)...)}})
	pod := func(name string) Bytes {
		return rocksDB(PlanFor(w, observed(w, a, name), DefaultPolicy(), 4*GiB))
	}
	requireBytes(t, "the new pod", pod("new"), 4*98*MiB)
	requireBytes(t, "an old pod, which is not smaller yet", pod("pod-0"), 6*98*MiB)
}

func TestCaseC50PlanForTheFewestPods(t *testing.T) {
	w := plainStores(12, 1)
	load := loadAfter(w, evenly(w, 3, 1), "pod-0", 2) // from 3 replicas down to 1
	if load.Active != 12 {
		t.Errorf("%d active tasks on the last pod, want all 12", load.Active)
	}
	requireBytes(t, "RocksDB", rocksDB(PlanFor(w, load, DefaultPolicy(), 4*GiB)), 12*98*MiB)
	requireBytes(t, "heap of a JVM that sees the node", new(NewJVM()).HeapUnder(16*GiB), 4*GiB)
}

func TestCaseC53SplitBatches(t *testing.T) {
	w := with(release(2, 5, 0), codec(Zstd, 3))
	w.Clients.Producer.BatchSize, w.Clients.Producer.MaxRequestSize = Known(64*KiB, App), Known(20_118*64*KiB, App)
	before := PlanFor(w, Load{Threads: 1}, DefaultPolicy(), 32*GiB)
	requireBytes(t, "heap", before.line(RegionSplitBatches).Bound, 20_118*(65_624+131_653))
	if native, total := before.line(RegionSplitStreams).Bound, 22*GiB-7_177*MiB; native < total || native > total.Scale(102, 100) {
		t.Errorf("streams of %d, closing them freed %d", native, total)
	}
	after := PlanFor(with(w, version(2, 6, 0)), Load{Threads: 1}, DefaultPolicy(), 32*GiB)
	requireBytes(t, "buffers, which closing keeps", after.line(RegionSplitBatches).Bound, 20_118*65_624)
	requireBytes(t, "streams that are closed", after.line(RegionSplitStreams).Bound, 0)
	requireWarning(t, before, "KAFKA-9703")
}

func TestCaseC114ARaiseHelpsOutsideTheHeap(t *testing.T) {
	w := plainStores(4, 1)
	w.JVM.HeapMode, w.JVM.MaxHeap = HeapFixed, Known(w.JVM.HeapUnder(2*GiB), Measured) // the heap at its start
	before, after := PlanFor(w, onlyCap(1, 4, 4), onlyNative(nil), 2*GiB), PlanFor(w, onlyCap(1, 4, 4), onlyNative(nil), 4*GiB)
	requireBytes(t, "heap", after.Heap, before.Heap)
	requireBytes(t, "more for the native side", after.Split.Native-before.Split.Native, 2*GiB)
}

func TestCaseC128TheHeapIsTooSmall(t *testing.T) {
	w := release(3, 9, 1)
	w.Application.LiveSet = Known(1400*MiB-100*MiB, Measured)
	requireBytes(t, "heap under 4 GiB", w.JVM.HeapUnder(4*GiB), GiB)
	requireBytes(t, "heap under 8 GiB", w.JVM.HeapUnder(8*GiB), 2*GiB)
	plan := PlanFor(w, Load{Threads: 1}, DefaultPolicy(), 4*GiB)
	if plan.Fits() || plan.Deficits[0].Pool != Heap {
		t.Fatalf("verdict %d, deficits %v; the heap is too small", plan.Verdict, plan.Deficits)
	}
	const want = "the limit has room for it: set MaxRAMPercentage to 49, a larger limit is not needed"
	if got := plan.Deficits[0].Message; !strings.Contains(got, want) {
		t.Errorf("deficit %q, want %q in it", got, want)
	}
	w.JVM.MaxRAMPercentage = Known(49.0, App)
	requireVerdict(t, PlanFor(w, Load{Threads: 1}, DefaultPolicy(), 4*GiB), Fits)
}

// The table of default heaps that OpenJDK 17 and 25 print for -XX:MaxRAM.
func TestCasesOfDefaultHeaps(t *testing.T) {
	for limit, want := range map[Bytes]Bytes{
		128 * MiB: 67_108_864, 192 * MiB: 100_663_296, 256 * MiB: 132_120_576, 300 * MiB: 132_120_576, 384 * MiB: 132_120_576,
		512 * MiB: 134_217_728, GiB: 256 * MiB, 2 * GiB: 512 * MiB, 4 * GiB: 1024 * MiB,
	} {
		requireBytes(t, "default heap under "+limit.String(), new(NewJVM()).HeapUnder(limit), want)
	}
	w := with(release(3, 9, 1), flags(t, "-XX:MaxRAMPercentage=75"))
	requireBytes(t, "75 % of 256 MiB", w.JVM.HeapUnder(256*MiB), 192*MiB)
	requireBytes(t, "75 % of 128 MiB, where MinRAMPercentage rules", w.JVM.HeapUnder(128*MiB), 64*MiB)
	requireBytes(t, "75 % of 2G", w.JVM.HeapUnder(2_000_000_000), 1_501_560_832)
}
