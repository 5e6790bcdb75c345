// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// logFragmentationEvery is the interval at which the long run logs a sample.
	logFragmentationEvery = 10 * time.Second
	// trendEvery is the duration of a row of the trend. After settledAfter caches are full, code is compiled and malloc has reached its
	// level of free blocks (measured: memory grows until then; the slope of the rest is due to fragmentation).
	trendEvery   = 10 * time.Minute
	settledAfter = 40 * time.Minute
)

// trendResult is a part of the long run. All amounts are bytes.
type trendResult struct {
	// From is the beginning in minutes after the first load.
	From int `json:"from"`
	// Mean and Most (the maximum) are of the anonymous memory less the heap.
	Mean int64 `json:"mean"`
	Most int64 `json:"most"`
	// Cache is the mean use of the shared cache, JVM the metaspace, compiled code and direct memory at the end.
	Cache int64 `json:"cache"`
	JVM   int64 `json:"jvm"`
	// Stores is the largest number of RocksDB instances.
	Stores int64 `json:"stores"`
	// Processed is the number of records since the start, at the end.
	Processed int64 `json:"processed"`
	// Heap, Bound and Expected are the plan's.
	Heap     int64 `json:"heap"`
	Bound    int64 `json:"bound"`
	Expected int64 `json:"expected"`
}

// fragmentation runs one instance under steady updates for hours, and stores the trend.
func (o *options) fragmentation(ctx context.Context) error {
	s := fragmentation()
	e, end, err := o.experiment(&s)
	if err != nil {
		return err
	}
	defer end()
	plan, err := planned(&s)
	if err != nil {
		return err
	}
	e.setup.limit, e.setup.heap = int64(plan.Limit), int64(plan.Heap)
	if err := e.prepare(ctx, &plan, logFragmentationEvery); err != nil {
		return err
	}
	if err := e.startInstances(ctx); err != nil {
		return err
	}
	if err := e.bounded(ctx); err != nil {
		return err
	}
	if err := e.load(ctx); err != nil {
		return err
	}
	e.watch.enter(phaseSteady)
	stop := make(chan struct{})
	defer close(stop)
	go e.generator.update(ctx, s.Rate, stop)
	if err := e.pause(ctx, o.duration); err != nil {
		return err
	}
	return o.keepTrend(filepath.Join(e.setup.folder, "samples.jsonl"))
}

// keepTrend computes the trend of a long run from its samples and stores it.
func (o *options) keepTrend(samples string) error {
	all, err := readLines[sample](samples)
	if err != nil {
		return err
	}
	s := fragmentation()
	plan, err := planned(&s)
	if err != nil {
		return err
	}
	r := compare(&s, &plan, &measurement{Heap: int64(plan.Heap)})
	trend := trendOf(all, r.Heap)
	for i := range trend {
		trend[i].Heap = r.Heap
		trend[i].Bound = r.Bound
		trend[i].Expected = r.Expected
	}
	return writeLines(filepath.Join(o.results, "fragmentation.jsonl"), trend)
}

// trendOf aggregates the samples of steady updates into rows of trendEvery. An incomplete last row is left out.
func trendOf(samples []sample, heap int64) []trendResult {
	var rows []trendResult
	var begin time.Time
	type sums struct{ count, anon, cache int64 }
	var sum sums
	for i := range samples {
		s := &samples[i]
		if s.Phase != phaseSteady {
			continue
		}
		if begin.IsZero() {
			begin = s.At
		}
		row := int(s.At.Sub(begin) / trendEvery)
		if row >= len(rows) {
			rows = append(rows, trendResult{From: row * int(trendEvery.Minutes())})
			sum = sums{}
		}
		r := &rows[len(rows)-1]
		sum.count++
		sum.anon += s.Anon - heap
		sum.cache += s.CacheUsage
		r.Mean = sum.anon / sum.count
		r.Cache = sum.cache / sum.count
		r.Most = max(r.Most, s.Anon-heap)
		r.Stores = max(r.Stores, s.Stores)
		r.JVM = s.Metaspace + s.CodeCache + s.Direct
		r.Processed = s.Processed
	}
	if n := len(samples); len(rows) > 0 && samples[n-1].At.Sub(begin)%trendEvery < trendEvery-2*logFragmentationEvery {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// slope is the growth of the mean in bytes per hour after settledAfter, by least squares.
func slope(rows []trendResult) float64 {
	var n, sumX, sumY, sumXX, sumXY float64
	for i := range rows {
		if r := &rows[i]; r.From >= int(settledAfter.Minutes()) {
			hours := float64(r.From) / 60
			mean := float64(r.Mean)
			n++
			sumX += hours
			sumY += mean
			sumXX += hours * hours
			sumXY += hours * mean
		}
	}
	if d := n*sumXX - sumX*sumX; d != 0 {
		return (n*sumXY - sumX*sumY) / d
	}
	return 0
}

// fragmentationTable returns the table of the trend.
func fragmentationTable(folder string) (string, error) {
	rows, err := readLines[trendResult](filepath.Join(folder, "fragmentation.jsonl"))
	if err != nil {
		return "", err
	}
	t := table{head: []string{"minutes", "mean", "peak", "cache in use", "metaspace, code, direct", "remainder", "RocksDB instances", "records processed"}}
	for i := range rows {
		r := &rows[i]
		t.add(fmt.Sprintf("%d to %d", r.From, r.From+int(trendEvery.Minutes())), mib(r.Mean), mib(r.Most), mib(r.Cache), mib(r.JVM),
			mib(r.Mean-r.Cache-r.JVM), fmt.Sprint(r.Stores), fmt.Sprint(r.Processed))
	}
	if len(rows) == 0 {
		return t.String(), nil
	}
	last := &rows[len(rows)-1]
	const text = "\nThe bound is %s MiB, the expected peak %s. After the first %d minutes the mean changes by %+.1f MiB per hour (least squares).\n"
	return t.String() + fmt.Sprintf(text, mib(last.Bound), mib(last.Expected), int(settledAfter.Minutes()), slope(rows)/(1<<20)), nil
}
