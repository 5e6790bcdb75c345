// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// Instance configures one instance of an application.
type Instance struct {
	// Name is the client.id; a pod's name in a cluster.
	Name string
	// Threads is num.stream.threads; one if zero.
	Threads int
	// Configs are additional configs of Kafka Streams or its clients, for this instance.
	Configs map[string]string
	// Environment contains additional variables of the process, each as NAME=value.
	Environment []string
	// JavaOptions are additional options of the JVM.
	JavaOptions []string
}

// Process is a running instance: one Java process with an address of its own.
type Process struct {
	// Name is the client.id.
	Name string
	// Address is the client's host from the broker's view.
	Address netip.Addr
	// Static is set if the instance has a group.instance.id.
	Static  bool
	threads int
	process *localkafka.Process
	output  *output
}

// Report is the output of an instance (test/java/.../Tasks.java).
type Report struct {
	// State is a KafkaStreams.State, for instance RUNNING.
	State string `json:"state"`
	// Threads is the number of live stream threads; zero unless RUNNING.
	Threads int `json:"threads"`
	// Active and Standby are the ids of the tasks of all threads ("0_3": subtopology 0, partition 3), sorted; empty
	// unless RUNNING.
	Active  []string `json:"active"`
	Standby []string `json:"standby"`
}

// heap is the largest Java heap of an instance: enough for a handful of tasks with little data.
const heap = "96m"

// intoNetwork waits for an address, sets it on eth0 and becomes the command in its arguments.
const intoNetwork = `read -r address && ip link set lo up && ip address add "$address" dev eth0 && ip link set eth0 up && exec "$@"`

// StartInstance starts an instance and returns at once; see WaitStable. It ends with the test.
func (a *RunningApplication) StartInstance(tb testing.TB, instance Instance) *Process {
	tb.Helper()
	configs := a.configs(instance, tb.TempDir())
	args := make([]string, 0, len(configs))
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		args = append(args, key+"="+configs[key])
	}
	jvm := localkafka.Java(classPath(tb), heap, localkafka.AppClass, args...)
	argv := slices.Concat([]string{"sh", "-c", intoNetwork, "sh", "env"}, instance.Environment, jvm[:1], instance.JavaOptions, jvm[1:])
	p := &Process{
		Name: instance.Name, Static: configs["group.instance.id"] != "",
		threads: max(1, instance.Threads), output: newOutput(),
	}
	p.process = startChild(tb, instance.Name, p.output, argv...)
	p.Address = a.broker.network.attach(tb, p.process.PID)
	if _, err := fmt.Fprintf(p.process.Stdin, "%s/24\n", p.Address); err != nil {
		tb.Fatalf("address of %s: %v", p.Name, err)
	}
	return p
}

// Kill ends the instance at once (SIGKILL), as the kernel does when its container is out of memory.
func (p *Process) Kill(tb testing.TB) {
	tb.Helper()
	signal(tb, p.process, syscall.SIGKILL)
}

// Stop ends the instance gracefully (SIGTERM, KafkaStreams.close), as the kubelet does when its pod is deleted.
func (p *Process) Stop(tb testing.TB) {
	tb.Helper()
	signal(tb, p.process, syscall.SIGTERM)
}

// Report returns the latest report of the instance, an empty one before the first.
func (p *Process) Report() Report { return p.output.latest() }

// running is an error unless the instance is RUNNING and has a task.
func (p *Process) running() error {
	if err := p.process.Err(); err != nil {
		return err
	}
	report := p.Report()
	if report.State != "RUNNING" || len(report.Active)+len(report.Standby) == 0 {
		return fmt.Errorf("%s reports %+v", p.Name, report)
	}
	return p.output.problem()
}

// output receives an instance's standard output and keeps the latest report.
type output struct {
	mu     sync.Mutex
	lines  *localkafka.Lines
	report Report
	err    error
}

func newOutput() *output {
	o := &output{}
	o.lines = localkafka.NewLines(o.line)
	return o
}

// Write accepts complete and partial lines.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.Write(data)
}

// line keeps the report in a line. The lock is held.
func (o *output) line(line []byte) {
	var report Report
	if err := json.Unmarshal(line, &report); err != nil {
		o.err = errors.Join(o.err, fmt.Errorf("line %q on standard output: %w", line, err))
		return
	}
	o.report = report
}

func (o *output) latest() Report {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.report
}

func (o *output) problem() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
