// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

const (
	oldest = "2.8.2"
	newest = "4.4.0"
)

// versions returns applications on a plain class path with each release of Kafka Streams on both JDKs.
func versions() map[string]scenario {
	all := map[string]scenario{}
	for _, version := range []string{oldest, "3.4.1", "3.9.1", "4.1.1", "4.3.1", newest} {
		for _, release := range []int{17, 25} {
			all[fmt.Sprintf("Kafka Streams %s on JDK %d", version, release)] = scenario{
				byDefault: version == oldest || version == newest,
				run: func(t *testing.T, shared *fixture) {
					java := needJVM(t, release)
					topic := shared.topic(t)
					app := shared.plain(t, java, version, topic, nil)
					app.plan = newPlan(t, goodPlan()).path
					p := shared.started(t, topic, app)
					exercise(t, p, want{kafka: version, bounded: report.BoundedActive}, "thread", "restart")
					shared.table.add(t, "Kafka Streams "+version+", plain class path", java, "bounded", "")
				},
			}
		}
	}
	return all
}
