// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/report"
)

// defaultCache is the capacity of the block cache of a store in Kafka Streams (RocksDBStore.BLOCK_CACHE_SIZE).
const defaultCache = 50 * mib

// unbounded returns programs without stores that the agent could bound.
func unbounded() map[string]scenario {
	all := map[string]scenario{
		"relocated Kafka Streams": {byDefault: true, run: relocated},
	}
	all["AOT cache"] = scenario{byDefault: true, run: aotCache}
	for _, release := range []int{17, 25} {
		all[fmt.Sprintf("no Kafka Streams on JDK %d", release)] = scenario{byDefault: true, run: func(t *testing.T, shared *fixture) {
			noStreams(t, shared, needJVM(t, release))
		}}
		all[fmt.Sprintf("tools of JDK %d", release)] = scenario{byDefault: true, run: func(t *testing.T, shared *fixture) {
			tools(t, shared, needJVM(t, release))
		}}
	}
	return all
}

// relocated runs an application with a relocated Kafka. It has default RocksDB memory, and the report contains a finding.
func relocated(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	configs := shared.streamsConfigs(t, topic)
	p := shared.started(t, topic, program{
		jvm: java, plan: newPlan(t, goodPlan()).path,
		options: []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(shared.built, "relocated.jar")},
		run:     append([]string{"dev.streamweir.agenttest.Main"}, arguments(topic, configs)...),
	})
	p.eventually(t, "bounded Off", func(reported report.Report) error {
		if reported.Bounded != report.BoundedOff || len(reported.Clients) != 0 {
			return errors.New("want bounded Off and no clients")
		}
		if diff := cmp.Diff([]string{"RelocatedStreams"}, reasons(reported)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	p.checkCapacities(t, fmt.Sprintf("capacities %d", defaultCache))
	p.send(t, "thread")
	p.send(t, "restart")
	p.stop(t)
	shared.table.add(t, "relocated Kafka Streams "+newest, java, "unaffected: default RocksDB memory, and a finding", "RelocatedStreams")
}

// noStreams runs a program without Kafka Streams: the agent adds no output, no thread, no property and no port.
func noStreams(t *testing.T, shared *fixture, java jvm) {
	var outputs []string
	for _, plan := range []string{"", newPlan(t, goodPlan()).path} {
		p := start(t, program{
			jvm: java, agent: shared.agent, plan: plan,
			options: []string{"-cp", filepath.Join(shared.built, "classes")}, run: []string{"dev.streamweir.agenttest.Hello"},
		})
		wait(t, "the program prints", func(context.Context) error {
			if !strings.Contains(p.out.all(), "properties [") {
				return errors.New(p.out.all())
			}
			return nil
		})
		if plan != "" && listening(t, p.port) {
			t.Errorf("a process listens on the agent's port %d", p.port)
		}
		_ = p.stdin.Close()
		p.wait(t)
		if p.err != nil {
			t.Errorf("the program ended with %v", p.err)
		}
		outputs = append(outputs, withoutNotes(p.out.all()))
	}
	if diff := cmp.Diff(outputs[0], outputs[1]); diff != "" {
		t.Errorf("the program's output without (-) and with (+) the agent:\n%s", diff)
	}
	shared.table.add(t, "no Kafka Streams", java, "unaffected: same output, no thread, no port", "")
}

// aotCache runs a program with an AOT cache of JDK 25, without and with the agent. A JVM with any agent cannot use its cache.
func aotCache(t *testing.T, shared *fixture) {
	java := needJVM(t, 25)
	cache := filepath.Join(t.TempDir(), "hello.aot")
	program := program{
		jvm: java, agent: shared.agent,
		// The cache requires a class path of jars only.
		options: []string{"-cp", filepath.Join(shared.built, "relocated.jar")}, run: []string{"dev.streamweir.agenttest.Hello"},
	}
	run := func(plan string, options ...string) error {
		p := program
		p.plan = plan
		p.options = append(append([]string{}, options...), program.options...)
		running := start(t, p)
		_ = running.stdin.Close()
		running.wait(t)
		return running.err
	}
	if err := run("", "-XX:AOTCacheOutput="+cache); err != nil {
		t.Fatalf("create the cache: %v", err)
	}
	plan := newPlan(t, goodPlan()).path
	for _, c := range []struct {
		plan, mode string
		starts     bool
	}{{"", "auto", true}, {"", "on", true}, {plan, "auto", true}, {plan, "on", false}} {
		err := run(c.plan, "-XX:AOTCache="+cache, "-XX:AOTMode="+c.mode)
		if (err == nil) != c.starts {
			t.Errorf("plan %q, AOTMode=%s: the JVM ended with %v", c.plan, c.mode, err)
		}
	}
	shared.table.add(t, "AOT cache", java, "starts without the cache", "the JVM ignores the cache with any agent, so the start takes longer")
	shared.table.add(t, "AOT cache and -XX:AOTMode=on", java, "does not start with any agent; the operator does not inject it if the flag is visible", "")
}

// withoutNotes removes the JVM's notes on the variables that it has read.
func withoutNotes(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "NOTE: Picked up ") && !strings.HasPrefix(line, "Picked up ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// tools runs tools of the JDK in a container where JAVA_TOOL_OPTIONS loads the agent into every JVM.
func tools(t *testing.T, shared *fixture, java jvm) {
	store := filepath.Join(t.TempDir(), "keys")
	option := fmt.Sprintf("-javaagent:%s=plan=%s,port=%d", shared.agent, newPlan(t, goodPlan()).path, freePort(t))
	for _, argv := range [][]string{
		{"keytool", "-genkeypair", "-keyalg", "EC", "-dname", "CN=a", "-storepass", "changeit", "-alias"},
		{"keytool", "-list", "-storepass", "changeit", "-keystore"},
		{"jcmd", "-h"},
	} {
		var outputs []string
		for i, variable := range []string{"", "JAVA_TOOL_OPTIONS=" + option} {
			args := append([]string{}, argv[1:]...)
			if args[len(args)-1] == "-alias" {
				args = append(args, fmt.Sprint("key", i), "-keystore", store)
			} else if args[len(args)-1] == "-keystore" {
				args = append(args, store)
			}
			command := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(java.java), argv[0]), args...)
			command.Env = append(cleanEnvironment(), variable)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", strings.Join(command.Args, " "), err, out)
			}
			outputs = append(outputs, withoutNotes(string(out)))
		}
		if diff := cmp.Diff(outputs[0], outputs[1]); diff != "" {
			t.Errorf("the output of %s without (-) and with (+) the agent:\n%s", argv[0], diff)
		}
	}
	shared.table.add(t, "tools: keytool, jcmd", java, "unaffected: same output", "through JAVA_TOOL_OPTIONS")
}
