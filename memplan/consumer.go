// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// consumers adds the fetch buffers of the main, restore and global consumers.
func (p *planner) consumers() {
	threads := Count(p.load.Threads)
	clients := &p.w.Clients
	p.fetchBuffers(RegionMainConsumer, threads, &clients.Main, worstActive(p, inputPartitions))
	p.fetchBuffers(RegionRestoreConsumer, threads, &clients.Restore, p.restoring())
	if len(p.w.GlobalStores) > 0 {
		p.fetchBuffers(RegionGlobalConsumer, 1, &clients.Global, p.globalPartitions())
	}
}

// fetchBuffers adds what the consumers of one role may hold: brokers x fetch.max.bytes a consumer, and no more than each partition's
// fetch (KIP-74; AbstractFetch). Both limits are soft: a larger batch is returned whole.
//
// From 4.0 on (KAFKA-17182) a broker is not asked again while partitions of it are buffered, so the smaller of the two bounds it.
// Before, fetch.max.bytes limits one response only: every partition may be buffered, and whole responses stay reachable through the
// last partition that is not drained.
func (p *planner) fetchBuffers(region Region, consumers Count, cfg *Consumer, partitions Count) {
	unit := max(cfg.MaxPartitionFetchBytes.Value, p.w.Records.LargestBatch.Value, 0)
	data := unit.Mul(partitions)
	responses := p.largestFetch(cfg).Mul(Count(max(p.w.Brokers.Value, 1))).Mul(consumers)
	line := region.product(partitions, unit,
		weakest(cfg.FetchMaxBytes.From, cfg.MaxPartitionFetchBytes.From, p.w.Brokers.From, p.w.Records.LargestBatch.From),
		"partitions x the larger of max.partition.fetch.bytes and the largest batch")
	if responses < data {
		line = line.bounded(responses, "consumers x brokers x fetch.max.bytes").expecting(responses)
	}
	if !p.has(fetchSkipsBuffered) {
		line = line.bounded(data.Add(min(data, responses)),
			"partitions x max.partition.fetch.bytes, and the responses they came in (before 4.0, KAFKA-17182)")
	}
	p.add(line)
}

// largestFetch is the largest response of one broker to one consumer: fetch.max.bytes, or one batch that is larger.
func (p *planner) largestFetch(cfg *Consumer) Bytes {
	return max(cfg.FetchMaxBytes.Value, p.w.Records.LargestBatch.Value, 0)
}

// largestResponse is the largest response that one consumer may read for so many partitions.
func (p *planner) largestResponse(cfg *Consumer, partitions Count) Bytes {
	unit := max(cfg.MaxPartitionFetchBytes.Value, p.w.Records.LargestBatch.Value, 0)
	return min(p.largestFetch(cfg), unit.Mul(partitions))
}

// restoring is the number of changelog partitions that may restore at once: those of all tasks.
func (p *planner) restoring() Count { return worstTotal(p, changelogs) }

// globalPartitions is the number of partitions of the global stores; one that is not known counts as if no partition limit held.
func (p *planner) globalPartitions() Count {
	sum := Count(0)
	for _, s := range p.w.GlobalStores {
		if s.Partitions <= 0 {
			return maxCount
		}
		sum += countOf(s.Partitions)
	}
	return sum
}

// sharedResponses are the largest responses of the consumers of all threads at one time, when each partition is read by one of them.
func (p *planner) sharedResponses(cfg *Consumer, partitions Count) Bytes {
	unit := max(cfg.MaxPartitionFetchBytes.Value, p.w.Records.LargestBatch.Value, 0)
	return min(p.largestFetch(cfg).Mul(Count(p.load.Threads)), unit.Mul(partitions))
}

// directMemory adds the direct buffers through which the JDK reads: each thread that reads from plaintext sockets keeps one of the
// size of its largest response (measured; TLS reads through small buffers). The state updater is a reading thread of its own from
// 3.8 on. jdk.nio.maxCachedBufferSize is no cure: reads become quadratic and the peak stays (measured).
//
// The bound lets each thread read a response of all partitions once, since partitions move between threads and the buffers stay. The
// expected peak has each partition read by one thread (docs/calibration.md: 28 MiB of 32 with 2 threads, 8 inputs and 24 changelogs).
func (p *planner) directMemory() {
	if p.w.TLS.Value {
		return
	}
	clients := &p.w.Clients
	main := p.largestResponse(&clients.Main, worstActive(p, inputPartitions))
	restore := p.largestResponse(&clients.Restore, p.restoring())
	perThread := max(main, restore)
	if p.has(stateUpdater) {
		perThread = main.Add(restore)
	}
	need := perThread.Mul(Count(p.load.Threads))
	shared := p.sharedResponses(&clients.Main, worstActive(p, inputPartitions))
	if restores := p.sharedResponses(&clients.Restore, p.restoring()); p.has(stateUpdater) {
		shared = shared.Add(restores)
	} else {
		shared = max(shared, restores)
	}
	if len(p.w.GlobalStores) > 0 {
		global := p.largestResponse(&clients.Global, p.globalPartitions())
		need, shared = need.Add(global), shared.Add(global)
	}
	line := RegionDirectMemory.line(need, weakest(clients.Main.FetchMaxBytes.From, p.w.Records.LargestBatch.From, p.w.TLS.From),
		"reading threads x the largest fetch response (plaintext)").expecting(shared)
	if limit := p.w.JVM.MaxDirect; limit.Value > 0 && limit.Value < need {
		line = RegionDirectMemory.line(limit.Value, limit.From, "MaxDirectMemorySize")
		p.warn("MaxDirectMemorySize is %v, but the fetches may need %v: reads would throw OutOfMemoryError; raise it or lower fetch.max.bytes", limit.Value, need)
	}
	p.add(line)
}

// sockets adds the kernel's socket buffers: a connection to each broker for each client, send and receive buffer in full. -1 leaves
// them to the kernel, which tunes a receive buffer up to 6 MiB (tcp_rmem).
func (p *planner) sockets() {
	clients := &p.w.Clients
	perThread := socketBuffers(clients.Main.SendBuffer, clients.Main.ReceiveBuffer).
		Add(socketBuffers(clients.Restore.SendBuffer, clients.Restore.ReceiveBuffer))
	producers, _ := p.producerCount()
	unit := perThread.Mul(Count(p.load.Threads)).Add(socketBuffers(clients.Producer.SendBuffer, clients.Producer.ReceiveBuffer).Mul(producers)).Add(adminBuffers)
	if len(p.w.GlobalStores) > 0 {
		unit = unit.Add(socketBuffers(clients.Global.SendBuffer, clients.Global.ReceiveBuffer))
	}
	p.add(RegionSockets.product(max(countOf(p.w.Brokers.Value), 1), unit,
		weakest(clients.Main.ReceiveBuffer.From, p.w.Brokers.From), "brokers x the buffers of all producers, consumers and the admin client"))
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
