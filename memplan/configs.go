// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"strconv"
)

// maxRAMGone is the JDK from which MaxRAM is ignored (JDK-8369347).
const maxRAMGone = 27

// configs are the settings that put the plan in force.
func (r *layout) configs(heap Bytes) []Config {
	var all []Config
	if r.w.JVM.HeapMode == HeapPlanned {
		all = append(all, heapOptions(heap, r.limit, r.w.JVM.Version.Value, r.w.JVM.heapFrom())...)
	}
	if r.w.Bounded {
		all = append(all, r.process.boundedConfigs(r.cache)...)
		all = append(all, r.derivedConfigs()...)
	}
	return all
}

// streamsPrefix marks the properties of a plan that are configs of Kafka Streams.
const streamsPrefix = "streams."

// derivedConfigs are the configs of Kafka Streams that the plan chose, each with the prefix that wins over all others.
func (l *ledger) derivedConfigs() []Config {
	var all []Config
	for i := range tunable {
		s := &tunable[i]
		if value := s.number.get(l.w, s.role); value.From == Derived {
			all = append(all, Config{Kind: Property, Name: streamsPrefix + s.planName(l.version), Value: strconv.FormatInt(value.Value, 10), From: Derived})
		}
	}
	return all
}

// heapOptions size the heap by percentage of a fixed amount, never with -Xmx: an -Xms above an -Xmx stops the JVM, above a percentage it
// does not, and an -Xmx anywhere wins, so that what the application set stays in force. MaxRAM keeps the heap from growing into memory
// that a raised limit gave to the native side; JDK 27 ignores it, and there the percentage alone must do.
func heapOptions(heap, limit Bytes, jdk int, from Provenance) []Config {
	if limit <= 0 {
		return nil
	}
	percent := strconv.FormatFloat(heapPercentage(heap, limit), 'f', 4, 64)
	option := func(name, value string) Config { return Config{Kind: JVMOption, Name: name, Value: value, From: from} }
	options := []Config{option("-XX:+IgnoreUnrecognizedVMOptions", "")} // first: it holds for what follows
	if jdk < maxRAMGone {
		options = append(options, option("-XX:MaxRAM", strconv.FormatInt(int64(limit), 10)))
	}
	return append(options, option("-XX:MaxRAMPercentage", percent), option("-XX:MinRAMPercentage", percent))
}

// heapPercentage is the percentage of the limit, in steps of 0.0001, that the JVM rounds up to the heap.
func heapPercentage(heap, limit Bytes) float64 {
	return min(math.Floor(float64(heap)/float64(limit)*1e6)/1e4, 100)
}
