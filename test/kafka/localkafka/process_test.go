// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package localkafka

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	cases := map[string]struct {
		writes, want []string
	}{
		"no output":                    {},
		"an unfinished line":           {writes: []string{"one\ntw"}, want: []string{"one"}},
		"two lines in one write":       {writes: []string{"one\ntwo\n"}, want: []string{"one", "two"}},
		"a line in several writes":     {writes: []string{"o", "n", "e\n"}, want: []string{"one"}},
		"the end of one, a whole line": {writes: []string{"o", "ne\ntwo\n"}, want: []string{"one", "two"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			lines := NewLines(func(line []byte) { got = append(got, string(line)) })
			for _, data := range c.writes {
				if n, err := io.WriteString(lines, data); n != len(data) || err != nil {
					t.Fatalf("Write(%q) = %d, %v", data, n, err)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("lines = %q, want %q", got, c.want)
			}
		})
	}
}

func TestProcessThatEndsByItself(t *testing.T) {
	var output strings.Builder
	p, err := Start(t.Context(), Command{
		Name: "child", Folder: t.TempDir(), Argv: []string{"sh", "-c", "echo out; echo problem >&2; exit 3"}, Stdout: &output,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	for _, err := range []error{p.Err(), p.Failure()} {
		if err == nil || !strings.Contains(err.Error(), "child has ended (exit status 3)") {
			t.Errorf("error = %v, want one with the exit status", err)
		}
	}
	if got := output.String(); got != "out\n" {
		t.Errorf("standard output = %q", got)
	}
	if got := p.Tail(1); got != "problem" {
		t.Errorf("log = %q", got)
	}
}

func TestProcessThatIsKilled(t *testing.T) {
	p, err := Start(t.Context(), Command{Name: "child", Folder: t.TempDir(), Argv: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Ended() || p.Err() != nil || p.Failure() != nil {
		t.Errorf("running process: ended %t, %v, %v", p.Ended(), p.Err(), p.Failure())
	}
	for range 2 {
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Errorf("Signal = %v", err)
		}
	}
	if p.Err() == nil {
		t.Error("Err = nil after the end")
	}
	if err := p.Failure(); err != nil {
		t.Errorf("Failure = %v, want nil for a process that was killed on purpose", err)
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	_, err := Start(t.Context(), Command{Name: "child", Folder: t.TempDir(), Argv: []string{filepath.Join(t.TempDir(), "none")}})
	if err == nil || !strings.Contains(err.Error(), "start child") {
		t.Errorf("error = %v", err)
	}
}

func TestEventually(t *testing.T) {
	calls := 0
	err := Eventually(t.Context(), time.Minute, "the third call", func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("%d calls, error %v", calls, err)
	}

	final := errors.New("ended")
	err = Eventually(t.Context(), time.Minute, "the end", func(context.Context) error {
		return errors.Join(Final(final), errors.New("refused"))
	})
	if !errors.Is(err, final) {
		t.Errorf("error = %v, want the final one", err)
	}

	err = Eventually(t.Context(), time.Millisecond, "the impossible", func(context.Context) error { return errors.New("no") })
	if err == nil || !strings.Contains(err.Error(), "the impossible: not within 1ms: no") {
		t.Errorf("error = %v", err)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[int]string{1: "c", 2: "b\nc", 3: "a\nb\nc", 60: "a\nb\nc"} {
		if got := tail(path, lines); got != want {
			t.Errorf("tail(%d) = %q, want %q", lines, got, want)
		}
	}
	if got := tail(filepath.Join(t.TempDir(), "none"), 1); !strings.Contains(got, "no such file") {
		t.Errorf("tail of no file = %q", got)
	}
}
