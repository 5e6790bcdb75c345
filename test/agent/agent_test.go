// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent proves the agent's jar against real libraries: real Kafka Streams applications, on a real broker, in real JVMs. Nothing is
// played. The applications are in apps/, and built by build.sh.
//
// By default the cases run that cover every class of hazard. `make compatibility` runs all, and writes docs/compatibility.md.
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

// results is a folder where the results of all cases are to be kept. If it is set all cases run, but not those whose result is there already.
var results = os.Getenv("STREAMWEIR_COMPATIBILITY")

// world is what all cases share.
type world struct {
	broker *kafkatest.Broker
	client *kgo.Client
	// built is the folder with the applications, agent the jar.
	built, agent string
	table        table
}

// scenario is one case.
type scenario struct {
	// everywhere says that it runs by default too.
	everywhere bool
	run        func(*testing.T, *world)
}

// TestAgent runs all scenarios beside each other, on one broker.
func TestAgent(t *testing.T) {
	w := &world{built: applications(t), agent: copyJar(t), broker: kafkatest.StartBroker(t)}
	w.connect(t)
	scenarios := map[string]scenario{}
	for _, group := range []map[string]scenario{
		versions(), frameworks(), setters(), loaders(), others(), runtimes(), strangers(), ports(), plans(), rebalances(),
	} {
		maps.Copy(scenarios, group)
	}
	t.Run("scenarios", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(scenarios)) {
			if s := scenarios[name]; s.everywhere || results != "" {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w.run(t, s)
				})
			}
		}
	})
	if results != "" && len(w.table.rows) == len(scenarios) && !t.Failed() {
		w.table.write(t, filepath.Join("..", "..", "docs", "compatibility.md"))
	}
}

// run runs a scenario, unless its result is known.
func (w *world) run(t *testing.T, s scenario) {
	if results == "" {
		s.run(t, w)
		return
	}
	if w.table.take(t, results) {
		return
	}
	s.run(t, w)
	if !t.Failed() {
		w.table.keep(t, results)
	}
}
