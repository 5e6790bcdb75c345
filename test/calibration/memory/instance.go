// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/test/kafka/localkafka"
)

// figures are the figures that an instance prints (test/java/.../Figures.java): in bytes and milliseconds.
type figures struct {
	At        int64  `json:"at"`
	State     string `json:"state"`
	Processed int64  `json:"processed"`
	Active    int    `json:"active"`
	Standby   int    `json:"standby"`
	HeapUsed  int64  `json:"heapUsed"`
	Metaspace int64  `json:"metaspace"`
	CodeCache int64  `json:"codeCache"`
	Direct    int64  `json:"direct"`
	Threads   int    `json:"threads"`
	// Collecting is the total time of garbage collections, Running the time from the start to RUNNING.
	Collecting int64 `json:"collecting"`
	Running    int64 `json:"running"`
}

// setup is the configuration of the instances of an application.
type setup struct {
	classPath   string
	application string
	broker      *localkafka.Broker
	folder      string
	// limit of the cgroup.
	limit int64
	// heap is the size of the heap. It is fully resident from the start, so that it can be subtracted.
	heap int64
	// agent is the agent's jar and planFolder its plan. Without agent the application runs with default RocksDB memory.
	agent, planFolder string
	// configs and arguments of the application.
	configs map[string]string
	// flags are further flags of the JVM.
	flags []string
	// each, if set, is called with the figures of each instance in their order.
	each func(name string, f *figures)
}

// instance is a running instance in its cgroup.
type instance struct {
	*localkafka.Process
	cgroup *cgroup
	// address is that of the agent's report, and planFolder has its token. They are empty without the agent.
	address, planFolder string
	latest              atomic.Pointer[figures]
}

// enterCgroup writes its own process id to a file and becomes the command in its arguments.
const enterCgroup = `echo $$ > "$0" && exec "$@"`

// startInstance starts an instance in a cgroup of its own.
func (s *setup) startInstance(ctx context.Context, name string) (*instance, error) {
	group, err := newCgroup(fmt.Sprintf("streamweir-calibrate-%d-%s", os.Getpid(), name), s.limit)
	if err != nil {
		return nil, err
	}
	i := &instance{cgroup: group}
	i.latest.Store(&figures{})
	argv, err := s.command(ctx, i, name)
	if err == nil {
		i.Process, err = localkafka.Start(ctx, localkafka.Command{
			Name: name, Folder: s.folder, Argv: append([]string{"sh", "-c", enterCgroup, group.procs()}, argv...),
			Stdout: localkafka.NewLines(func(line []byte) { s.line(i, name, line) }),
		})
	}
	if err != nil {
		_ = group.remove()
		return nil, err
	}
	return i, nil
}

// command is the command line: with the plan's JVM options, and with a heap that is resident from the start.
func (s *setup) command(ctx context.Context, i *instance, name string) ([]string, error) {
	argv := []string{"env", "MALLOC_ARENA_MAX=2", "java"}
	if s.agent != "" {
		var err error
		if i.address, err = localkafka.FreeAddress(ctx, localkafka.Loopback); err != nil {
			return nil, err
		}
		i.planFolder = s.planFolder
		_, port, _ := strings.Cut(i.address, ":")
		argv = append(argv, fmt.Sprintf("-javaagent:%s=plan=%s,port=%s", s.agent, s.planFolder, port), "@"+filepath.Join(s.planFolder, planfile.OptionsKey))
	} else {
		argv = append(argv, fmt.Sprintf("-Xmx%d", s.heap))
	}
	argv = append(argv, fmt.Sprintf("-Xms%d", s.heap), "-XX:+AlwaysPreTouch", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true")
	argv = append(argv, s.flags...)
	argv = append(argv, "-cp", s.classPath, localkafka.AppClass)
	configs := maps.Clone(s.configs)
	configs["application.id"] = s.application
	configs["bootstrap.servers"] = s.broker.Address
	configs["client.id"] = name
	configs["state.dir"] = filepath.Join(s.folder, name+".state")
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		argv = append(argv, key+"="+configs[key])
	}
	return argv, nil
}

// line processes a line of an instance's output.
func (s *setup) line(i *instance, name string, line []byte) {
	f := &figures{}
	if json.Unmarshal(line, f) != nil {
		return
	}
	i.latest.Store(f)
	if s.each != nil {
		s.each(name, f)
	}
}

// stop ends the instance and removes its cgroup.
func (i *instance) stop(signal syscall.Signal) {
	_ = i.Signal(signal)
	_ = localkafka.Eventually(context.Background(), 10*time.Second, "the cgroup is empty", func(context.Context) error { return i.cgroup.remove() })
}

// report reads the agent's report.
func (i *instance) report(ctx context.Context) (*report.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.address+report.Path, http.NoBody)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(i.planFolder, planfile.TokenKey))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", report.Authorization(string(token)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	latest := &report.Report{}
	return latest, json.NewDecoder(response.Body).Decode(latest)
}
