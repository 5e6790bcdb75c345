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

// patience bounds one command of an application, and each wait for a report; generous, since tests share the machine's cores.
const patience = 5 * time.Minute

// program is a Java process to be.
type program struct {
	jvm jvm
	// prefix is a command that becomes the process.
	prefix []string
	// options are the JVM's, run is the class or jar with its arguments.
	options, run []string
	env          []string
	// agent is the agent's jar, plan the folder of its plan; without a plan the agent is not there at all.
	agent, plan string
	// agents are other agents' options, before and after ours.
	before, after []string
	// port is the agent's; any free one if 0.
	port int
}

// process is a running Java process. It ends with the test.
type process struct {
	port  int
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *transcript
	done  chan struct{}
	err   error // of Wait; valid once done is closed
}

// start starts a program as it is started in a pod: the agent comes through the environment, where the JVM reads it.
func start(tb testing.TB, p program) *process {
	tb.Helper()
	argv := append([]string{}, p.prefix...)
	argv = append(argv, p.jvm.prefix...)
	argv = append(argv, p.jvm.java, "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
	argv = append(argv, p.options...)
	argv = append(argv, p.run...)
	// It is ended by a clean-up, which comes after the end of the test's context, and shows what its threads do.
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

// runOnOneThread starts the command and waits for its end, as the kernel ends it when the thread that started it ends.
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

// injection is the environment variable that brings the agent in, as the operator injects it. Java 8 does not know the first one.
func (p program) injection(jar string, port int) string {
	ours := fmt.Sprintf("-javaagent:%s=plan=%s,port=%d", jar, p.plan, port)
	all := strings.Join(append(append(append([]string{}, p.before...), ours), p.after...), " ")
	if p.jvm.jdkJavaOptions {
		return "JDK_JAVA_OPTIONS=" + all
	}
	return "JAVA_TOOL_OPTIONS=" + all
}

// cleanEnvironment is the test's own without what a JVM would read.
func cleanEnvironment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "JDK_JAVA_OPTIONS=") && !strings.HasPrefix(entry, "JAVA_TOOL_OPTIONS=") {
			env = append(env, entry)
		}
	}
	return env
}

// ask sends a command and gives its answer.
func (p *process) ask(tb testing.TB, command string) string {
	tb.Helper()
	if _, err := fmt.Fprintln(p.stdin, command); err != nil {
		tb.Fatalf("command %q: %v", command, err)
	}
	answer, err := p.answer()
	if err == nil && strings.HasPrefix(answer, "error") {
		err = errors.New(answer)
	}
	if err != nil {
		tb.Fatalf("command %q: %v", command, err)
	}
	return answer
}

// answer waits for the next answer.
func (p *process) answer() (string, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case answer, open := <-p.out.answers:
		if !open {
			<-p.done
			return "", p.ended()
		}
		return answer, nil
	case <-timer.C:
		return "", fmt.Errorf("no answer after %s", patience)
	}
}

// ended is an error if the process has ended.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("the process has ended: %w", cmp.Or(p.err, errors.New("exit code 0")))
	default:
		return nil
	}
}

// ready waits until the application takes commands.
func (p *process) ready(tb testing.TB) {
	tb.Helper()
	if answer, err := p.answer(); err != nil || answer != "ready" {
		tb.Fatalf("the application is not ready: %q, %v", answer, err)
	}
}

// stop ends the application in order, and checks that it ended well and had nothing to complain of.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	p.ask(tb, "stop")
	_ = p.stdin.Close()
	p.wait(tb)
	if p.err != nil {
		tb.Errorf("the application ended with %v, want exit code 0", p.err)
	}
	if complaint := p.out.complaint(); complaint != "" {
		tb.Errorf("the application complains: %s", complaint)
	}
}

// wait waits for the end of the process.
func (p *process) wait(tb testing.TB) {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		tb.Fatalf("the process still runs after %s", patience)
	}
}

// end ends the process whatever it does, and shows what it wrote if the test has failed, with what its threads do.
func (p *process) end(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		before := len(p.out.all())
		p.dumpThreads()
		text := p.out.all()
		tb.Logf("%s\nwrote:\n%s\n\nits threads, if it still runs:\n%s", strings.Join(p.cmd.Args, " "), last(text[:before]), text[before:])
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.stdin.Close()
}

// dumpThreads makes a JVM write what its threads do, and waits until it has.
func (p *process) dumpThreads() {
	const least = 10 * time.Second
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	timer := time.NewTimer(least)
	defer timer.Stop()
	tick := time.NewTicker(least / 100)
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

// last is the end of a text.
func last(text string) string {
	const most = 6000 // bytes: about 60 lines
	return text[max(0, len(text)-most):]
}

// transcript takes what a process writes. Lines that begin with "@ " are answers.
type transcript struct {
	answers chan string
	mu      sync.Mutex
	text    bytes.Buffer
	partial []byte
	ended   bool
}

func newTranscript() *transcript {
	const most = 1000 // answers that nobody has read: a command has one
	return &transcript{answers: make(chan string, most)}
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
		if answer, is := strings.CutPrefix(line, "@ "); is && !t.ended {
			t.answers <- answer
		}
	}
}

func (t *transcript) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		close(t.answers)
	}
}

func (t *transcript) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// complaints are lines of a log that tell of an exception, an error or a crash.
var complaints = regexp.MustCompile(`(?m)^.*(Exception|Error\b|\bERROR\b|\bSEVERE\b|SIGSEGV|^\s+at [\w.$/]+\().*$`)

// complaint is the first line that tells of something wrong; "" if there is none.
func (t *transcript) complaint() string { return complaints.FindString(t.all()) }

// findings are the reasons of the agent's lines on standard error.
func (t *transcript) findings() []string {
	var reasons []string
	for _, match := range findingLine.FindAllStringSubmatch(t.all(), -1) {
		reasons = append(reasons, match[1])
	}
	return reasons
}

var findingLine = regexp.MustCompile(`(?m)^streamweir: (\w+): `)

// freePort is a port that is free at the moment on all addresses.
func freePort(tb testing.TB) int {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", ":0")
	if err != nil {
		tb.Fatalf("free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// listening says whether somebody listens at a port.
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
