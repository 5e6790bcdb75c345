// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// batchOverhead is the heap of a producer batch beside its buffer, in bytes (measured in a heap dump of KAFKA-9703: 65,624 B for a batch
// of 65,536).
const batchOverhead Bytes = 88

// producers adds the lines of the producers: buffer pools, compression contexts and split batches.
func (b *builder) producers() {
	cfg := &b.workload.Clients.Producer
	count, from := b.producerCount()
	batches := b.openBatches(count)
	// The pool fills lazily, batch by batch.
	b.add(RegionProducer.product(count, cfg.BufferMemory.Value, weakest(cfg.BufferMemory.From, from), "producers x buffer.memory").
		expecting(max(cfg.BatchSize.Value, 0).Mul(batches)))
	b.compression(batches, min(batches, b.writtenPartitions(1)))
	b.splitBatches(count)
}

// producerCount returns the number of producers: one for each stream thread, or one for each active task with EOSv1 (ActiveTaskCreator up
// to 3.9).
func (c *client) producerCount() (Count, Provenance) {
	if c.workload.Guarantee.Value == ExactlyOnceV1 && !c.has(eosV1Gone) {
		return max(worstActive(c, func(*Subtopology) Count { return 1 }), 1), c.workload.Guarantee.From
	}
	return c.streamThreads(), c.workload.Threads.From
}

// openBatches bounds the batches that are open at once: one for each partition that a producer writes to, and no more than fit
// buffer.memory (RecordAccumulator reserves batch.size for each).
func (c *client) openBatches(producers Count) Count {
	cfg := &c.workload.Clients.Producer
	fitting := Count(max(cfg.BufferMemory.Value, 0) / max(cfg.BatchSize.Value, 1))
	return min(c.writtenPartitions(producers), fitting.Mul(producers))
}

// writtenPartitions returns the number of partitions that all producers together write to. Each counts once for every producer that
// writes to it.
func (c *client) writtenPartitions(producers Count) Count {
	written := worstActive(c, changelogs)
	for i := range c.workload.Subtopologies {
		onThreads := min(producers, Count(c.load.Caps[i].Active))
		written = written.Add(countOf(c.workload.Subtopologies[i].WrittenPartitions).Mul(onThreads))
	}
	return written
}

// compression adds the memory of the codec for each open batch. buffer.memory does not bound it. Any producer may write to any partition.
// But records go by their keys, so that at one time each partition probably has a batch open in one producer (docs/calibration.md).
func (b *builder) compression(batches, probable Count) {
	cfg := &b.workload.Clients.Producer
	heap, native := b.compressionContext()
	from := weakest(cfg.Compression.From, cfg.CompressionLevel.From)
	b.add(RegionCompressionHeap.product(batches, heap, from, "open batches x the codec's buffers").expecting(heap.Mul(probable)))
	b.add(RegionCompressionNative.product(batches, native, from, "open batches x the codec's native state; no Kafka config bounds it").
		expecting(native.Mul(probable)))
	if cfg.Compression.Value == Zstd {
		inputs := b.partitions(mainRole)
		b.add(RegionDecompression.product(inputs, zstdDecompression, cfg.Compression.From,
			"input partitions x a zstd stream: a paused partition keeps its stream open").
			expecting(zstdDecompression.Mul(min(inputs, b.streamThreads()))))
	}
}

// zstdDecompression is ZSTD_estimateDStreamSize for the window of 2 MiB of level 3 (measured, libzstd 1.5.4).
const zstdDecompression Bytes = 2_586_424

// zstdOutput is the output array of a zstd stream, ZSTD_CStreamOutSize, which is compressBound(128 KiB) + 7 (zstd-jni), and its headers:
// 131,653 B for a stream in the heap dump of KAFKA-9703.
const zstdOutput Bytes = 131_591 + 62

// compressionContext returns the heap and the native memory of the compressor of one open batch.
//
// Sources: GzipCompression (16 + 8 KiB; zlib's deflate state is 256 KiB by its manual), SnappyCompression (32 KiB in, 38 KiB out),
// Lz4BlockOutputStream (64 KiB in, about as much out), ZstdCompression (16 KiB before the output array from 2.8 on, KAFKA-10470).
func (c *client) compressionContext() (heap, native Bytes) {
	cfg := &c.workload.Clients.Producer
	switch cfg.Compression.Value {
	case Gzip:
		return 24 * KiB, 256 * KiB
	case Snappy:
		return 70 * KiB, 0
	case LZ4:
		return 129 * KiB, 0
	case Zstd:
		heap = zstdOutput
		if c.has(zstdBuffered) {
			heap += 16 * KiB
		}
		return heap, zstdNative(cfg.CompressionLevel.Value).Add(min(max(cfg.BatchSize.Value, 0), 2*MiB))
	default:
		return 0, 0
	}
}

// zstdNative returns the resident native memory of an open zstd stream with little input. The size of its input comes on top, up to the
// window (measured, libzstd 1.5.4, at levels 1, 3, 9, 19 and 22; a level between them counts as the next higher).
func zstdNative(level int) Bytes {
	switch {
	case level <= 1:
		return 152_903
	case level <= 3:
		return 808_263
	case level <= 9:
		return 12_700_000
	case level <= 19:
		return 84_500_000
	default:
		return 680_000_000
	}
}

// splitBatches adds the batches that a producer makes outside of its pool after MESSAGE_TOO_LARGE from the broker: all parts of one batch at
// once (ProducerBatch.split). It happens with compression only, where the size of a batch is an estimate. Up to 2.5 each part keeps its
// compressor open as well: one part held 307,176 B of heap and 800,074 B of native memory (heap dump of KAFKA-9703).
func (b *builder) splitBatches(producers Count) {
	cfg := &b.workload.Clients.Producer
	if heap, _ := b.compressionContext(); heap == 0 || cfg.BatchSize.Value <= 0 {
		return
	}
	parts := Count(cfg.MaxRequestSize.Value.Scale(1, int64(cfg.BatchSize.Value)))
	unit := cfg.MaxRequestSize.Value.Add(batchOverhead.Mul(parts))
	if cfg.Compression.Value != Zstd || b.has(splitStreamsClosed) {
		b.add(RegionSplitBatches.product(producers, unit, cfg.MaxRequestSize.From, "producers x the parts of one batch of max.request.size").expecting(0))
		return
	}
	b.add(RegionSplitBatches.product(producers, unit.Add(zstdOutput.Mul(parts)), cfg.MaxRequestSize.From,
		"producers x the parts of one batch of max.request.size, each with an open zstd stream").expecting(0))
	b.add(RegionSplitStreams.line(zstdNative(cfg.CompressionLevel.Value).Mul(parts).Mul(producers), cfg.MaxRequestSize.From,
		"producers x parts x an open zstd stream (before 2.6, KAFKA-9703)").expecting(0))
}
