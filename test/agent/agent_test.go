// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent proves the agent's jar against real libraries: real Kafka Streams applications, on a real broker, in real JVMs. Nothing is
// played. The applications are in apps/, and built by build.sh.
//
// By default the cases run that cover every class of hazard. `make compatibility` runs all, and writes docs/compatibility.md.
package agent

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

// full says that all cases are to run, not only those that cover every class of hazard.
var full = os.Getenv("STREAMWEIR_COMPATIBILITY") == "full"

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
			if s := scenarios[name]; s.everywhere || full {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s.run(t, w)
				})
			}
		}
	})
	if everything := flag.Lookup("test.run").Value.String() == ""; full && everything && !t.Failed() {
		w.table.write(t, filepath.Join("..", "..", "docs", "compatibility.md"))
	}
}
