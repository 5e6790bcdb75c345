// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"path/filepath"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

// loaders returns pairs of applications in one JVM, each with its own Kafka Streams and RocksDB.
func loaders() map[string]scenario {
	all := map[string]scenario{}
	for how, title := range map[string]string{"apart": "two class loaders", "child-first": "a class loader and a child-first one in it"} {
		for _, release := range []int{17, 25} {
			all[fmt.Sprintf("%s on JDK %d", title, release)] = scenario{byDefault: release == 17, run: func(t *testing.T, shared *fixture) {
				twoLoaders(t, shared, needJVM(t, release), how, title)
			}}
		}
	}
	return all
}

func twoLoaders(t *testing.T, shared *fixture, java jvm, how, title string) {
	topic := shared.topic(t)
	classPath := shared.classPath(newest)
	app := program{
		jvm:     java,
		options: []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classPath},
		run:     []string{"dev.streamweir.agenttest.Loaders", how, filepath.Join(shared.built, "classes") + ":" + filepath.Join(shared.built, "lib", newest)},
		plan:    newPlan(t, goodPlan()).path,
	}
	if how == "apart" {
		app.options[2] = filepath.Join(shared.built, "classes")
	}
	app.run = append(app.run, arguments(topic, shared.streamsConfigs(t, topic))...)
	p := shared.started(t, topic, app)

	expected := want{kafka: newest, bounded: report.BoundedActive, clients: 2, findings: []string{"SecondLoader"}}
	before := p.eventually(t, "both running applications", expected.checkRunning)
	for _, client := range before.Clients {
		checkSettings(t, client)
	}
	second := before.RocksDB.CacheCapacity - planCache
	capacities := []string{
		fmt.Sprintf("capacities %d | capacities %d", planCache, second), fmt.Sprintf("capacities %d | capacities %d", second, planCache),
	}
	for _, command := range []string{"thread", "restart"} {
		p.checkCapacities(t, capacities...)
		p.send(t, command)
	}
	after := p.eventually(t, "both applications after the restart", expected.checkRunning)
	if after.RocksDB.CacheCapacity != before.RocksDB.CacheCapacity {
		t.Errorf("the caches have %d bytes after the restart, had %d", after.RocksDB.CacheCapacity, before.RocksDB.CacheCapacity)
	}
	p.stop(t)
	shared.table.add(t, title+"; Kafka Streams "+newest, java, "bounded with one cache per loader, and a finding", "SecondLoader")
}
