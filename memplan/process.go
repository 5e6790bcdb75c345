// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// The regions of a JVM with Kafka Streams. The upper ends are bounds, the lower ends expected peaks.
const (
	// assumedMetaspace and assumedCodeCache are those of a large application (60 to 120 and 40 to 100 MiB in field reports). The expected
	// peaks are those of an application of Kafka Streams 4.4.0 and nothing else (docs/calibration.md; OpenJDK 17): 31 to 34 MiB of
	// metaspace, 18 to 22 of code. Symbols and the archive of shared classes count as metaspace.
	assumedMetaspace  = 120 * MiB
	expectedMetaspace = 48 * MiB
	assumedCodeCache  = 100 * MiB
	expectedCodeCache = 24 * MiB
	// sharedClasses are symbols and the resident part of the archive of shared classes: 7 and 10 MiB (OpenJDK 17, NMT and smaps). The JVM's
	// metaspace pool, which can be measured from inside, does not include them.
	sharedClasses = 20 * MiB
	// assumedCompiler is the peak of the JIT's arenas: measured 23.7 MB under a heavy compile load with 2 CPUs (OpenJDK 17, NMT), and 18 to
	// 22 MB alive in most heap profiles of a restore (docs/calibration.md).
	assumedCompiler  = 32 * MiB
	expectedCompiler = 20 * MiB
	// residentStack is the resident part of the stack of a Java thread (measured 45 KiB idle; up to 250 KiB).
	residentStack = 256 * KiB
	expectedStack = 64 * KiB
)

// The threads of a Kafka Streams process.
const (
	// threadsPerStreamThread are the stream thread, its state updater (3.8+) and the consumer's heartbeat or background thread. Each
	// producer has a network thread besides.
	threadsPerStreamThread = 3
	// threadsPerProcess are admin, cleanup, metrics and global thread, 4 of RocksDB (measured), and the JVM's own (a JVM with 2 CPUs
	// has 16 to 20).
	threadsPerProcess = 28
	// threadsPerClient are admin, cleanup, metrics and global thread of each further KafkaStreams client.
	threadsPerClient = 4
)

// Kernel memory that the cgroup counts.
const (
	// pageTableRatio: a page table entry of 8 B maps a page of 4 KiB (x86-64 and arm64).
	pageTableRatio = 512
	// kernelThread is a thread's kernel stack of 16 KiB (x86-64 and arm64) and its task_struct (about 10 KiB with its parts).
	kernelThread = 28 * KiB
	// kernelFile is an open file with its inode and directory entry (ext4: 256 + 1,184 + 192 B in /proc/slabinfo, Linux 6.1).
	kernelFile Bytes = 1_632
	// filesPerInstance are the files of a RocksDB instance: 7 of its own (CURRENT, IDENTITY, LOCK, LOG, MANIFEST, 2 x OPTIONS) and the
	// 20 files on level 0 at which it slows writes down (level0_slowdown_writes_trigger).
	filesPerInstance = 27
)

// regions adds the regions of the process that do not depend on the limit.
func (p *process) regions(b *builder) {
	jvm := &p.workload.JVM
	shared := Bytes(0)
	if jvm.Metaspace.From == Measured {
		shared = sharedClasses
	}
	b.add(RegionMetaspace.line(jvm.Metaspace.Value.Add(shared), jvm.Metaspace.From, "class metadata, symbols, shared classes").
		expecting(expectedOf(jvm.Metaspace, expectedMetaspace).Add(shared)))
	b.add(RegionCodeCache.line(jvm.CodeCache.Value, jvm.CodeCache.From, "compiled code").expecting(expectedOf(jvm.CodeCache, expectedCodeCache)))
	b.add(RegionCompiler.line(assumedCompiler, Assumed, "JIT compilers, most during start and restore").expecting(expectedCompiler))
	p.stacks(b)
	p.kernelObjects(b)
}

// stacks adds the resident part of all thread stacks.
func (p *process) stacks(b *builder) {
	unit := residentStack
	from := Assumed
	if stack := p.workload.JVM.ThreadStack; stack.Value > 0 && stack.Value < unit {
		unit = stack.Value
		from = stack.From
	}
	count := p.javaThreads()
	b.add(RegionThreadStacks.product(count, unit, from, "(3 x stream threads + producers + 28) x the resident part of a stack").
		expecting(expectedStack.Mul(count)))
}

// javaThreads returns the number of threads of the process.
func (p *process) javaThreads() Count {
	count := p.clientThreads().Add(threadsPerProcess)
	for _, other := range p.others {
		count = count.Add(other.clientThreads()).Add(threadsPerClient)
	}
	return count
}

// clientThreads returns the threads of a client for its stream threads.
func (c *client) clientThreads() Count {
	producers, _ := c.producerCount()
	return c.streamThreads().Mul(threadsPerStreamThread).Add(producers)
}

// kernelObjects adds the kernel memory of the threads and of the files of the process.
func (p *process) kernelObjects(b *builder) {
	bound := kernelThread.Mul(p.javaThreads()).Add((kernelFile * filesPerInstance).Mul(p.opened.instances))
	b.add(RegionKernelObjects.line(bound, Assumed, "threads x 28 KiB, and 27 files an instance x 1.6 KiB"))
}

// expectedOf returns the expected peak of a region: its measured size, or the lower end of the assumed range.
func expectedOf(region Fact[Bytes], expected Bytes) Bytes {
	if region.From == Measured {
		return region.Value
	}
	return min(region.Value, expected)
}

// collectorOverhead returns the native memory of a collector beside the heap, linear in the heap: measured with NMT on OpenJDK 17 at 1 and
// 4 GiB (G1 80.6 and 207 MB, Parallel 49 and 167, Serial 3.5 and 14; G1 at 256 MiB took 49.5). ZGC was measured at one size only (67
// MB); its slope and all numbers of Shenandoah are assumed.
func collectorOverhead(collector Collector, heap Bytes) Bytes {
	base, slope := collectorModel(collector)
	return base.Add(heap.Scale(slope, collectorDen))
}

// collectorDen is the denominator of the slopes of collectorModel.
const collectorDen = 10_000

// collectorModel returns the fixed part of a collector's native memory, and its slope in collectorDen-ths of the heap.
func collectorModel(collector Collector) (base Bytes, slope int64) {
	switch collector {
	case Serial:
		return 0, 35
	case Parallel:
		return 10 * MiB, 390
	case G1:
		return 39 * MiB, 415
	default:
		return 67 * MiB, 500
	}
}

// serverClass is the memory from which on the JVM is server-class and chooses G1 (os::is_server_class_machine: 2 GiB less 256 MiB, and 2
// CPUs).
const serverClass = 1792 * MiB

// collectorFor returns the collector that the JVM chooses under a limit.
func (j *JVM) collectorFor(limit Bytes) Collector {
	switch {
	case j.Collector.Value != AutoCollector:
		return j.Collector.Value
	case limit < serverClass, j.CPUs.Value == 1:
		return Serial
	default:
		return G1
	}
}
