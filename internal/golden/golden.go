// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares the output of tests with golden files. `go test -update` rewrites the files of a package.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files instead of comparing with them")

// Compare compares a text with the file of that name in testdata, or rewrites the file.
func Compare(tb testing.TB, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" { // by line
		tb.Errorf("%s differs from its golden file (-want +got); if the change is intended, run the test with -update:\n%s", name, diff)
	}
}
