// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a testing.TB that records errors instead of failing the test.
type recorder struct {
	testing.TB
	errors strings.Builder
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.errors, format, args...) }

func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	file := filepath.Join("testdata", "plan.golden")
	if err := os.Mkdir("testdata", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("heap 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { *update = false })

	cases := []struct {
		name, got   string
		update      bool
		wantErr     bool
		wantContent string
	}{
		{name: "equal", got: "heap 1\n", wantContent: "heap 1\n"},
		{name: "different", got: "heap 2\n", wantErr: true, wantContent: "heap 1\n"},
		{name: "different, with -update", got: "heap 2\n", update: true, wantContent: "heap 2\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			*update = c.update
			r := &recorder{TB: t}
			Compare(r, "plan.golden", c.got)
			if failed := r.errors.Len() > 0; failed != c.wantErr {
				t.Errorf("failed: %t, want %t: %s", failed, c.wantErr, r.errors.String())
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(content) != c.wantContent {
				t.Errorf("the file contains %q, want %q", content, c.wantContent)
			}
		})
	}
}

func TestCompareShowsWholeLines(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o700); err != nil {
		t.Fatal(err)
	}
	const line = "the limit is %d MiB\n"
	text := strings.Repeat(fmt.Sprintf(line, 1024), 2000)
	if err := os.WriteFile(filepath.Join("testdata", "long.golden"), []byte(text+fmt.Sprintf(line, 512)+text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	Compare(r, "long.golden", text+fmt.Sprintf(line, 768)+text)
	for _, want := range []string{`"the limit is 512 MiB"`, `"the limit is 768 MiB"`} {
		if !strings.Contains(r.errors.String(), want) {
			t.Errorf("the error does not contain %s: %s", want, r.errors.String())
		}
	}
}
