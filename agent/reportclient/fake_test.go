// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/report/reporttest"
	"streamweir.dev/streamweir/agent/reportclient"
)

// fakeAgent serves the report of one pod as the agent does, unless a handler overrides it.
type fakeAgent struct {
	t testing.TB

	mu       sync.Mutex
	report   *report.Report
	token    string
	changed  chan struct{}    // Closed at each change.
	waiting  int              // Requests that wait for one.
	handler  http.HandlerFunc // Instead of the agent's own responses.
	requests []sentRequest
}

// sentRequest is a request to a fake.
type sentRequest struct {
	at    time.Time
	query string
}

func newFakeAgent(t testing.TB, r *report.Report) *fakeAgent {
	return &fakeAgent{t: t, report: r, token: "token of the plan", changed: make(chan struct{})}
}

func (a *fakeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, sentRequest{time.Now(), r.URL.RawQuery})
	handler := a.handler
	token := a.token
	current := a.report
	changed := a.changed
	if r.URL.Path != report.Path || r.Method != http.MethodGet || r.Header.Get("Accept-Encoding") != "identity" {
		a.t.Errorf("unexpected request: %s %s with %v", r.Method, r.URL, r.Header)
	}
	a.mu.Unlock()
	if handler != nil {
		handler(w, r)
		return
	}
	if r.Header.Get("Authorization") != report.Authorization(token) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Query().Get("after") == strconv.FormatInt(current.Seq, 10) {
		wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
		if err != nil || wait > 25*time.Second {
			a.t.Errorf("unexpected wait: %q", r.URL.RawQuery)
		}
		if current = a.wait(r.Context(), changed, wait); current == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(reporttest.Encode(a.t, current)) // The client may have closed the connection.
}

// wait waits for a change. It returns nil if the wait ends without one.
func (a *fakeAgent) wait(ctx context.Context, changed chan struct{}, wait time.Duration) *report.Report {
	a.count(1)
	defer a.count(-1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.report
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

func (a *fakeAgent) count(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting += n
}

// waits returns whether a request waits for a change.
func (a *fakeAgent) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting > 0
}

// set replaces the report. It ends waiting requests if the seq differs.
func (a *fakeAgent) set(r *report.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.report.Seq
	if a.report = r; r.Seq != before {
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// setToken replaces the token.
func (a *fakeAgent) setToken(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
}

// override replaces the responses; nil restores them.
func (a *fakeAgent) override(handler http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handler = handler
}

// since returns the requests from a time on.
func (a *fakeAgent) since(at time.Time) []sentRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.requests), func(r sentRequest) bool { return r.at.Before(at) })
}

// fakeNetwork connects to fake agents by address, within the bubble of the test.
type fakeNetwork struct {
	t *testing.T

	mu     sync.Mutex
	agents map[string]*fakeAgent
	raw    map[string]func(net.Conn) // Instead of an agent.
	down   map[string]error          // Errors of connecting.
	hangs  map[string]bool           // Addresses that drop every packet.
	conns  map[string][]*fakeConn
	dialed []sentRequest // With the address as the query.
}

// fakeConn is the client's end of a connection.
type fakeConn struct {
	net.Conn

	mu      sync.Mutex
	failure error
}

// Read fails like the kernel after the connection has broken.
func (c *fakeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: c.failure}
	}
	return n, err
}

func (c *fakeConn) breakOff(failure error) {
	c.mu.Lock()
	c.failure = failure
	c.mu.Unlock()
	_ = c.Close() // A pipe's end can always be closed.
}

func (n *fakeNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed = append(n.dialed, sentRequest{time.Now(), address})
	if n.hangs[address] {
		n.mu.Unlock()
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
		n.mu.Lock()
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	}
	if err := n.down[address]; err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	local, remote := net.Pipe()
	switch raw, agent := n.raw[address], n.agents[address]; {
	case raw != nil:
		go raw(remote)
	case agent != nil:
		listener := &oneConn{conn: remote, done: make(chan struct{})}
		go func() { _ = (&http.Server{Handler: agent, ReadHeaderTimeout: time.Minute}).Serve(listener) }() // It ends with the connection.
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	c := &fakeConn{Conn: local}
	n.conns[address] = append(n.conns[address], c)
	return c, nil
}

// breakOff breaks all connections to an address.
func (n *fakeNetwork) breakOff(address string, failure error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns[address] {
		c.breakOff(failure)
	}
	n.conns[address] = nil
}

// setDown makes connecting to an address fail; nil makes it succeed.
func (n *fakeNetwork) setDown(address string, failure error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[address] = failure
}

// hang makes an address drop every packet.
func (n *fakeNetwork) hang(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hangs[address] = true
}

// dials returns the times of connections to an address, since a time.
func (n *fakeNetwork) dials(address string, since time.Time) []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	var at []time.Duration
	for _, d := range n.dialed {
		if d.query == address && !d.at.Before(since) {
			at = append(at, d.at.Sub(since))
		}
	}
	return at
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn net.Conn
	once sync.Once
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return &closing{Conn: c, closed: func() { l.once.Do(func() { close(l.done) }) }}, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// closing calls a function when it is closed.
type closing struct {
	net.Conn

	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

// fleet is the fixture of a test: a client, and the pods pod-0, pod-1 and so on with an agent each.
type fleet struct {
	*testing.T
	*reportclient.Client

	network *fakeNetwork
	agents  []*fakeAgent
	pods    []reportclient.Endpoint
}

// withFleet runs a test in a bubble with a client that tracks pods under the key shop/orders. The pods were started an hour before. After
// the test the bubble checks that no goroutine is left.
func withFleet(t *testing.T, pods, longPolls int, test func(fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{t: t, agents: map[string]*fakeAgent{}, raw: map[string]func(net.Conn){}, down: map[string]error{},
			hangs: map[string]bool{}, conns: map[string][]*fakeConn{}}
		f := fleet{T: t, network: n}
		for i := range pods {
			e := reportclient.Endpoint{Name: fmt.Sprintf("pod-%d", i), UID: fmt.Sprintf("uid-%d", i),
				Address: fmt.Sprintf("10.0.%d.%d:7907", i/250, i%250), Started: time.Now().Add(-time.Hour)}
			agent := newFakeAgent(t, reporttest.New(e.UID, time.Now().UnixMilli(), 2, 1))
			e.Token = agent.token
			f.pods, f.agents, n.agents[e.Address] = append(f.pods, e), append(f.agents, agent), agent
		}
		f.Client = reportclient.New(reportclient.Options{Dial: n.dial, LongPolls: longPolls})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Start(ctx) }()
		f.Track("shop/orders", f.pods)
		test(f)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
}

// latest returns the latest report of a pod.
func (f fleet) latest(i int) report.PodReport { return f.Latest("shop/orders")[f.pods[i].UID] }

// changed returns the keys that wait to be received, sorted.
func (f fleet) changed() []string {
	keys := map[string]bool{}
	for {
		synctest.Wait()
		select {
		case key := <-f.Changes():
			keys[key] = true
		default:
			return slices.Sorted(maps.Keys(keys))
		}
	}
}

// expectChange checks whether the key was delivered.
func (f fleet) expectChange(want bool, what string) {
	f.Helper()
	if got := len(f.changed()) > 0; got != want {
		f.Errorf("%s: the key was delivered: %v, want %v", what, got, want)
	}
}

// in lets a time of the bubble pass.
func in(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
