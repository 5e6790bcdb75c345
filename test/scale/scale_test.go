// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Environment variables of the benchmark.
const (
	appsVariable   = "SCALE_APPS"   // the number of applications
	othersVariable = "SCALE_OTHERS" // the number of pods of others
	pageVariable   = "SCALE_PAGE"   // the file to write the results to
)

// setting returns the number in an environment variable.
func setting(tb testing.TB, variable string, otherwise int) int {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		tb.Fatalf("%s must be a positive number, not %q", variable, text)
	}
	return number
}

// BenchmarkScale measures all scenarios once and prints their table.
func BenchmarkScale(b *testing.B) {
	if b.N > 1 {
		b.Fatal("one run takes minutes: set -benchtime=1x")
	}
	r := results{revision: revision()}
	f := newFleet(b, setting(b, appsVariable, 10))
	r.apps = len(f.applications)
	r.pods = f.podCount()
	f.install().stop()
	o, cold := f.coldStart()
	r.cold = cold
	f.progress("cold start: %+v", cold)
	o, r.handOver = f.handOver(o)
	f.progress("change of the leader: %+v", r.handOver)
	r.quiet = f.beQuiet(o, 2*time.Minute)
	f.progress("quiet: %+v", r.quiet)
	r.steady = o.memory()
	r.changes = f.changeEach(o, 20)
	f.progress("single changes: %+v", r.changes)
	r.storm = f.changeAll(o)
	f.progress("storm: %+v", r.storm)
	r.stormed = o.memory()
	r.foreignPods = setting(b, othersVariable, 500)
	f.createForeignPods(r.foreignPods)
	r.withForeign = o.memory()
	r.print(b)
	b.ReportMetric(float64(r.cold.writes.total()), "cold-writes")
	b.ReportMetric(float64(r.storm.writes.total())/float64(r.apps), "storm-writes/app")
}
