// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a testing.TB that records the end of a test instead of ending it.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// run calls f in a goroutine, which f may end as a test does.
func (r *recorder) run(f func(testing.TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
}

func TestMissingToolsSkipTheTestAndFailItInCI(t *testing.T) {
	cases := map[string]struct {
		ci                     string
		wantSkipped, wantFails bool
	}{
		"on a developer's machine": {wantSkipped: true},
		"in CI":                    {ci: "true", wantFails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CI", c.ci)
			t.Setenv("PATH", t.TempDir())
			var r recorder
			r.run(require)
			if got := r.skipped != ""; got != c.wantSkipped {
				t.Errorf("skipped: %q, want %t", r.skipped, c.wantSkipped)
			}
			if got := r.failed != ""; got != c.wantFails {
				t.Errorf("failed: %q, want %t", r.failed, c.wantFails)
			}
			for _, tool := range []string{`Java 17 (no "java" on the PATH)`, `iproute2 (no "ip" on the PATH)`} {
				if !strings.Contains(r.skipped+r.failed, tool) {
					t.Errorf("%q does not name %s", r.skipped+r.failed, tool)
				}
			}
		})
	}
}
