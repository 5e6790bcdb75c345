// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// errEnded stands for the end of a process with exit code 0.
var errEnded = errors.New("exit code 0")

// process is a Java process that ends with this one.
type process struct {
	name string
	log  string
	pid  int
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; valid once done is closed
	// killed says that its end was wanted.
	killed atomic.Bool
}

// enterCgroup writes its own process id to a file and becomes the command that is its arguments.
const enterCgroup = `echo $$ > "$0" && exec "$@"`

// start starts a command, in a cgroup if one is given. Standard error goes to a log in the folder; each line of standard output to
// onLine, or to the log as well if that is nil.
func start(ctx context.Context, folder, name string, in *cgroup, onLine func([]byte), argv ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(folder, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	if in != nil {
		argv = append([]string{"sh", "-c", enterCgroup, in.procs()}, argv...)
	}
	p.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr, p.cmd.Stdout = log, log
	var lines io.ReadCloser
	if onLine != nil {
		p.cmd.Stdout = nil
		if lines, err = p.cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	started := make(chan error)
	go p.run(log, lines, onLine, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// run starts the command and waits for its end on one thread: the kernel ends the child when the thread ends that started it.
func (p *process) run(log *os.File, lines io.Reader, onLine func([]byte), started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = log.Close() }()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = p.cmd.Process.Pid
	started <- nil
	if lines != nil {
		scanner := bufio.NewScanner(lines)
		for scanner.Scan() {
			onLine(scanner.Bytes())
		}
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// end ends the process with a signal and waits for it.
func (p *process) end(signal syscall.Signal) {
	p.killed.Store(true)
	_ = p.cmd.Process.Signal(signal)
	<-p.done
}

// ended says whether it has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failure is an error if the process ended without being told to.
func (p *process) failure() error {
	if !p.ended() || p.killed.Load() {
		return nil
	}
	return fmt.Errorf("%s has ended (%w): see %s", p.name, cmp.Or(p.err, errEnded), p.log)
}

// cpuTime is what the process has used of the processors so far.
func (p *process) cpuTime() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0
	}
	return parseCPUTime(string(text))
}

// ticksPerSecond is USER_HZ, which is 100 on all Linux systems of today.
const ticksPerSecond = 100

// parseCPUTime reads utime and stime, the fields 14 and 15 of /proc/<pid>/stat; the second field may hold anything.
func parseCPUTime(stat string) time.Duration {
	all := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(all) < 13 {
		return 0
	}
	ticks := int64(0)
	for _, field := range all[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}
