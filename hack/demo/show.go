// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// shownLines is the number of plan lines that are printed; the others are summed up.
const shownLines = 8

// show prints the results of the steps.
type show struct {
	out io.Writer
}

func (s show) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

// headline prints the title of a step.
func (s show) headline(number, of int, title string) {
	s.printf("\n[%d/%d] %s\n", number, of, title)
}

// indented prints a text with each line indented.
func (s show) indented(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		s.printf("     %s", line)
	}
}

// table prints rows in columns.
func (s show) table(rows ...[]string) {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	_ = columns.Flush() // A strings.Builder never fails to write.
	s.indented(text.String())
}

// pods prints the pods with their tasks and limits, and with their former limits if before is set.
func (s show) pods(v, before *view) {
	rows := [][]string{{"POD", "TASKS", "MEMORY LIMIT"}}
	for _, name := range v.running() {
		_, actual := v.limits(name)
		limit := mebibytes(actual)
		if before != nil {
			_, was := before.limits(name)
			limit = mebibytes(was) + " -> " + limit
		}
		rows = append(rows, []string{name, taskNames(v.tasks[name]), limit})
	}
	s.table(rows...)
	status := v.app.Status
	s.printf("   required limit %s, limit %s, heap %s", quantity(status.RequiredLimit), quantity(status.Limit), quantity(status.Heap))
	if status.PodFailuresTolerated != nil {
		s.printf("; further pod failures tolerated: %d", *status.PodFailuresTolerated)
	}
	s.printf("\n")
}

// lines prints the largest lines of the plan, and the sum of the others for each pool.
func (s show) lines(v *view) {
	lines := slices.Clone(v.app.Status.Lines)
	slices.SortStableFunc(lines, func(a, b v1alpha1.Line) int { return b.Bound.Cmp(*a.Bound) })
	rows := [][]string{{"PLAN OF THE REPRESENTATIVE POD, AFTER THE NEXT POD FAILURE", "POOL", "COUNT", "BOUND", "SOURCE"}}
	others, rest := map[v1alpha1.Pool]int64{}, 0
	for i, line := range lines {
		if i >= shownLines {
			others[line.Pool] += line.Bound.Value()
			rest++
			continue
		}
		count := ""
		if line.Count != nil {
			count = fmt.Sprint(*line.Count)
		}
		rows = append(rows, []string{line.Name, string(line.Pool), count, quantity(line.Bound), string(line.Source)})
	}
	for _, pool := range slices.Sorted(maps.Keys(others)) {
		rows = append(rows, []string{"the rest", string(pool), "", mebibytes(others[pool]), ""})
	}
	s.table(rows...)
}

// moves prints the tasks of each pod before and after the failure.
func (s show) moves(before, after *view) {
	rows := [][]string{{"POD", "BEFORE", "AFTER"}}
	for _, name := range before.running() {
		rows = append(rows, []string{name, taskNames(before.tasks[name]), cmp.Or(taskNames(after.tasks[name]), "-")})
	}
	s.table(rows...)
}

// planChanges prints the changed lines of the plan ConfigMap as a diff.
func (s show) planChanges(before, after *view) {
	s.printf("   changes of the plan ConfigMap, as mounted in both pods:\n")
	for _, key := range slices.Sorted(maps.Keys(after.plan)) {
		if changes := changedLines(before.plan[key], after.plan[key]); len(changes) > 0 {
			s.indented(key + "\n" + strings.Join(changes, "\n"))
		}
	}
}

// changedLines returns the lines that are only in the old text (-) or only in the new text (+).
func changedLines(before, after string) []string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var changes []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			changes = append(changes, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			changes = append(changes, "+ "+line)
		}
	}
	return changes
}

// taskNames returns the task IDs in the notation of Kafka Streams.
func taskNames(tasks []assignment.Task) string {
	names := make([]string, 0, len(tasks))
	for _, task := range tasks {
		names = append(names, task.String())
	}
	return strings.Join(names, " ")
}

// quantity returns an amount in MiB, or "-" if there is none.
func quantity(amount *resource.Quantity) string {
	if amount == nil {
		return "-"
	}
	return mebibytes(amount.Value())
}

// mebibytes returns an amount of bytes in MiB.
func mebibytes(amount int64) string {
	return fmt.Sprintf("%.0f MiB", float64(amount)/(1<<20))
}
