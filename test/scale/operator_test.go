// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// stopTimeout is the time for the operator to end after a signal.
	stopTimeout = 30 * time.Second
	// clockTick is the unit of the CPU times in /proc.
	clockTick = time.Second / 100
)

// operator is a process of the operator.
type operator struct {
	c *cluster
	// number gives the ports: a standby replica runs beside the leader.
	number  int
	command *exec.Cmd
	started time.Time
	ended   chan struct{}
	client  *http.Client
}

// startOperator starts a process with the flags of config/manager.
func (c *cluster) startOperator(number int) *operator {
	c.tb.Helper()
	o := &operator{c: c, number: number, ended: make(chan struct{})}
	o.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the certificate is signed by the operator itself
	}}
	log, err := os.OpenFile(filepath.Join(c.folder, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	c.check(err)
	o.command = exec.CommandContext(context.WithoutCancel(c.tb.Context()), os.Getenv(operatorVariable), "--leader-elect",
		"--leader-elect-namespace="+operatorNamespace, "--health-probe-bind-address="+o.probes(), "--metrics-bind-address="+o.metricsAddress())
	o.command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	o.command.Stdout = log
	o.command.Stderr = log
	o.started = time.Now()
	c.check(o.command.Start())
	go func() {
		_ = o.command.Wait() // stop checks that the process ends in order
		_ = log.Close()
		close(o.ended)
	}()
	c.tb.Cleanup(o.stop)
	return o
}

func (o *operator) probes() string         { return fmt.Sprintf("127.0.0.1:%d", 8081+o.number) }
func (o *operator) metricsAddress() string { return fmt.Sprintf("127.0.0.1:%d", 8443+o.number) }

// stop ends the process as a kubelet does. It may be called twice.
func (o *operator) stop() {
	_ = o.command.Process.Signal(syscall.SIGTERM) // it fails if the process has ended
	select {
	case <-o.ended:
	case <-time.After(stopTimeout):
		o.c.tb.Errorf("the operator did not end within %v", stopTimeout)
		_ = o.command.Process.Kill()
		<-o.ended
	}
	o.client.CloseIdleConnections()
}

// check ends the test if the process has ended.
func (o *operator) check() {
	o.c.tb.Helper()
	select {
	case <-o.ended:
		log, _ := os.ReadFile(filepath.Join(o.c.folder, "operator.log"))
		o.c.tb.Fatalf("the operator has ended; the end of its log:\n%s", log[max(0, len(log)-4000):])
	default:
	}
}

// get returns the response of the operator; nil if it does not respond with status 200.
func (o *operator) get(url, token string) []byte {
	request, err := http.NewRequestWithContext(o.c.tb.Context(), http.MethodGet, url, http.NoBody)
	o.c.check(err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := o.client.Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil
	}
	return body
}

// ready returns whether the caches are filled.
func (o *operator) ready() bool { return o.get("http://"+o.probes()+"/readyz", "") != nil }

// scrape is one reading of the operator's metrics.
type scrape []string

func (o *operator) scrape() scrape {
	o.check()
	return strings.Split(string(o.get("https://"+o.metricsAddress()+"/metrics", o.c.scraper)), "\n")
}

// sum returns the sum and the number of the series of a metric whose labels contain all texts.
func (s scrape) sum(name string, labels ...string) (sum float64, series int) {
	for _, line := range s {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		matches := true
		for _, label := range labels {
			matches = matches && strings.Contains(line, label)
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if matches && err == nil {
			sum += value
			series++
		}
	}
	return sum, series
}

// passes returns the number of passes since the start.
func (s scrape) passes() int {
	sum, _ := s.sum("controller_runtime_reconcile_total", `controller="streamapp"`)
	return int(sum)
}

// failedPasses returns the number of passes that ended with an error.
func (s scrape) failedPasses() int {
	sum, _ := s.sum("controller_runtime_reconcile_total", `controller="streamapp"`, `result="error"`)
	return int(sum)
}

// judged returns the number of applications that have passed at least once.
func (s scrape) judged() int {
	_, series := s.sum("streamweir_streamapp_ready")
	return series
}

// memory is the memory of the operator's process in bytes.
type memory struct {
	// resident and peak are of the process, live is the heap after the last garbage collection.
	resident, peak, live, heap, stacks float64
	goroutines                         int
}

// memory returns the memory of the process after a garbage collection. The runtime forces one after two minutes without.
func (o *operator) memory() memory {
	collections := func(s scrape) float64 {
		sum, _ := s.sum("go_gc_cycles_total_gc_cycles_total")
		return sum
	}
	before := collections(o.scrape())
	o.c.await("a garbage collection", 3*time.Minute, func() bool { return collections(o.scrape()) > before })
	s := o.scrape()
	value := func(name string) float64 { sum, _ := s.sum(name); return sum }
	return memory{
		resident: o.procStatus("VmRSS"), peak: o.procStatus("VmHWM"), live: value("go_gc_heap_live_bytes"),
		heap: value("go_memstats_heap_inuse_bytes"), stacks: value("go_memstats_stack_inuse_bytes"), goroutines: int(value("go_goroutines")),
	}
}

// procStatus returns an amount in /proc/PID/status, in bytes.
func (o *operator) procStatus(field string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.command.Process.Pid))
	o.c.check(err)
	for line := range strings.Lines(string(data)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			o.c.check(err)
			return kib * 1024
		}
	}
	o.c.tb.Fatalf("/proc/%d/status has no %s", o.command.Process.Pid, field)
	return 0
}

// cpu returns the CPU time of the process.
func (o *operator) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.command.Process.Pid))
	o.c.check(err)
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // from the third field on
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		o.c.check(err)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}
