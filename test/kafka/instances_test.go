// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafka_test

import (
	"testing"

	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

func TestHarness(t *testing.T) {
	broker := kafkatest.StartBroker(t)
	t.Log("broker up")
	for _, protocol := range []string{kafkatest.Classic, kafkatest.Streams} {
		t.Run(protocol, func(t *testing.T) {
			app := broker.CreateApplication(t, kafkatest.Application{ID: "shop-" + protocol, Protocol: protocol, OrderPartitions: 6, ClickPartitions: 4})
			app.Produce(t, 100)
			a := app.StartInstance(t, kafkatest.Instance{Name: "shop-0", Threads: 2})
			b := app.StartInstance(t, kafkatest.Instance{Name: "shop-1", Threads: 2})
			c := app.StartInstance(t, kafkatest.Instance{Name: "shop-2", Threads: 2})
			app.WaitStable(t, a, b, c)
			t.Log("stable", a.Report(), b.Report(), c.Report())
			c.Kill(t)
			app.WaitStable(t, a, b)
			t.Log("after", a.Report(), b.Report())
		})
	}
}
