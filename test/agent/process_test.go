// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// maxWait is the time limit of one command of an application and of each wait for a report. It is long because tests share the machine's cores.
const maxWait = 5 * time.Minute

// program is the description of a Java process.
type program struct {
	jvm jvm
	// prefix is a command that executes the JVM.
	prefix []string
	// options are the options of the JVM.
	options []string
	// run is the class or the jar with its arguments.
	run []string
	env []string
	// agent is the agent's jar.
	agent string
	// plan is the folder of the agent's plan. Without a plan the agent is not loaded.
	plan string
	// before and after are the options of other agents before and after ours.
	before, after []string
	// ownHeap is set if the options set the heap.
	ownHeap bool
	// port is the agent's port. Zero means any free port.
	port int
}

// process is a running Java process. It ends with the test.
type process struct {
	port  int
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *transcript
	done  chan struct{}
	err   error // the result of Wait; valid after done is closed
}

// start starts a program as in a pod: the JVM reads the agent from the environment.
func start(tb testing.TB, p program) *process {
	tb.Helper()
	argv := append([]string{}, p.prefix...)
	argv = append(argv, p.jvm.prefix...)
	argv = append(argv, p.jvm.java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
	if !p.ownHeap {
		argv = append(argv, "-Xmx96m")
	}
	argv = append(argv, p.options...)
	argv = append(argv, p.run...)
	// A clean-up ends the process after the end of the test's context, and logs the stacks of its threads.
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(append(cleanEnvironment(), "STREAMWEIR_POD_UID="+podUID), p.env...)
	running := &process{cmd: cmd, port: p.port, done: make(chan struct{}), out: newTranscript()}
	if p.plan != "" {
		if running.port == 0 {
			running.port = freePort(tb)
		}
		cmd.Env = append(cmd.Env, p.injection(p.agent, running.port))
	}
	cmd.Stdout, cmd.Stderr = running.out, running.out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatalf("standard input: %v", err)
	}
	running.stdin = stdin
	started := make(chan error)
	go running.runOnOneThread(started)
	if err := <-started; err != nil {
		tb.Fatalf("start %s: %v", argv[0], err)
	}
	tb.Cleanup(func() { running.end(tb) })
	return running
}

// runOnOneThread starts the command and waits for its end on one thread, because the kernel ends the process with the thread that started it.
func (p *process) runOnOneThread(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
	p.out.end()
}

// injection returns the environment variable with the agent, as the operator injects it. Java 8 does not read JDK_JAVA_OPTIONS.
func (p program) injection(jar string, port int) string {
	ours := fmt.Sprintf("-javaagent:%s=plan=%s,port=%d", jar, p.plan, port)
	all := strings.Join(append(append(append([]string{}, p.before...), ours), p.after...), " ")
	if p.jvm.jdkJavaOptions {
		return "JDK_JAVA_OPTIONS=" + all
	}
	return "JAVA_TOOL_OPTIONS=" + all
}

// cleanEnvironment returns the environment of the test without the variables that a JVM reads.
func cleanEnvironment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "JDK_JAVA_OPTIONS=") && !strings.HasPrefix(entry, "JAVA_TOOL_OPTIONS=") {
			env = append(env, entry)
		}
	}
	return env
}

// send sends a command and returns its result.
func (p *process) send(tb testing.TB, command string) string {
	tb.Helper()
	if _, err := fmt.Fprintln(p.stdin, command); err != nil {
		tb.Fatalf("command %q: %v", command, err)
	}
	result, err := p.result()
	if err == nil && strings.HasPrefix(result, "error") {
		err = errors.New(result)
	}
	if err != nil {
		tb.Fatalf("command %q: %v", command, err)
	}
	return result
}

// result waits for the result of the next command.
func (p *process) result() (string, error) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case result, open := <-p.out.results:
		if !open {
			<-p.done
			return "", p.ended()
		}
		return result, nil
	case <-timer.C:
		return "", fmt.Errorf("no result after %s", maxWait)
	}
}

// ended returns an error if the process has ended.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("the process has ended: %w", cmp.Or(p.err, errors.New("exit code 0")))
	default:
		return nil
	}
}

// ready waits until the application accepts commands.
func (p *process) ready(tb testing.TB) {
	tb.Helper()
	if result, err := p.result(); err != nil || result != "ready" {
		tb.Fatalf("the application is not ready: %q, %v", result, err)
	}
}

// stop shuts the application down, and checks that it ended without a failure and logged no error.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	p.send(tb, "stop")
	_ = p.stdin.Close()
	p.wait(tb)
	if p.err != nil {
		tb.Errorf("the application ended with %v, want exit code 0", p.err)
	}
	if complaint := p.out.complaint(); complaint != "" {
		tb.Errorf("the application logged: %s", complaint)
	}
}

// wait waits for the end of the process.
func (p *process) wait(tb testing.TB) {
	tb.Helper()
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		tb.Fatalf("the process still runs after %s", maxWait)
	}
}

// end kills the process. If the test has failed, it logs the output of the process and the stacks of its threads.
func (p *process) end(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		before := len(p.out.all())
		p.dumpThreads()
		text := p.out.all()
		tb.Logf("%s\noutput:\n%s\n\nthreads, if it still runs:\n%s", strings.Join(p.cmd.Args, " "), last(text[:before]), text[before:])
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.stdin.Close()
}

// dumpThreads makes a JVM write the stacks of its threads, and waits for them.
func (p *process) dumpThreads() {
	const timeout = 10 * time.Second
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	tick := time.NewTicker(timeout / 100)
	defer tick.Stop()
	for !strings.Contains(p.out.all(), "JNI global refs") {
		select {
		case <-p.done:
			return
		case <-timer.C:
			return
		case <-tick.C:
		}
	}
}

// last returns the end of a text.
func last(text string) string {
	const size = 6000 // bytes: about 60 lines
	return text[max(0, len(text)-size):]
}

// transcript records the output of a process. Lines that begin with "@ " are results of commands.
type transcript struct {
	results chan string
	mu      sync.Mutex
	text    bytes.Buffer
	partial []byte
	ended   bool
}

func newTranscript() *transcript {
	const capacity = 1000 // of unread results: a command has one
	return &transcript{results: make(chan string, capacity)}
}

func (t *transcript) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(data)
	t.partial = append(t.partial, data...)
	for {
		end := bytes.IndexByte(t.partial, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := string(t.partial[:end])
		t.partial = t.partial[end+1:]
		if result, ok := strings.CutPrefix(line, "@ "); ok && !t.ended {
			t.results <- result
		}
	}
}

func (t *transcript) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		close(t.results)
	}
}

func (t *transcript) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// complaints matches lines of a log with an exception, an error or a crash.
var complaints = regexp.MustCompile(`(?m)^.*(Exception|Error\b|\bERROR\b|\bSEVERE\b|SIGSEGV|^\s+at [\w.$/]+\().*$`)

// complaint returns the first line with an error; "" without one.
func (t *transcript) complaint() string { return complaints.FindString(t.all()) }

// findings returns the reasons of the agent's lines on standard error.
func (t *transcript) findings() []string {
	var reasons []string
	for _, match := range findingLine.FindAllStringSubmatch(t.all(), -1) {
		reasons = append(reasons, match[1])
	}
	return reasons
}

var findingLine = regexp.MustCompile(`(?m)^streamweir: (\w+): `)

// freePort returns a port that is free on all addresses at the moment.
func freePort(tb testing.TB) int {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", ":0")
	if err != nil {
		tb.Fatalf("free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// listening reports whether a process listens on a port.
func listening(tb testing.TB, port int) bool {
	tb.Helper()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	connection, err := dialer.DialContext(tb.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
