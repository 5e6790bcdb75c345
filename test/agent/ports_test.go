// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/reportclient"
)

// ports returns applications in containers with restrictions for the agent.
func ports() map[string]scenario {
	return map[string]scenario{
		"port taken":            {byDefault: true, run: portTaken},
		"half-open connections": {byDefault: true, run: halfOpen},
		"another token":         {byDefault: true, run: anotherToken},
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

// poll polls the agent as the operator does. The pod's UID and the plan's token are those of the process.
func (p *process) poll(t *testing.T) *reportclient.Client {
	t.Helper()
	client := reportclient.New(reportclient.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- client.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p.track(client, planToken)
	return client
}

// track polls the agent with a token.
func (p *process) track(client *reportclient.Client, token string) {
	client.Track(podUID, []reportclient.Endpoint{{
		Name: "pod", UID: podUID, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)), Token: token, Started: time.Now(),
	}})
}

// halfOpen runs an application while connections without a request, and waiting requests without the token, occupy the agent. The operator
// notices each change nevertheless, within seconds.
func halfOpen(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = newPlan(t, goodPlan()).path
	p := shared.started(t, topic, app)
	expected := want{kafka: newest, bounded: report.BoundedActive}
	p.eventually(t, "the running application", expected.checkRunning)

	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
	const connections = 100
	for range connections {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		if _, err := connection.Write([]byte("G")); err != nil {
			t.Fatal(err)
		}
	}
	client := p.poll(t)
	latest := func() report.PodReport { return client.Latest(podUID)[podUID] }
	const limit = 5 * time.Second // less than the time after which the agent closes connections without a request
	within(t, limit, "the first report", func() bool { return latest().Report != nil })
	first := latest()
	if err := expected.checkRunning(*first.Report); err != nil {
		t.Error(err)
	}
	const foreign = 8
	for range foreign {
		go func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				fmt.Sprintf("http://%s%s?after=%d&wait=60s", address, report.Path, first.Report.Seq), http.NoBody)
			if err != nil {
				return
			}
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		}()
	}
	p.send(t, "thread")
	within(t, limit, "the next report", func() bool { return latest().Report.Seq != first.Report.Seq })
	if err := latest().Err; err != nil {
		t.Errorf("the operator's requests failed: %v", err)
	}
	p.stop(t)
	shared.table.add(t, "100 half-open connections to the report; Kafka Streams "+newest, java, "bounded; the operator reads the report", "")
}

// within fails the test unless a condition holds within a time.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come within %s", what, limit)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// anotherToken polls an application with other tokens than that of its mounted plan, and then mounts a plan with another one.
func anotherToken(t *testing.T, shared *fixture) {
	java := needJVM(t, 17)
	topic := shared.topic(t)
	volume := newPlan(t, goodPlan())
	app := shared.plain(t, java, newest, topic, nil)
	app.plan = volume.path
	p := shared.started(t, topic, app)
	client := p.poll(t)
	latest := func() report.PodReport { return client.Latest(podUID)[podUID] }
	expect := func(what string, fault report.Fault) {
		t.Helper()
		within(t, maxWait, what, func() bool {
			if err := latest().Err; err != nil {
				return err.Fault == fault
			}
			return fault == "" && latest().Report != nil
		})
	}
	expect("the plan's token", "")
	other := strings.Repeat("f", len(planToken))
	p.track(client, other)
	expect("another token", report.Unauthorized)
	p.track(client, "")
	expect("no token", report.Unauthorized)
	volume.publish(t, map[string]string{
		planfile.PropertiesKey: properties(goodPlan()), planfile.RevisionKey: "g2", planfile.OptionsKey: "", planfile.TokenKey: other,
	})
	p.track(client, other)
	expect("the token of the next plan", "")
	if reported, err := p.report(t.Context()); err != nil || reported.Plan.OnDisk != "g2" {
		t.Errorf("with the previous token: plan %+v, %v", reported.Plan, err)
	}
	body, status := p.get(t)
	if status != http.StatusUnauthorized || body != `{"schema":1}` {
		t.Errorf("without a token the agent responds with %d and %q", status, body)
	}
	p.stop(t)
}

// get requests the report without a token and returns the body and the status of the response.
func (p *process) get(t *testing.T) (string, int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(p.port)+report.Path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), response.StatusCode
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
