// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// checker collects the errors of impossible inputs.
type checker struct{ errs []error }

// failf adds an error naming the field and its valid values.
func (c *checker) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// least checks that a number is not below the least valid one.
func (c *checker) least(field string, value, least int64) {
	if value < least {
		c.failf("%s is %d: it must be at least %d", field, value, least)
	}
}

// Check returns errors for inputs that no application can have: negative and absurd numbers, unknown kinds, duplicates, and limits in the
// wrong unit. Each error names the field and its valid values. The planner moves such numbers into their ranges and plans nevertheless; the
// warnings of its plans include these errors.
func Check(w Workload, policy Policy, limit Bytes) error {
	return errors.Join(problems(&w, policy, limit)...)
}

// problems returns the errors of Check, one by one.
func problems(w *Workload, policy Policy, limit Bytes) []error {
	c := checker{}
	c.limit(limit)
	c.policy(policy)
	c.jvm(&w.JVM)
	c.client(w)
	c.others(w.Others)
	return c.errs
}

// client checks the inputs of one KafkaStreams client.
func (c *checker) client(w *Workload) {
	c.configs(w)
	c.counts(w)
	c.sizes(w)
	c.topology(w)
}

// others checks the other clients of the process.
func (c *checker) others(clients []Client) {
	for i := range clients {
		id := clients[i].ApplicationID
		if id == "" || slices.ContainsFunc(clients[:i], func(o Client) bool { return o.ApplicationID == id }) {
			c.failf("the application id %q of another client must not be empty, and must be unique", id)
		}
		other := checker{}
		other.client(&clients[i].Workload)
		for _, err := range other.errs {
			c.failf("%s: %w", id, err)
		}
	}
}

// limit checks the limit: a JVM does not start in less than a MiB, so a smaller number has another unit.
func (c *checker) limit(limit Bytes) {
	switch {
	case limit <= 0:
		c.failf("the limit is %d B: it must be the memory limit of the container in bytes", limit)
	case limit < MiB:
		c.failf("the limit is %d B: no JVM starts with it; if it is in milli-bytes (300m), set 300Mi", limit)
	}
}

// policy checks percentages and pins.
func (c *checker) policy(p Policy) {
	percent := func(field string, value, most int) {
		if value < 0 || value > most {
			c.failf("%s is %d: it must be a percentage of 0 to %d", field, value, most)
		}
	}
	percent("headroom", p.HeadroomPercent, maxHeadroom)
	percent("page cache", p.PageCachePercent, maxHeadroom)
	c.least("page-cache floor", int64(p.PageCacheFloor), 0)
	c.least("pod failures to tolerate", int64(p.PodFailures), 0)
	var regions []Region
	for region, pin := range p.Pins {
		if pin < 0 {
			regions = append(regions, region)
		}
	}
	slices.Sort(regions)
	for _, region := range regions {
		c.failf("the pin of %s is %d B: it must not be negative", region, p.Pins[region])
	}
}

// configs checks the Kafka configs.
func (c *checker) configs(w *Workload) {
	for i := range settings {
		s := &settings[i]
		if s.number == nil {
			continue
		}
		if n, least := s.number.get(w, s.role).Value, s.number.minimum(); n < least {
			c.least(s.label(), n, least)
		}
	}
}

// counts checks other counts than those of Kafka configs.
func (c *checker) counts(w *Workload) {
	for _, n := range []struct {
		field string
		value int
		least int64
	}{
		{"brokers", w.Brokers.Value, 1},
		{"max_write_buffer_number", w.RocksDB.MaxWriteBuffers.Value, 0},
		{"open iterators", w.RocksDB.OpenIterators.Value, 0},
	} {
		c.least(n.field, int64(n.value), n.least)
	}
}

// sizes checks other amounts than those of Kafka configs.
func (c *checker) sizes(w *Workload) {
	for _, n := range []struct {
		field string
		value Bytes
	}{
		{"the average record", w.Records.Average.Value}, {"the largest record", w.Records.Largest.Value}, {"the largest batch", w.Records.LargestBatch.Value},
		{"the block cache", w.RocksDB.BlockCache.Value}, {"write_buffer_size", w.RocksDB.WriteBuffer.Value},
		{"the shared cache", w.RocksDB.SharedCache.Value}, {"the write buffer manager", w.RocksDB.WriteBufferLimit.Value},
		{"the application's own block cache", w.RocksDB.OwnCache.Value},
		{"the application's live set", w.Application.LiveSet.Value}, {"the application's native memory", w.Application.Native.Value},
	} {
		c.least(n.field, int64(n.value), 0)
	}
	cache := w.RocksDB.SharedCache.Value
	if part := w.RocksDB.WriteBufferLimit.Value; cache > 0 && part > cache {
		c.failf("the write buffer manager of %v is larger than the shared cache of %v, which includes it: lower it", part, cache)
	}
}

// jvm checks the JVM.
func (c *checker) jvm(jvm *JVM) {
	c.percentage("MaxRAMPercentage", jvm.MaxRAMPercentage.Value)
	c.percentage("MinRAMPercentage", jvm.MinRAMPercentage.Value)
	if jvm.HeapMode == HeapFixed && jvm.MaxHeap.Value < heapAlignment {
		c.failf("the heap of %d B is below the smallest heap of a JVM: -Xmx must be at least 2m", jvm.MaxHeap.Value)
	}
}

// percentage checks a percentage of the JVM.
func (c *checker) percentage(field string, percent float64) {
	if math.IsNaN(percent) || percent < 0 || percent > 100 {
		c.failf("%s is %v: it must be a percentage of 0 to 100", field, percent)
	}
}

// topology checks subtopologies and stores.
func (c *checker) topology(w *Workload) {
	for i := range w.Subtopologies {
		s := &w.Subtopologies[i]
		if slices.ContainsFunc(w.Subtopologies[:i], func(other Subtopology) bool { return other.ID == s.ID }) {
			c.failf("duplicate subtopology %s: each has a unique id", s.ID)
		}
		c.count(s.ID, "tasks", s.Tasks)
		c.count(s.ID, "input partitions", s.InputPartitions)
		c.count(s.ID, "written partitions", s.WrittenPartitions)
		c.stores(s.ID, s.Stores)
	}
	c.stores("global", w.GlobalStores)
}

// count checks a number of a subtopology.
func (c *checker) count(subtopology, field string, n int) {
	if n < 0 || n > maxCount {
		c.failf("subtopology %s: the number of %s is %d: it must be 0 to %d", subtopology, field, n, maxCount)
	}
}

// stores checks the stores of one subtopology.
func (c *checker) stores(of string, stores []Store) {
	for i := range stores {
		s := &stores[i]
		if s.Name != "" && slices.ContainsFunc(stores[:i], func(other Store) bool { return other.Name == s.Name }) {
			c.failf("subtopology %s: duplicate store %s: processors share a store, so it must be listed once", of, s.Name)
		}
		least := min(s.RetentionMs.Value, s.SegmentIntervalMs.Value, int64(s.Size.Value), int64(s.MaxSuppress.Value))
		if s.Kind > Suppress || least < 0 || s.segments() == maxSegments {
			c.store("subtopology "+of+": store "+s.Name, s)
		}
	}
}

// store adds the errors of a store.
func (c *checker) store(name string, s *Store) {
	if s.Kind > Suppress {
		c.failf("%s has the unknown kind %d: it must be a kind of Kafka Streams, and counts as a key-value store", name, s.Kind)
	}
	c.least(name+": retention in ms", s.RetentionMs.Value, 0)
	c.least(name+": segment interval in ms", s.SegmentIntervalMs.Value, 0)
	c.least(name+": size", int64(s.Size.Value), 0)
	c.least(name+": maxBytes of suppress", int64(s.MaxSuppress.Value), 0)
	if s.segments() == maxSegments {
		c.failf("%s has more than %d segments: the segment interval of %d ms must be longer for a retention of %d ms",
			name, maxSegments, s.SegmentIntervalMs.Value, s.RetentionMs.Value)
	}
}
