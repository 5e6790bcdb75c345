// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"strconv"
)

// maxRAMRemoved is the JDK from which on MaxRAM is ignored (JDK-8369347).
const maxRAMRemoved = 27

// configs returns the settings of the plan.
func (r *layout) configs(heap Bytes) []Config {
	var all []Config
	if r.workload.JVM.HeapMode == HeapPlanned {
		all = append(all, heapOptions(heap, r.limit, r.workload.JVM.Version.Value, r.workload.JVM.heapFrom())...)
	}
	if r.workload.Bounded {
		all = append(all, r.process.boundedConfigs(r.cache)...)
		all = append(all, r.derivedConfigs()...)
	}
	return all
}

// streamsPrefix marks the properties of a plan that are configs of Kafka Streams.
const streamsPrefix = "streams."

// derivedConfigs returns the configs of Kafka Streams that the plan chose, each with the prefix that wins over all others.
func (l *ledger) derivedConfigs() []Config {
	var all []Config
	for i := range tunableSettings {
		s := &tunableSettings[i]
		if value := s.number.get(l.workload, s.role); value.From == Derived {
			all = append(all, Config{Kind: Property, Name: streamsPrefix + s.planName(l.version), Value: strconv.FormatInt(value.Value, 10), From: Derived})
		}
	}
	return all
}

// heapOptions returns the JVM flags of a planned heap. They set percentages of a fixed amount, never -Xmx. An -Xms above an -Xmx stops the
// JVM, an -Xms above a percentage does not. And an -Xmx of the application wins over a percentage, so it stays effective. With MaxRAM a
// raised limit goes to the native side and not to the heap. JDK 27 ignores MaxRAM, and has the percentage alone.
func heapOptions(heap, limit Bytes, jdk int, from Provenance) []Config {
	if limit <= 0 {
		return nil
	}
	percent := strconv.FormatFloat(heapPercentage(heap, limit), 'f', 4, 64)
	option := func(name, value string) Config { return Config{Kind: JVMOption, Name: name, Value: value, From: from} }
	options := []Config{option("-XX:+IgnoreUnrecognizedVMOptions", "")} // first: it applies to the flags after it
	if jdk < maxRAMRemoved {
		options = append(options, option("-XX:MaxRAM", strconv.FormatInt(int64(limit), 10)))
	}
	return append(options, option("-XX:MaxRAMPercentage", percent), option("-XX:MinRAMPercentage", percent))
}

// heapPercentage returns the percentage of the limit, in steps of 0.0001. The JVM rounds it up to the heap.
func heapPercentage(heap, limit Bytes) float64 {
	return min(math.Floor(float64(heap)/float64(limit)*1e6)/1e4, 100)
}
