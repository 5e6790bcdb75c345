// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"streamweir.dev/streamweir/memplan"
)

// Throughput: the bounded application against the one with default RocksDB memory, one instance each, with the same heap and the same
// memory for page cache.
const (
	// throughputPairs is the number of pairs of runs, with default memory and bounded in turn.
	throughputPairs = 5
	// throughputUpdates is the number of updates of each measurement.
	throughputUpdates = 100_000
	// throughputRoom is the memory for page cache: the limit of a cgroup is the anonymous and kernel memory of the run before, plus this.
	throughputRoom = 256 * memplan.MiB
	// throughputAim is the smallest acceptable ratio for a hot set of at most half the cache.
	throughputAim = 0.95
)

// hotSets are the measured hot sets, as parts of the cache.
var hotSets = []float64{0.5, 4}

// throughputResult is one measurement.
type throughputResult struct {
	Mode string `json:"mode"`
	Date string `json:"date"`
	// Pair counts from 1; 0 is the run before, which determines the limit.
	Pair int `json:"pair"`
	// Keys and Hot are numbers of keys; HotPart is the size of the hot ones over that of the bounded cache.
	Keys    int     `json:"keys"`
	Hot     int     `json:"hot"`
	HotPart float64 `json:"hotPart"`
	Cache   int64   `json:"cache"`
	Heap    int64   `json:"heap"`
	Limit   int64   `json:"limit"`
	Anon    int64   `json:"anon"`
	// Rate is records per second, PerCPU records per second of processor time of the instance.
	Rate   float64 `json:"rate"`
	PerCPU float64 `json:"perCPU"`
}

// throughputScenario is the application: a lookup, a write and a changelog record for each input record.
func throughputScenario() scenario {
	s := scenario{
		Name: "throughput", Title: "throughput", Topology: "key-value", Stores: 1, Instances: 1, Threads: 2, Tasks: 4,
		ValueBytes: 1000, Speed: 1, Cache: 128 * memplan.MiB,
	}
	s.Keys = s.hotKeys(hotSets[len(hotSets)-1])
	return s
}

// hotKeys is the number of keys whose records take that part of the cache.
func (s *scenario) hotKeys(part float64) int {
	return int(float64(s.Cache) * part / float64(keyBytes+s.ValueBytes))
}

// throughput runs the pairs.
func (o *options) throughput(ctx context.Context) error {
	s := throughputScenario()
	plan, err := planned(&s)
	if err != nil {
		return err
	}
	limits := map[string]int64{}
	var all []throughputResult
	for pair := range throughputPairs + 1 {
		for _, mode := range []string{withDefaults, bounded} {
			limit := limits[mode]
			if pair == 0 {
				limit = int64(8 * memplan.GiB)
			}
			measured, err := o.throughputIn(ctx, &s, &plan, mode, limit)
			if err != nil {
				return fmt.Errorf("%s, pair %d: %w", mode, pair, err)
			}
			for i := range measured {
				measured[i].Pair = pair
				limits[mode] = max(limits[mode], measured[i].Anon+int64(throughputRoom))
				fmt.Printf("%+v\n", measured[i])
			}
			all = append(all, measured...)
		}
		if err := writeLines(filepath.Join(o.results, "throughput.jsonl"), all); err != nil {
			return err
		}
	}
	return nil
}

// throughputIn starts one instance, fills its store, and measures each hot set.
func (o *options) throughputIn(ctx context.Context, s *scenario, plan *memplan.Plan, mode string, limit int64) ([]throughputResult, error) {
	e, end, err := o.experiment(s)
	if err != nil {
		return nil, err
	}
	defer end()
	e.setup.limit, e.setup.heap = limit, int64(plan.Heap)
	if mode == withDefaults {
		e.setup.agent = ""
	}
	if err := e.prepare(ctx, plan, logSamplesEvery); err != nil {
		return nil, err
	}
	if err := e.startInstances(ctx); err != nil {
		return nil, err
	}
	if err := e.load(ctx); err != nil {
		return nil, err
	}
	var all []throughputResult
	for _, part := range hotSets {
		r := throughputResult{Mode: mode, Date: time.Now().UTC().Format(time.DateOnly), Keys: s.Keys, Hot: s.hotKeys(part), HotPart: part,
			Cache: int64(s.Cache), Heap: int64(plan.Heap), Limit: limit}
		// The first burst warms up the caches, the second is measured.
		for range 2 {
			e.watch.enter(fmt.Sprintf("hot set of %g", part))
			if err := e.burst(ctx, &r); err != nil {
				return nil, err
			}
		}
		for _, p := range e.watch.phases {
			r.Anon = max(r.Anon, p.Anon+p.Kernel)
		}
		all = append(all, r)
	}
	e.instances[0].stop(syscall.SIGTERM)
	return all, nil
}

// burst writes updates of the hot set as fast as the broker accepts them, and measures the time until they are processed.
func (e *experiment) burst(ctx context.Context, r *throughputResult) error {
	i := e.instances[0]
	e.generator.hot = r.Hot
	from, cpu, before := time.Now(), i.cpuTime(), e.processed()
	if err := e.generator.burst(ctx, throughputUpdates); err != nil {
		return err
	}
	err := e.until(ctx, loadTime, "the updates are processed", func() error {
		if done := e.processed() - before; done < throughputUpdates {
			return fmt.Errorf("%d of %d", done, throughputUpdates)
		}
		return nil
	})
	done := float64(e.processed() - before)
	r.Rate, r.PerCPU = done/time.Since(from).Seconds(), done/(i.cpuTime()-cpu).Seconds()
	return err
}
