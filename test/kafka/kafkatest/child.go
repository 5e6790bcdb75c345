// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// logTail is how many of the last lines of a process's log a failed test shows.
const logTail = 60

// errEnded stands for the end of a process with exit code 0.
var errEnded = errors.New("exit code 0")

// child is a Java process that ends with the test.
type child struct {
	name  string
	log   string
	stdin io.WriteCloser
	pid   int
	cmd   *exec.Cmd
	done  chan struct{}
	err   error // of Wait; valid once done is closed
}

// startChild starts a command whose standard error goes to a log, and whose standard output goes to stdout, or to the
// log if that is nil.
func startChild(tb testing.TB, name string, ownNetwork bool, stdout io.Writer, argv ...string) *child {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name+".log")
	log, err := os.Create(path)
	if err != nil {
		tb.Fatalf("log of %s: %v", name, err)
	}
	cmd := exec.CommandContext(tb.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr = attributes(ownNetwork)
	cmd.Stderr, cmd.Stdout = log, log
	if stdout != nil {
		cmd.Stdout = stdout
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatalf("standard input of %s: %v", name, err)
	}
	c := &child{name: name, log: path, stdin: stdin, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go c.run(log, started)
	if err := <-started; err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	tb.Cleanup(func() { c.end(tb) })
	return c
}

// run starts the command and waits for its end on one thread, as the kernel's "parent death signal" is sent when the
// thread that started the child ends.
func (c *child) run(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = log.Close() }()
	if err := c.cmd.Start(); err != nil {
		started <- err
		return
	}
	c.pid = c.cmd.Process.Pid
	started <- nil
	c.err = c.cmd.Wait()
	close(c.done)
}

// signal sends the signal unless the process has ended, and waits for its end.
func (c *child) signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if !c.ended() {
		if err := c.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			tb.Errorf("signal %s to %s: %v", signal, c.name, err)
		}
	}
	<-c.done
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// failure is an error if the process has ended.
func (c *child) failure() error {
	if !c.ended() {
		return nil
	}
	return fmt.Errorf("%s has ended: %w", c.name, cmp.Or(c.err, errEnded))
}

func (c *child) end(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("log of %s, the last %d lines:\n%s", c.name, logTail, tail(c.log, logTail))
	}
	c.signal(tb, syscall.SIGKILL)
	_ = c.stdin.Close()
}

func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
