// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// batchOverhead is the heap of a producer batch beside its buffer, in bytes (measured in a heap dump of KAFKA-9703: 65,624 B a batch
// of 65,536).
const batchOverhead Bytes = 88

// producers adds the lines of the producers: buffer pools, compression contexts and split batches.
func (b *builder) producers() {
	cfg := &b.w.Clients.Producer
	count, from := b.producerCount()
	line := RegionProducer.product(count, cfg.BufferMemory.Value, weakest(cfg.BufferMemory.From, from),
		"producers x buffer.memory")
	batches := b.openBatches(count)
	line.Expected = min(line.Bound, max(cfg.BatchSize.Value, 0).Mul(batches)) // the pool fills lazily, batch by batch
	b.add(line)
	b.compression(batches, min(batches, b.writtenPartitions(1)))
	b.splitBatches(count)
}

// producerCount is the number of producers: one a stream thread, or one an active task with EOSv1 (ActiveTaskCreator up to 3.9).
func (c *client) producerCount() (Count, Provenance) {
	if c.w.Guarantee.Value == ExactlyOnceV1 && !c.has(eosV1Gone) {
		return max(worstActive(c, func(*Subtopology) Count { return 1 }), 1), c.w.Guarantee.From
	}
	return c.streamThreads(), c.w.Threads.From
}

// openBatches bounds the batches that are open at once: one a partition that a producer writes to, and no more than fit buffer.memory
// (RecordAccumulator reserves batch.size for each).
func (c *client) openBatches(producers Count) Count {
	cfg := &c.w.Clients.Producer
	fitting := Count(max(cfg.BufferMemory.Value, 0) / max(cfg.BatchSize.Value, 1))
	return min(c.writtenPartitions(producers), fitting.Mul(producers))
}

// writtenPartitions are the partitions that all producers together write to, each counted for every producer that does.
func (c *client) writtenPartitions(producers Count) Count {
	written := worstActive(c, changelogs)
	for i, s := range c.w.Subtopologies {
		onThreads := min(producers, Count(c.load.Caps[i].Active))
		written = written.Add(countOf(s.WrittenPartitions).Mul(onThreads))
	}
	return written
}

// compression adds what the codec holds for each open batch. buffer.memory does not bound it. Any producer may write to any partition, but
// records go by their keys, so that at one time each partition has a batch open in one of them (docs/calibration.md): that is likely.
func (b *builder) compression(batches, likely Count) {
	cfg := &b.w.Clients.Producer
	heap, native := b.compressionContext()
	from := weakest(cfg.Compression.From, cfg.CompressionLevel.From)
	b.add(RegionCompressionHeap.product(batches, heap, from, "open batches x the codec's buffers").expecting(heap.Mul(likely)))
	b.add(RegionCompressionNative.product(batches, native, from, "open batches x the codec's native state; no Kafka config bounds it").
		expecting(native.Mul(likely)))
	if cfg.Compression.Value == Zstd {
		inputs := worstActive(b.client, inputPartitions)
		b.add(RegionDecompression.product(inputs, zstdDecompression, cfg.Compression.From,
			"input partitions x a zstd stream: a paused partition keeps its stream open").
			expecting(zstdDecompression.Mul(min(inputs, b.streamThreads()))))
	}
}

// zstdDecompression is ZSTD_estimateDStreamSize for the window of 2 MiB that level 3 uses (measured, libzstd 1.5.4).
const zstdDecompression Bytes = 2_586_424

// zstdOutput is the output array of a zstd stream, ZSTD_CStreamOutSize, that is compressBound(128 KiB) + 7 (zstd-jni), and its headers:
// 131,653 B a stream in the heap dump of KAFKA-9703.
const zstdOutput Bytes = 131_591 + 62

// compressionContext is the heap and the native memory that one open batch's compressor holds.
//
// Sources: GzipCompression (16 + 8 KiB; zlib's deflate state is 256 KiB by its manual), SnappyCompression (32 KiB in, 38 KiB out),
// Lz4BlockOutputStream (64 KiB in, about as much out), ZstdCompression (16 KiB before the output array from 2.8 on, KAFKA-10470).
func (c *client) compressionContext() (heap, native Bytes) {
	cfg := &c.w.Clients.Producer
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

// zstdNative is the resident native memory of an open zstd stream that has seen little input, to which the bytes seen are added, up to
// the window (measured, libzstd 1.5.4, at levels 1, 3, 9, 19 and 22; a level between counts as the next higher).
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

// splitBatches adds the batches that a producer makes outside its pool when the broker answers MESSAGE_TOO_LARGE: all parts of one
// batch at once (ProducerBatch.split). It happens with compression only, where the size of a batch is an estimate. Up to 2.5 each part
// keeps its compressor open as well: one part held 307,176 B of heap and 800,074 B of native memory (heap dump of KAFKA-9703).
func (b *builder) splitBatches(producers Count) {
	cfg := &b.w.Clients.Producer
	if heap, _ := b.compressionContext(); heap == 0 || cfg.BatchSize.Value <= 0 {
		return
	}
	parts := Count(cfg.MaxRequestSize.Value.Scale(1, int64(cfg.BatchSize.Value)))
	unit := cfg.MaxRequestSize.Value.Add(batchOverhead.Mul(parts))
	heap := RegionSplitBatches.product(producers, unit, cfg.MaxRequestSize.From,
		"producers x the parts of one batch of max.request.size")
	streams := Bytes(0)
	if cfg.Compression.Value == Zstd && !b.has(splitStreamsClosed) {
		heap.Unit = unit.Add(zstdOutput.Mul(parts))
		heap.Bound, heap.Why = heap.Unit.Mul(producers), "producers x the parts of one batch of max.request.size, each with an open zstd stream"
		streams = zstdNative(cfg.CompressionLevel.Value).Mul(parts).Mul(producers)
	}
	b.add(heap.expecting(0))
	b.add(RegionSplitStreams.line(streams, cfg.MaxRequestSize.From, "producers x parts x an open zstd stream (before 2.6, KAFKA-9703)").expecting(0))
}
