// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// consumers adds the fetch buffers of the main, restore and global consumers.
func (b *builder) consumers() {
	clients := &b.workload.Clients
	b.fetchBuffers(RegionMainConsumer, b.streamThreads(), &clients.Main, b.partitions(mainRole))
	b.fetchBuffers(RegionRestoreConsumer, b.streamThreads(), &clients.Restore, b.partitions(restoreRole))
	if len(b.workload.GlobalStores) > 0 {
		b.fetchBuffers(RegionGlobalConsumer, 1, &clients.Global, b.partitions(globalRole))
	}
}

// partitions returns the number of partitions that the consumers of a role read: input partitions of active tasks, changelogs of tasks of
// any role, which may all restore at once, or partitions of the global stores.
func (c *client) partitions(r role) Count {
	switch r {
	case restoreRole:
		return worstTotal(c, changelogs)
	case globalRole:
		return c.globalPartitions()
	default:
		return worstActive(c, inputPartitions)
	}
}

// fetchBuffers adds the data that the consumers of one role may hold: brokers x fetch.max.bytes for each consumer, and no more than the
// fetch of each partition (KIP-74; AbstractFetch). Both limits are soft: a larger batch is returned whole.
//
// From 4.0 on (KAFKA-17182) a consumer sends no fetch to a broker while partitions of it are buffered, so the smaller of the two is the
// bound. Before, fetch.max.bytes limits one response only: every partition may be buffered, and whole responses stay reachable through the
// last partition that is not drained.
func (b *builder) fetchBuffers(region Region, consumers Count, cfg *Consumer, partitions Count) {
	unit := b.largestPartitionFetch(cfg)
	data := unit.Mul(partitions)
	responses := b.largestFetch(cfg).Mul(Count(max(b.workload.Brokers.Value, 1))).Mul(consumers)
	line := region.product(partitions, unit,
		weakest(cfg.FetchMaxBytes.From, cfg.MaxPartitionFetchBytes.From, b.workload.Brokers.From, b.workload.Records.LargestBatch.From),
		"partitions x the larger of max.partition.fetch.bytes and the largest batch")
	if responses < data {
		line = line.bounded(responses, "consumers x brokers x fetch.max.bytes").expecting(responses)
	}
	if !b.has(fetchSkipsBuffered) {
		line = line.bounded(data.Add(min(data, responses)),
			"partitions x max.partition.fetch.bytes, and the responses that contained them (before 4.0, KAFKA-17182)")
	}
	b.add(line)
}

// largestFetch returns the largest response of one broker to one consumer: fetch.max.bytes, or one larger batch.
func (c *client) largestFetch(cfg *Consumer) Bytes {
	return max(cfg.FetchMaxBytes.Value, c.workload.Records.LargestBatch.Value, 0)
}

// largestPartitionFetch returns the largest part of a response for one partition: max.partition.fetch.bytes, or one larger batch.
func (c *client) largestPartitionFetch(cfg *Consumer) Bytes {
	return max(cfg.MaxPartitionFetchBytes.Value, c.workload.Records.LargestBatch.Value, 0)
}

// largestResponse returns the largest response that one consumer may read for so many partitions.
func (c *client) largestResponse(cfg *Consumer, partitions Count) Bytes {
	return min(c.largestFetch(cfg), c.largestPartitionFetch(cfg).Mul(partitions))
}

// sharedResponses returns the largest responses of the consumers of all threads at one time, when one of them reads each partition.
func (c *client) sharedResponses(cfg *Consumer, partitions Count) Bytes {
	return min(c.largestFetch(cfg).Mul(c.streamThreads()), c.largestPartitionFetch(cfg).Mul(partitions))
}

// globalPartitions returns the number of partitions of the global stores. With an unknown one it is so large that only fetch.max.bytes
// bounds.
func (c *client) globalPartitions() Count {
	sum := Count(0)
	for i := range c.workload.GlobalStores {
		partitions := c.workload.GlobalStores[i].Partitions
		if partitions <= 0 {
			return maxCount
		}
		sum += countOf(partitions)
	}
	return sum
}

// directMemory adds the direct buffers of JDK reads: each thread reading from plaintext sockets keeps one of the size of its largest
// response (measured; TLS reads through small buffers). From 3.8 on the state updater is a reading thread of its own.
// jdk.nio.maxCachedBufferSize is no cure: reads become quadratic, and the peak stays (measured).
//
// For the bound each thread reads a response of all partitions once, since partitions move between threads and the buffers stay. For the
// expected peak one thread reads each partition (docs/calibration.md: 28 MiB of 32 with 2 threads, 8 inputs and 24 changelogs).
func (b *builder) directMemory() {
	if b.workload.TLS.Value {
		return
	}
	clients := &b.workload.Clients
	inputs := b.partitions(mainRole)
	changelogs := b.partitions(restoreRole)
	bothThreads := func(main, restore Bytes) Bytes {
		if b.has(stateUpdater) {
			return main.Add(restore)
		}
		return max(main, restore)
	}
	bound := bothThreads(b.largestResponse(&clients.Main, inputs), b.largestResponse(&clients.Restore, changelogs)).Mul(b.streamThreads())
	expected := bothThreads(b.sharedResponses(&clients.Main, inputs), b.sharedResponses(&clients.Restore, changelogs))
	if len(b.workload.GlobalStores) > 0 {
		global := b.largestResponse(&clients.Global, b.partitions(globalRole))
		bound = bound.Add(global)
		expected = expected.Add(global)
	}
	line := RegionDirectMemory.line(bound, weakest(clients.Main.FetchMaxBytes.From, b.workload.Records.LargestBatch.From, b.workload.TLS.From),
		"reading threads x the largest fetch response (plaintext)").expecting(expected)
	if limit := b.workload.JVM.MaxDirect; limit.Value > 0 && limit.Value < bound {
		line = RegionDirectMemory.line(limit.Value, limit.From, "MaxDirectMemorySize")
		b.warn("MaxDirectMemorySize is %v, but the fetches may take %v: reads would throw OutOfMemoryError; raise it or lower fetch.max.bytes", limit.Value, bound)
	}
	b.add(line)
}

// sockets adds the kernel's socket buffers: a connection to each broker for each client, with full send and receive buffers.
func (b *builder) sockets() {
	clients := &b.workload.Clients
	perThread := socketBuffers(clients.Main.SendBuffer, clients.Main.ReceiveBuffer).
		Add(socketBuffers(clients.Restore.SendBuffer, clients.Restore.ReceiveBuffer))
	producers, _ := b.producerCount()
	perProducer := socketBuffers(clients.Producer.SendBuffer, clients.Producer.ReceiveBuffer)
	unit := perThread.Mul(b.streamThreads()).Add(perProducer.Mul(producers)).Add(adminBuffers)
	if len(b.workload.GlobalStores) > 0 {
		unit = unit.Add(socketBuffers(clients.Global.SendBuffer, clients.Global.ReceiveBuffer))
	}
	b.add(RegionSockets.product(max(countOf(b.workload.Brokers.Value), 1), unit,
		weakest(clients.Main.ReceiveBuffer.From, b.workload.Brokers.From), "brokers x the buffers of all producers, consumers and the admin client"))
}

// adminBuffers are the socket buffers of the admin client (AdminClientConfig: 128 and 64 KiB).
const adminBuffers = 192 * KiB

// socketBuffers returns the buffers of one connection. A size of -1 leaves the buffer to the kernel, which tunes a receive buffer up to
// 6 MiB (tcp_rmem).
func socketBuffers(send, receive Fact[Bytes]) Bytes {
	const autotuned = 6 * MiB
	sum := Bytes(0)
	for _, size := range []Bytes{send.Value, receive.Value} {
		if size < 0 {
			size = autotuned
		}
		sum = sum.Add(size)
	}
	return sum
}

// inputPartitions returns the number of partitions that a task reads.
func inputPartitions(s *Subtopology) Count { return countOf(s.InputPartitions) }

// changelogs returns the number of changelog partitions of a task.
func changelogs(s *Subtopology) Count {
	n := Count(0)
	for i := range s.Stores {
		if !s.Stores[i].Unlogged {
			n++
		}
	}
	return n
}
