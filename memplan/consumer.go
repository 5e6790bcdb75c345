// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// consumers adds the fetch buffers of the main, restore and global consumers.
func (b *builder) consumers() {
	threads := b.streamThreads()
	clients := &b.w.Clients
	b.fetchBuffers(RegionMainConsumer, threads, &clients.Main, worstActive(b.client, inputPartitions))
	b.fetchBuffers(RegionRestoreConsumer, threads, &clients.Restore, b.restoring())
	if len(b.w.GlobalStores) > 0 {
		b.fetchBuffers(RegionGlobalConsumer, 1, &clients.Global, b.globalPartitions())
	}
}

// fetchBuffers adds what the consumers of one role may hold: brokers x fetch.max.bytes a consumer, and no more than each partition's
// fetch (KIP-74; AbstractFetch). Both limits are soft: a larger batch is returned whole.
//
// From 4.0 on (KAFKA-17182) a broker is not asked again while partitions of it are buffered, so the smaller of the two bounds it.
// Before, fetch.max.bytes limits one response only: every partition may be buffered, and whole responses stay reachable through the
// last partition that is not drained.
func (b *builder) fetchBuffers(region Region, consumers Count, cfg *Consumer, partitions Count) {
	unit := max(cfg.MaxPartitionFetchBytes.Value, b.w.Records.LargestBatch.Value, 0)
	data := unit.Mul(partitions)
	responses := b.largestFetch(cfg).Mul(Count(max(b.w.Brokers.Value, 1))).Mul(consumers)
	line := region.product(partitions, unit,
		weakest(cfg.FetchMaxBytes.From, cfg.MaxPartitionFetchBytes.From, b.w.Brokers.From, b.w.Records.LargestBatch.From),
		"partitions x the larger of max.partition.fetch.bytes and the largest batch")
	if responses < data {
		line = line.bounded(responses, "consumers x brokers x fetch.max.bytes").expecting(responses)
	}
	if !b.has(fetchSkipsBuffered) {
		line = line.bounded(data.Add(min(data, responses)),
			"partitions x max.partition.fetch.bytes, and the responses they came in (before 4.0, KAFKA-17182)")
	}
	b.add(line)
}

// largestFetch is the largest response of one broker to one consumer: fetch.max.bytes, or one batch that is larger.
func (c *client) largestFetch(cfg *Consumer) Bytes {
	return max(cfg.FetchMaxBytes.Value, c.w.Records.LargestBatch.Value, 0)
}

// largestResponse is the largest response that one consumer may read for so many partitions.
func (c *client) largestResponse(cfg *Consumer, partitions Count) Bytes {
	unit := max(cfg.MaxPartitionFetchBytes.Value, c.w.Records.LargestBatch.Value, 0)
	return min(c.largestFetch(cfg), unit.Mul(partitions))
}

// restoring is the number of changelog partitions that may restore at once: those of all tasks.
func (c *client) restoring() Count { return worstTotal(c, changelogs) }

// globalPartitions is the number of partitions of the global stores; one that is not known counts as if no partition limit held.
func (c *client) globalPartitions() Count {
	sum := Count(0)
	for _, s := range c.w.GlobalStores {
		if s.Partitions <= 0 {
			return maxCount
		}
		sum += countOf(s.Partitions)
	}
	return sum
}

// sharedResponses are the largest responses of the consumers of all threads at one time, when each partition is read by one of them.
func (c *client) sharedResponses(cfg *Consumer, partitions Count) Bytes {
	unit := max(cfg.MaxPartitionFetchBytes.Value, c.w.Records.LargestBatch.Value, 0)
	return min(c.largestFetch(cfg).Mul(c.streamThreads()), unit.Mul(partitions))
}

// directMemory adds the direct buffers through which the JDK reads: each thread that reads from plaintext sockets keeps one of the
// size of its largest response (measured; TLS reads through small buffers). The state updater is a reading thread of its own from
// 3.8 on. jdk.nio.maxCachedBufferSize is no cure: reads become quadratic and the peak stays (measured).
//
// The bound lets each thread read a response of all partitions once, since partitions move between threads and the buffers stay. The
// expected peak has each partition read by one thread (docs/calibration.md: 28 MiB of 32 with 2 threads, 8 inputs and 24 changelogs).
func (b *builder) directMemory() {
	if b.w.TLS.Value {
		return
	}
	clients := &b.w.Clients
	main := b.largestResponse(&clients.Main, worstActive(b.client, inputPartitions))
	restore := b.largestResponse(&clients.Restore, b.restoring())
	perThread := max(main, restore)
	if b.has(stateUpdater) {
		perThread = main.Add(restore)
	}
	need := perThread.Mul(b.streamThreads())
	shared := b.sharedResponses(&clients.Main, worstActive(b.client, inputPartitions))
	if restores := b.sharedResponses(&clients.Restore, b.restoring()); b.has(stateUpdater) {
		shared = shared.Add(restores)
	} else {
		shared = max(shared, restores)
	}
	if len(b.w.GlobalStores) > 0 {
		global := b.largestResponse(&clients.Global, b.globalPartitions())
		need, shared = need.Add(global), shared.Add(global)
	}
	line := RegionDirectMemory.line(need, weakest(clients.Main.FetchMaxBytes.From, b.w.Records.LargestBatch.From, b.w.TLS.From),
		"reading threads x the largest fetch response (plaintext)").expecting(shared)
	if limit := b.w.JVM.MaxDirect; limit.Value > 0 && limit.Value < need {
		line = RegionDirectMemory.line(limit.Value, limit.From, "MaxDirectMemorySize")
		b.warn("MaxDirectMemorySize is %v, but the fetches may need %v: reads would throw OutOfMemoryError; raise it or lower fetch.max.bytes", limit.Value, need)
	}
	b.add(line)
}

// sockets adds the kernel's socket buffers: a connection to each broker for each client, send and receive buffer in full. -1 leaves
// them to the kernel, which tunes a receive buffer up to 6 MiB (tcp_rmem).
func (b *builder) sockets() {
	clients := &b.w.Clients
	perThread := socketBuffers(clients.Main.SendBuffer, clients.Main.ReceiveBuffer).
		Add(socketBuffers(clients.Restore.SendBuffer, clients.Restore.ReceiveBuffer))
	producers, _ := b.producerCount()
	unit := perThread.Mul(b.streamThreads()).Add(socketBuffers(clients.Producer.SendBuffer, clients.Producer.ReceiveBuffer).Mul(producers)).Add(adminBuffers)
	if len(b.w.GlobalStores) > 0 {
		unit = unit.Add(socketBuffers(clients.Global.SendBuffer, clients.Global.ReceiveBuffer))
	}
	b.add(RegionSockets.product(max(countOf(b.w.Brokers.Value), 1), unit,
		weakest(clients.Main.ReceiveBuffer.From, b.w.Brokers.From), "brokers x the buffers of all producers, consumers and the admin client"))
}

// adminBuffers are the socket buffers of the admin client (AdminClientConfig: 128 and 64 KiB).
const adminBuffers = 192 * KiB

// socketBuffers are the buffers of one connection.
func socketBuffers(send, receive Fact[Bytes]) Bytes {
	const autotuned = 6 * MiB
	sum := Bytes(0)
	for _, b := range []Bytes{send.Value, receive.Value} {
		if b < 0 {
			b = autotuned
		}
		sum = sum.Add(b)
	}
	return sum
}

// inputPartitions are the partitions that a task reads.
func inputPartitions(s *Subtopology) Count { return countOf(s.InputPartitions) }

// changelogs are the changelog partitions of a task.
func changelogs(s *Subtopology) Count {
	n := Count(0)
	for i := range s.Stores {
		if !s.Stores[i].Unlogged {
			n++
		}
	}
	return n
}

// partitions returns the number of partitions that the consumers of a role read.
func (c *client) partitions(r role) Count {
	switch r {
	case restoreRole:
		return c.restoring()
	case globalRole:
		return c.globalPartitions()
	default:
		return worstActive(c, inputPartitions)
	}
}
