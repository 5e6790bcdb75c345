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

// shippedCache is the block cache that Kafka Streams gives to a store (RocksDBStore.BLOCK_CACHE_SIZE).
const shippedCache = 50 * mib

// strangers are programs in which there is nothing to bound.
func strangers() map[string]scenario {
	all := map[string]scenario{
		"relocated Kafka Streams": {everywhere: true, run: relocated},
	}
	for _, release := range []int{17, 25} {
		all[fmt.Sprintf("no Kafka Streams on JDK %d", release)] = scenario{everywhere: true, run: func(t *testing.T, w *world) {
			noStreams(t, w, needJVM(t, release))
		}}
		all[fmt.Sprintf("tools of JDK %d", release)] = scenario{everywhere: true, run: func(t *testing.T, w *world) {
			tools(t, w, needJVM(t, release))
		}}
	}
	return all
}

// relocated runs an application with Kafka under another package. It runs as shipped, and the report says so.
func relocated(t *testing.T, w *world) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	configs := w.streamsConfigs(t, topic)
	p := w.started(t, topic, program{
		jvm: java, plan: newPlan(t, goodPlan()).path,
		options: []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(w.built, "relocated.jar")},
		run:     append([]string{"dev.streamweir.agenttest.Main"}, arguments(topic, configs)...),
	})
	p.eventually(t, "that nothing is bounded", func(reported report.Report) error {
		if reported.Bounded != report.BoundedOff || len(reported.Clients) != 0 {
			return errors.New("want bounded Off and no clients")
		}
		if diff := cmp.Diff([]string{"RelocatedStreams"}, reasons(reported)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	p.checkCapacities(t, fmt.Sprintf("capacities %d", shippedCache))
	p.ask(t, "thread")
	p.ask(t, "restart")
	p.stop(t)
	w.table.add(t, "relocated Kafka Streams "+newest, java, "unaffected: default RocksDB memory, and a finding", "RelocatedStreams")
}

// noStreams runs a program without Kafka Streams: same output, no thread, no property, no port.
func noStreams(t *testing.T, w *world, java jvm) {
	var outputs []string
	for _, plan := range []string{"", newPlan(t, goodPlan()).path} {
		p := start(t, program{
			jvm: java, agent: w.agent, plan: plan,
			options: []string{"-cp", filepath.Join(w.built, "classes")}, run: []string{"dev.streamweir.agenttest.Hello"},
		})
		wait(t, "the program prints", func(context.Context) error {
			if !strings.Contains(p.out.all(), "properties [") {
				return errors.New(p.out.all())
			}
			return nil
		})
		if plan != "" && listening(t, p.port) {
			t.Errorf("somebody listens at the agent's port %d", p.port)
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
	w.table.add(t, "no Kafka Streams", java, "unaffected: same output, no thread, no port", "")
}

// withoutNotes takes away what the JVM says of the variables that it has read.
func withoutNotes(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "NOTE: Picked up ") && !strings.HasPrefix(line, "Picked up ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// tools runs tools of the JDK in a container where every JVM gets the agent, through JAVA_TOOL_OPTIONS.
func tools(t *testing.T, w *world, java jvm) {
	store := filepath.Join(t.TempDir(), "keys")
	option := fmt.Sprintf("-javaagent:%s=plan=%s,port=%d", w.agent, newPlan(t, goodPlan()).path, freePort(t))
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
	w.table.add(t, "tools: keytool, jcmd", java, "unaffected: same output", "through JAVA_TOOL_OPTIONS")
}
