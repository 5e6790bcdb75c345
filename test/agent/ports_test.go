// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/report"
)

// ports returns applications in containers with restrictions for the agent.
func ports() map[string]scenario {
	return map[string]scenario{
		"port taken":            {byDefault: true, run: portTaken},
		"read-only file system": {byDefault: true, run: readOnly},
	}
}

// checkFindings checks the reasons of the agent's lines on standard error.
func (p *process) checkFindings(t *testing.T, want ...string) {
	t.Helper()
	got := p.out.findings()
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("findings on standard error (-want +got):\n%s", diff)
	}
}

// portTaken runs an application while another process uses the port of the report.
func portTaken(t *testing.T, shared *fixture) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	java := needJVM(t, 17)
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan, app.port = newPlan(t, goodPlan()).path, listener.Addr().(*net.TCPAddr).Port
	p := shared.started(t, topic, app)
	p.send(t, "thread")
	checkApplication(t, p, want{})
	p.stop(t)
	p.checkFindings(t, "PortTaken")
	shared.table.add(t, "report port in use; Kafka Streams "+newest, java, "bounded, without a report", "PortTaken")
}

// readOnly runs an application on a file system that is read-only except for its state directory. RocksJava unpacks its library to java.io.tmpdir.
func readOnly(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	state := t.TempDir()
	app := shared.plain(t, java, newest, topic, map[string]string{"state.dir": state})
	app.plan = newPlan(t, goodPlan()).path
	app.options = append(app.options, "-Djava.io.tmpdir="+state)
	app.prefix = []string{"unshare", "--mount", "sh", "-ec", fmt.Sprintf(
		`mount -t tmpfs none %s; mount -o remount,ro,bind /; ! touch /tmp/x 2>/dev/null; exec "$@"`, state), "sh"}
	exercise(t, shared.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	shared.table.add(t, "read-only file system except the state directory; Kafka Streams "+newest, java, "bounded", "")
}
