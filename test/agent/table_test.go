// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// table is what was run and what came out.
type table struct {
	mu   sync.Mutex
	rows []row
	// notes are sections with figures, by title.
	notes map[string]string
}

type row struct{ application, jvm, result, remark string }

// add adds a row, if the test has not failed.
func (t *table) add(tb testing.TB, application string, java jvm, result, remark string) {
	tb.Helper()
	if tb.Failed() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, row{application, fmt.Sprintf("%s (%s)", java.name, java.version), result, remark})
}

// note adds a section.
func (t *table) note(title, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notes == nil {
		t.notes = map[string]string{}
	}
	t.notes[title] = text
}

const preface = `<!-- Written by make compatibility. -->
# What the agent was tried with
`

// text is the page.
func (t *table) text() string {
	var page strings.Builder
	page.WriteString(preface)
	fmt.Fprint(&page, "\n| application | JVM | result | remark |\n|---|---|---|---|\n")
	slices.SortFunc(t.rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.application, b.application), strings.Compare(a.jvm, b.jvm), strings.Compare(a.remark, b.remark))
	})
	for _, r := range t.rows {
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", r.application, r.jvm, r.result, r.remark)
	}
	return page.String()
}

// check writes the page, or compares its rows with those that were found.
func (t *table) check(tb testing.TB, path string, write bool) {
	tb.Helper()
	page := []byte(t.text())
	if write {
		if err := os.WriteFile(path, page, 0o644); err != nil { //nolint:gosec // a page of the documentation
			tb.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, page) {
		tb.Errorf("%s is not what was found (%v); make compatibility writes it", path, err)
	}
}
