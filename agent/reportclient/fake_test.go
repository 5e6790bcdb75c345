// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
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

// fakeAgent serves the report of one pod as the agent does, unless it is told to lie.
type fakeAgent struct {
	t testing.TB

	mu      sync.Mutex
	report  *report.Report
	changed chan struct{} // Closed at each change.
	waiting int           // Requests that wait for one.
	lie     http.HandlerFunc
	asked   []asked
}

// asked is a request that a fake agent has had.
type asked struct {
	at    time.Time
	query string
}

func newFakeAgent(t testing.TB, r *report.Report) *fakeAgent {
	return &fakeAgent{t: t, report: r, changed: make(chan struct{})}
}

func (a *fakeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, asked{time.Now(), r.URL.RawQuery})
	lie, current, changed := a.lie, a.report, a.changed
	if r.URL.Path != report.Path || r.Method != http.MethodGet || r.Header.Get("Accept-Encoding") != "identity" {
		a.t.Errorf("the agent was asked with %s %s and %v", r.Method, r.URL, r.Header)
	}
	a.mu.Unlock()
	if lie != nil {
		lie(w, r)
		return
	}
	if r.URL.Query().Get("after") == strconv.FormatInt(current.Seq, 10) {
		wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
		if err != nil || wait > 25*time.Second {
			a.t.Errorf("the agent was asked to wait %q", r.URL.RawQuery)
		}
		if current = a.wait(r.Context(), changed, wait); current == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(reporttest.Encode(a.t, current)) // The client may have gone.
}

// wait waits for a change; nil: there was none.
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

// waits says whether a request waits for a change.
func (a *fakeAgent) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting > 0
}

// set changes the report; those who wait are told if its seq is another one.
func (a *fakeAgent) set(r *report.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.report.Seq
	if a.report = r; r.Seq != before {
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// lies makes the agent answer otherwise; nil: as it should again.
func (a *fakeAgent) lies(lie http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lie = lie
}

// since gives the requests from a time on.
func (a *fakeAgent) since(at time.Time) []asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.asked), func(q asked) bool { return q.at.Before(at) })
}

// fakeNetwork connects to fake agents by address, within the test's bubble.
type fakeNetwork struct {
	t *testing.T

	mu     sync.Mutex
	agents map[string]*fakeAgent
	raw    map[string]func(net.Conn) // Instead of an agent.
	down   map[string]error          // What connecting fails with.
	conns  map[string][]*fakeConn
	dialed []asked // With the address as the query.
}

// fakeConn is the operator's end of a connection.
type fakeConn struct {
	net.Conn

	mu      sync.Mutex
	failure error
}

// Read fails as the kernel would once the connection was broken.
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

func (n *fakeNetwork) dial(_ context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed = append(n.dialed, asked{time.Now(), address})
	if err := n.down[address]; err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	ours, theirs := net.Pipe()
	switch raw, agent := n.raw[address], n.agents[address]; {
	case raw != nil:
		go raw(theirs)
	case agent != nil:
		listener := &oneConn{conn: theirs, done: make(chan struct{})}
		go func() { _ = (&http.Server{Handler: agent, ReadHeaderTimeout: time.Minute}).Serve(listener) }() // It ends with the connection.
	default:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	c := &fakeConn{Conn: ours}
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

// setDown makes connecting to an address fail; nil: succeed.
func (n *fakeNetwork) setDown(address string, failure error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[address] = failure
}

// dials gives when an address was connected to, since a time.
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

// closing tells when it is closed.
type closing struct {
	net.Conn

	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

// fleet is what a test of reports has: a source, and pods pod-0, pod-1 and so on with an agent each.
type fleet struct {
	*testing.T
	*reportclient.Client

	network *fakeNetwork
	agents  []*fakeAgent
	pods    []reportclient.Endpoint
}

// reported runs a test in a bubble with a source that tracks pods under the key shop/orders. They have run for an hour. Once the test has
// ended, the bubble makes sure that nothing goes on.
func reported(t *testing.T, pods, longPolls int, test func(fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNetwork{t: t, agents: map[string]*fakeAgent{}, raw: map[string]func(net.Conn){}, down: map[string]error{},
			conns: map[string][]*fakeConn{}}
		f := fleet{T: t, network: n}
		for i := range pods {
			e := reportclient.Endpoint{Name: fmt.Sprintf("pod-%d", i), UID: fmt.Sprintf("uid-%d", i),
				Address: fmt.Sprintf("10.0.0.%d:7907", i), Started: time.Now().Add(-time.Hour)}
			agent := newFakeAgent(t, reporttest.New(e.UID, time.Now().UnixMilli(), 2, 1))
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
			t.Errorf("the source ended with %v", err)
		}
	})
}

// latest gives what is known of a pod.
func (f fleet) latest(i int) report.PodReport { return f.Latest("shop/orders")[f.pods[i].UID] }

// told gives the keys that wait to be received, sorted.
func (f fleet) told() []string {
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

// isTold checks whether the key was sent.
func (f fleet) isTold(want bool, what string) {
	f.Helper()
	if got := len(f.told()) > 0; got != want {
		f.Errorf("%s: told is %v, should be %v", what, got, want)
	}
}

// in lets time pass, and waits until nothing moves.
func in(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
