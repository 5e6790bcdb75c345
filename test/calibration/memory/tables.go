// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// cascadeTable returns the table and the events of both modes.
func cascadeTable(folder string) (string, error) {
	all, err := readLines[cascadeResult](filepath.Join(folder, "cascade.jsonl"))
	if err != nil {
		return "", err
	}
	t := table{head: []string{"", "OOM-killed", "watched", "all tasks after", "longest stall in a rebalance", "longest other stall", "peak anonymous memory",
		"least page cache", "records/s before", "records/s after"}}
	var events strings.Builder
	for i := range all {
		r := &all[i]
		rebalance := "never"
		if r.Rebalance > 0 {
			rebalance = fmt.Sprintf("%d s", r.Rebalance)
		}
		t.add(r.Mode, fmt.Sprintf("%d of %d", r.OOMKilled, r.Instances), fmt.Sprintf("%d s", r.Watched), rebalance,
			fmt.Sprintf("%.1f s", float64(r.StallRebalance)/1000), fmt.Sprintf("%.1f s", float64(r.Stall)/1000), mib(r.Anon)+" of "+mib(r.Limit), mib(r.LeastFile),
			fmt.Sprintf("%.0f", r.Before), fmt.Sprintf("%.0f", r.After))
		fmt.Fprintf(&events, "\n%s, seconds after the failure:\n\n", strings.ToUpper(r.Mode[:1])+r.Mode[1:])
		for _, e := range r.Events {
			fmt.Fprintf(&events, "- %d: %s\n", e.Second, e.What)
		}
	}
	return t.String() + events.String(), nil
}

// throughputTable returns the table of the pairs, and the median of the ratios for each hot set.
func throughputTable(folder string) (string, error) {
	all, err := readLines[throughputResult](filepath.Join(folder, "throughput.jsonl"))
	if err != nil {
		return "", err
	}
	t := table{head: []string{"hot set / cache", "keys", "hot", "pair", withDefaults + ", records/s", bounded, "ratio",
		"per CPU second, " + withDefaults, bounded, "ratio"}}
	var text strings.Builder
	for _, part := range hotSets {
		var rates, perCPU []float64
		for pair := 1; ; pair++ {
			without, with := pairOf(all, pair, part)
			if without == nil || with == nil {
				break
			}
			rates, perCPU = append(rates, with.Rate/without.Rate), append(perCPU, with.PerCPU/without.PerCPU)
			t.add(fmt.Sprintf("%g", part), fmt.Sprint(with.Keys), fmt.Sprint(with.Hot), fmt.Sprint(pair), fmt.Sprintf("%.0f", without.Rate),
				fmt.Sprintf("%.0f", with.Rate), fmt.Sprintf("%.2f", rates[pair-1]), fmt.Sprintf("%.0f", without.PerCPU),
				fmt.Sprintf("%.0f", with.PerCPU), fmt.Sprintf("%.2f", perCPU[pair-1]))
		}
		if len(rates) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\nHot set of %g times the cache: median ratio %.2f, per CPU second %.2f", part, median(rates), median(perCPU))
		if part < 1 {
			fmt.Fprintf(&text, "; the target is at least %.2f", throughputAim)
		}
		text.WriteString(".\n")
	}
	return t.String() + text.String(), nil
}

// pairOf returns the two measurements of a pair with a hot set, nil for a missing one.
func pairOf(all []throughputResult, pair int, part float64) (without, with *throughputResult) {
	for i := range all {
		r := &all[i]
		switch {
		case r.Pair != pair || r.HotPart != part:
		case r.Mode == withDefaults:
			without = r
		default:
			with = r
		}
	}
	return without, with
}

// startTable returns the table of the medians of the starts.
func startTable(folder string) (string, error) {
	all, err := readLines[startResult](filepath.Join(folder, "start.jsonl"))
	if err != nil {
		return "", err
	}
	t := table{head: []string{"median of all starts", "ms to main", "ms to RUNNING", "metaspace", "code cache", "native total", "threads"}}
	for _, mode := range []string{withDefaults, bounded} {
		of := func(value func(*startResult) int64) float64 {
			var values []float64
			for i := range all {
				if all[i].Mode == mode {
					values = append(values, float64(value(&all[i])))
				}
			}
			return median(values)
		}
		inMiB := func(value func(*startResult) int64) string { return fmt.Sprintf("%.1f", of(value)/(1<<20)) }
		t.add(mode, fmt.Sprintf("%.0f", of(func(r *startResult) int64 { return r.First })),
			fmt.Sprintf("%.0f", of(func(r *startResult) int64 { return r.Running })), inMiB(func(r *startResult) int64 { return r.Metaspace }),
			inMiB(func(r *startResult) int64 { return r.CodeCache }), inMiB(func(r *startResult) int64 { return r.Anon }),
			fmt.Sprintf("%.0f", of(func(r *startResult) int64 { return int64(r.Threads) })))
	}
	return t.String(), nil
}

// median returns the median of the values, 0 for none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
