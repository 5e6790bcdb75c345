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

// ports are containers in which the agent cannot do what it wants.
func ports() map[string]scenario {
	return map[string]scenario{
		"port taken":            {everywhere: true, run: portTaken},
		"read-only file system": {everywhere: true, run: readOnly},
	}
}

// checkFindings checks the reasons of all lines that the agent has written on standard error.
func (p *process) checkFindings(t *testing.T, want ...string) {
	t.Helper()
	got := p.out.findings()
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("findings on standard error (-want +got):\n%s", diff)
	}
}

// portTaken runs an application where somebody else has the port of the report.
func portTaken(t *testing.T, w *world) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	java := needJVM(t, 17)
	topic := w.topic(t)
	app := w.plain(t, java, newest, topic, nil)
	app.plan, app.port = newPlan(t, goodPlan()).path, listener.Addr().(*net.TCPAddr).Port
	p := w.started(t, topic, app)
	p.ask(t, "thread")
	checkReality(t, p, want{})
	p.stop(t)
	p.checkFindings(t, "PortTaken")
	w.table.add(t, "port of the report taken; Kafka Streams "+newest, java, "bounded, but without a report", "PortTaken")
}

// readOnly runs an application where nothing can be written but its state directory. RocksJava unpacks its library to java.io.tmpdir.
func readOnly(t *testing.T, w *world) {
	java := needJVM(t, 17)
	topic := w.topic(t)
	state := t.TempDir()
	app := w.plain(t, java, newest, topic, map[string]string{"state.dir": state})
	app.plan = newPlan(t, goodPlan()).path
	app.options = append(app.options, "-Djava.io.tmpdir="+state)
	app.prefix = []string{"unshare", "--mount", "sh", "-ec", fmt.Sprintf(
		`mount -t tmpfs none %s; mount -o remount,ro,bind /; ! touch /tmp/x 2>/dev/null; exec "$@"`, state), "sh"}
	exercise(t, w.started(t, topic, app), want{kafka: newest, bounded: report.BoundedActive}, "thread", "restart")
	w.table.add(t, "read-only file system but for the state directory; Kafka Streams "+newest, java, "bounded", "")
}
