// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// table is the table of results.
type table struct {
	mu   sync.Mutex
	rows map[string][]row // by the scenario
}

type row struct{ Application, JVM, Result, Remark string }

// add adds a row of a scenario unless it has failed.
func (t *table) add(tb testing.TB, application string, java jvm, result, remark string) {
	tb.Helper()
	if tb.Failed() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string][]row{}
	}
	t.rows[tb.Name()] = append(t.rows[tb.Name()], row{application, fmt.Sprintf("%s (%s)", java.name, java.version), result, remark})
}

// keep writes the rows of a scenario into a folder. take reads them.
func (t *table) keep(tb testing.TB, folder string) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	content, err := json.Marshal(t.rows[tb.Name()])
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, id(tb)+".json"), content, 0o600)
	}
	if err != nil {
		tb.Errorf("keep the result: %v", err)
	}
}

// take reads the rows of a scenario that has passed before, and reports whether it found any.
func (t *table) take(tb testing.TB, folder string) bool {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(folder, id(tb)+".json"))
	if err != nil {
		return false
	}
	var rows []row
	if err := json.Unmarshal(content, &rows); err != nil {
		tb.Fatalf("a kept result: %v", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string][]row{}
	}
	t.rows[tb.Name()] = rows
	return true
}

const preface = `<!-- Written by make compatibility: change test/agent/table_test.go, not this page. -->

# Compatibility of the agent

Each row is a real application in a real JVM, on a real broker, with the agent's jar as the operator mounts it. Nothing is simulated. The
application reads a topic into a key-value store and a window store. The result *bounded* means:

- The application has processed its records, a stream thread was added and removed, and it was closed and opened again, so all its stores
  were opened at least twice.
- The report contains the active bounds, the origin of every setting, and all tasks and stores.
- RocksDB's own metrics, which the application reads independently, show a cache of the planned capacity for every store, and its consumers
  were created with the planned settings. To read them the application evaluates all its metrics and all its MBeans, as exporters do.
- The application ended in order, with no exception in its output.

*Unaffected* means: the same as without the agent. The last column has the reasons of the agent's findings, which are in the report and on
standard error.

` + "`make test`" + ` runs the rows that cover every class of hazard: the oldest and the newest Kafka Streams on both JDKs, both frameworks, custom
config setters, class loaders, another agent, images that lack a module, no Kafka Streams, broken plans, continuous rebalances.
` + "`make compatibility`" + ` runs all rows and writes this page. It needs a JDK 17, a JDK 25, and a machine with Debian's archive, whose unstable
release provides Java 8 and 11.

Not tested, because it was not available: Eclipse OpenJ9. A native image has no agent: it has default RocksDB memory and never reports that
it is bounded, so its limit never goes below the template's.
`

// text returns the page.
func (t *table) text() string {
	var page strings.Builder
	page.WriteString(preface)
	fmt.Fprint(&page, "\n| application | JVM | result | findings and remarks |\n|---|---|---|---|\n")
	rows := slices.Concat(slices.Collect(maps.Values(t.rows))...)
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.Application, b.Application), strings.Compare(a.JVM, b.JVM), strings.Compare(a.Remark, b.Remark))
	})
	for _, r := range rows {
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", r.Application, r.JVM, r.Result, r.Remark)
	}
	return page.String()
}

// write writes the page.
func (t *table) write(tb testing.TB, path string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(t.text()), 0o644); err != nil {
		tb.Fatal(err)
	}
}
