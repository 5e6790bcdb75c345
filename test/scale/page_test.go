// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// results are the results of all scenarios.
type results struct {
	revision                     string // of the checkout when the operator was built
	apps, pods, foreignPods      int
	cold, handOver               takeover
	quiet                        quiet
	changes                      changes
	storm                        storm
	steady, stormed, withForeign memory
}

// row is one row of the table: the figure of commit 8444359 with 300 applications and 1,942 pods, and the present one.
type row struct{ figure, before, now string }

const mebibyte = 1 << 20

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// rows returns the table.
func (r *results) rows() []row {
	apps := float64(r.apps)
	single := float64(max(1, r.changes.count))
	mib := func(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/mebibyte) }
	foreign := (r.withForeign.live - r.stormed.live) / float64(r.foreignPods) / 1024
	return []row{
		{"**Cold start, nothing to change**", "", ""},
		{"every application passed once after", "17.0 s", seconds(r.cold.judged)},
		{"writes", "3,066", fmt.Sprintf("%d %s", r.cold.writes.total(), r.cold.writes.per(1))},
		{"conditions moved", "2,400", fmt.Sprint(len(r.cold.moved))},
		{"passes of an application", "3.4", fmt.Sprintf("%.1f", float64(r.cold.passes)/apps)},
		{"CPU time of the operator", "10.1 s", seconds(r.cold.cpu)},
		{"**Change of the leader**", "", ""},
		{"every application passed once after", "as above", seconds(r.handOver.judged)},
		{"writes", "as above", fmt.Sprintf("%d %s", r.handOver.writes.total(), r.handOver.writes.per(1))},
		{"conditions moved", "as above", fmt.Sprint(len(r.handOver.moved))},
		{"**Change of one application**", "", ""},
		{"first resize, 50th and 99th percentile", "29 and 104 ms", percentile(r.changes.firstResize, 50) + ", " + percentile(r.changes.firstResize, 99)},
		{"everything right, 50th and 99th percentile", "281 and 627 ms", percentile(r.changes.done, 50) + ", " + percentile(r.changes.done, 99)},
		{"passes", "6.6", fmt.Sprintf("%.1f", float64(r.changes.passes)/single)},
		{"writes", "39.7", fmt.Sprintf("%.1f", float64(r.changes.writes.total())/single)},
		{"of them", "patch pods 12.6, patch pods/resize 9.4, events 9.1, patch streamapps/status 4.7, patch configmaps 2.0, patch podinjections 2.0",
			fmt.Sprintf("%s (%.1f pods)", r.changes.writes.per(r.changes.count), float64(r.changes.pods)/single)},
		{"**Every application changes within 10 s**", "", ""},
		{"everything right after", "83.7 s", seconds(r.storm.right)},
		{"one application right, 50th and 90th percentile", "60,000 and 74,500 ms", percentile(r.storm.settled, 50) + ", " + percentile(r.storm.settled, 90)},
		{"passes of an application; failed passes", "3.2; 0", fmt.Sprintf("%.1f; %d", float64(r.storm.passes)/apps, r.storm.failed)},
		{"writes for an application", "34.3", fmt.Sprintf("%.1f: %s", float64(r.storm.writes.total())/apps, r.storm.writes.per(r.apps))},
		{"CPU time of the operator", "45.1 s", seconds(r.storm.cpu)},
		{"**Nothing changes**", "", ""},
		{"passes in two minutes", "0", fmt.Sprint(r.quiet.passes)},
		{"requests to the API server in a minute", "30", fmt.Sprintf("%.0f", float64(r.quiet.requests.total())/r.quiet.minutes)},
		{"CPU time of the operator in a minute", "3.05 s", fmt.Sprintf("%.2f s", r.quiet.cpu.Seconds()/r.quiet.minutes)},
		{"**Memory**", "", ""},
		{"resident, steady", "273 MiB", mib(r.steady.resident)},
		{"live heap; stacks", "79 MiB; 47 MiB", mib(r.steady.live) + "; " + mib(r.steady.stacks)},
		{"goroutines", "5,985", fmt.Sprint(r.steady.goroutines)},
		{"resident after the storm; peak", "298 MiB; 401 MiB", mib(r.stormed.resident) + "; " + mib(r.stormed.peak)},
		{"live heap for a pod of others", "13.1 KiB", fmt.Sprintf("%.1f KiB", foreign)},
	}
}

// page is the text around the table.
const page = `<!-- Written by make scale: change test/scale, not this page. -->

# Scale

The operator is a process of its own, built from this checkout, with the flags and permissions of config/default, on a real API server with
etcd. Pods are created through the API, so the injection policy runs for each. Workload controllers, scheduler, kubelets and agents are
simulated: a resize is carried out at once, a refreshed pod loads its plan at once, and an agent reports 6 tasks with 2 stores each. Requests
are counted in the API server's audit log. A change multiplies the tasks of each pod by 6, a second one by 11/6, so that every limit has to be
raised.

Operator, API server, etcd, the simulation and all other programs share the machine. Times depend on its load; numbers of writes and passes,
CPU time and memory hardly do. The second column was measured at commit 8444359 with 300 applications and 1,942 pods, on two cores with a load
average of 2 to 5. The third is for
%s.

%s`

// print prints the table, and writes the page if a file is given.
func (r *results) print(tb testing.TB) {
	tb.Helper()
	var table strings.Builder
	table.WriteString("| figure | commit 8444359 | now |\n|---|---|---|\n")
	for _, row := range r.rows() {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", row.figure, row.before, strings.TrimSpace(row.now))
	}
	fmt.Fprintln(os.Stderr, table.String())
	path := os.Getenv(pageVariable)
	if path == "" {
		return
	}
	measured := fmt.Sprintf("%d applications with %d pods, and %d pods of others in the last row: commit %s,\n%s, %d cores with a load average of %s, %s",
		r.apps, r.pods, r.foreignPods, r.revision, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), loadAverage(), runtime.Version())
	if err := os.WriteFile(path, fmt.Appendf(nil, page, measured, table.String()), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// loadAverage returns the average number of running processes in the last 15 minutes, those of other programs included.
func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(data)); err == nil && len(fields) > 2 {
		return fields[2]
	}
	return "unknown"
}

// revision returns the commit of the checkout.
func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output() //nolint:noctx // it takes milliseconds
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func TestPercentile(t *testing.T) {
	var durations []time.Duration
	for i := range 100 {
		durations = append(durations, time.Duration(i+1)*time.Millisecond)
	}
	slices.Reverse(durations)
	for percent, want := range map[int]string{50: "50 ms", 99: "99 ms", 100: "100 ms"} {
		if got := percentile(durations, percent); got != want {
			t.Errorf("percentile %d is %s, want %s", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != "-" {
		t.Errorf("the percentile of nothing is %s", got)
	}
}
