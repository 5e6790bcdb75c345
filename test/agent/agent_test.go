// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent tests the agent's jar with real Kafka Streams applications, on a real broker, in real JVMs. Nothing is simulated. The
// applications are in apps/.
//
// By default the scenarios run that cover every class of hazard. `make compatibility` runs all and writes docs/compatibility.md.
package agent

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

// results is a folder for the results of all scenarios. If it is set, all scenarios run except those with a result in the folder.
var results = os.Getenv("STREAMWEIR_COMPATIBILITY")

// fixture is shared by all scenarios.
type fixture struct {
	broker *kafkatest.Broker
	client *kgo.Client
	// built is the folder with the applications.
	built string
	// agent is the path of the jar.
	agent string
	table table
}

// scenario is one application in one JVM.
type scenario struct {
	// byDefault is set if it runs without results as well.
	byDefault bool
	run       func(*testing.T, *fixture)
}

// TestAgent runs the scenarios in parallel on one broker.
func TestAgent(t *testing.T) {
	shared := &fixture{built: applications(t), agent: copyJar(t), broker: kafkatest.StartBroker(t)}
	shared.connect(t)
	scenarios := map[string]scenario{}
	for _, group := range []map[string]scenario{
		versions(), frameworks(), setters(), loaders(), sharedJVMs(), runtimes(), unbounded(), ports(), heaps(), plans(), rebalances(), memtables(),
	} {
		maps.Copy(scenarios, group)
	}
	t.Run("scenarios", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(scenarios)) {
			if s := scenarios[name]; s.byDefault || results != "" {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					shared.run(t, s)
				})
			}
		}
	})
	if results != "" && len(shared.table.rows) == len(scenarios) && !t.Failed() {
		shared.table.write(t, filepath.Join("..", "..", "docs", "compatibility.md"))
	}
}

// run runs a scenario unless its result is in the folder.
func (f *fixture) run(t *testing.T, s scenario) {
	if results == "" {
		s.run(t, f)
		return
	}
	if f.table.take(t, results) {
		return
	}
	s.run(t, f)
	if !t.Failed() {
		f.table.keep(t, results)
	}
}
