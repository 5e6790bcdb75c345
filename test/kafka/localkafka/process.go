// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localkafka runs a Kafka broker and Kafka Streams instances as processes of this machine. The tests use it through kafkatest,
// the calibration directly. The Java programs are those of test/java.
package localkafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
)

// errExitedZero is the end of a process with exit code 0.
var errExitedZero = errors.New("exit code 0")

// Command describes a process.
type Command struct {
	// Name identifies the process in errors; its log is Folder/Name.log.
	Name   string
	Folder string
	// Argv is the command line.
	Argv []string
	// Stdout receives the standard output. Without it, the output goes to the log, as the standard error does.
	Stdout io.Writer
	// OwnNetwork starts the process in a new network namespace.
	OwnNetwork bool
}

// Process is a process that ends with this one.
type Process struct {
	Name string
	// Log is the path of the log.
	Log string
	// PID is the process id.
	PID int
	// Stdin is connected to the standard input.
	Stdin io.WriteCloser

	cmd      *exec.Cmd
	done     chan struct{}
	err      error // of Wait; valid once done is closed
	signaled atomic.Bool
}

// Start starts a process. It is killed when the context is done.
func Start(ctx context.Context, command Command) (*Process, error) {
	p := &Process{Name: command.Name, Log: filepath.Join(command.Folder, command.Name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.Log)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, command.Argv[0], command.Argv[1:]...)
	p.cmd.SysProcAttr = attributes(command.OwnNetwork)
	p.cmd.Stderr, p.cmd.Stdout = log, log
	if command.Stdout != nil {
		p.cmd.Stdout = command.Stdout
	}
	if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	started := make(chan error)
	go p.run(log, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Name, err)
	}
	return p, nil
}

// run starts the process and waits for its end on one thread: the kernel sends the "parent death signal" when the thread that started
// the child ends.
func (p *Process) run(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = log.Close() }()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	p.PID = p.cmd.Process.Pid
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
}

// Signal sends a signal unless the process has ended, and waits for its end.
func (p *Process) Signal(signal syscall.Signal) error {
	p.signaled.Store(true)
	var err error
	if !p.Ended() {
		err = p.cmd.Process.Signal(signal)
	}
	<-p.done
	_ = p.Stdin.Close()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Err is an error if the process has ended.
func (p *Process) Err() error {
	if !p.Ended() {
		return nil
	}
	return fmt.Errorf("%s has ended (%w): see %s", p.Name, cmp.Or(p.err, errExitedZero), p.Log)
}

// Failure is an error if the process has ended without a call of Signal.
func (p *Process) Failure() error {
	if p.signaled.Load() {
		return nil
	}
	return p.Err()
}

// Tail returns the last lines of the log.
func (p *Process) Tail(lines int) string { return tail(p.Log, lines) }

func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
