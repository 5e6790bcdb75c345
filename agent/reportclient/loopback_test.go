// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/report/reporttest"
	"streamweir.dev/streamweir/agent/reportclient"
)

// loopback serves one agent per address and returns the pods.
func loopback(t testing.TB, pods int) ([]*fakeAgent, []reportclient.Endpoint, func()) {
	t.Helper()
	agents := make([]*fakeAgent, pods)
	endpoints := make([]reportclient.Endpoint, pods)
	byAddress := map[string]*fakeAgent{}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		byAddress[r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()].ServeHTTP(w, r)
	})}
	listeners := make([]net.Listener, pods)
	for i := range pods {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = listener
		uid := fmt.Sprintf("uid-%d", i)
		agents[i] = newFakeAgent(t, reporttest.New(uid, 1, 10, 5))
		endpoints[i] = reportclient.Endpoint{Name: fmt.Sprintf("pod-%d", i), UID: uid, Address: listener.Addr().String(), Token: agents[i].token,
			Started: time.Now()}
		byAddress[listener.Addr().String()] = agents[i]
	}
	for _, listener := range listeners {
		go func() { _ = server.Serve(listener) }() // It ends when the server is closed.
	}
	return agents, endpoints, func() { _ = server.Close() } // An error does not matter: the test ends here.
}

// started starts a client that tracks pods. The returned function ends it.
func started(t testing.TB, pods []reportclient.Endpoint) (*reportclient.Client, func()) {
	r := reportclient.New(reportclient.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Start(ctx) }()
	r.Track("shop/orders", pods)
	return r, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned %v", err)
		}
	}
}

// untilChanged waits for changes of the key until a condition holds.
func untilChanged(t testing.TB, r *reportclient.Client, what string, ok func(map[string]report.PodReport) bool) {
	t.Helper()
	for deadline := time.After(20 * time.Second); !ok(r.Latest("shop/orders")); {
		select {
		case <-r.Changes():
		case <-deadline:
			t.Fatalf("%s did not arrive; the latest state is %+v", what, r.Latest("shop/orders"))
		}
	}
}

// goroutines counts the goroutines of this package and of net/http.
func goroutines() (n int) {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "reportclient.(*Client)") || strings.Contains(stack, "net/http.") {
			n++
		}
	}
	return n
}

func TestClientOverTCP(t *testing.T) {
	before := goroutines()
	agents, pods, end := loopback(t, 3)
	r, stop := started(t, pods)
	untilChanged(t, r, "every report", func(latest map[string]report.PodReport) bool {
		return latest["uid-0"].Report != nil && latest["uid-1"].Report != nil && latest["uid-2"].Report != nil
	})
	agents[1].set(reporttest.New("uid-1", 2, 20, 5))
	untilChanged(t, r, "the rebalance", func(latest map[string]report.PodReport) bool { return latest["uid-1"].Report.Seq == 2 })
	agents[2].set(reporttest.New("uid-7", 3, 20, 5))
	untilChanged(t, r, "the wrong pod", func(latest map[string]report.PodReport) bool {
		return latest["uid-2"].Err != nil && latest["uid-2"].Err.Fault == report.WrongPod
	})
	end()
	untilChanged(t, r, "the end of a process", func(latest map[string]report.PodReport) bool {
		e := latest["uid-0"].Err
		return e != nil && e.Fault == report.Unreachable && latest["uid-0"].Gone.IsZero()
	})
	stop()
	for deadline := time.After(20 * time.Second); goroutines() > before; {
		select {
		case <-deadline:
			t.Fatalf("%d goroutines are left, there were %d before", goroutines(), before)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestAWaitingRequestIsOneGoroutine(t *testing.T) {
	const pods = 20
	agents, endpoints, end := loopback(t, pods)
	defer end()
	_, stop := started(t, endpoints)
	defer stop()
	for _, a := range agents {
		for deadline := time.After(20 * time.Second); !a.waits(); {
			select {
			case <-deadline:
				t.Fatal("not every pod has a waiting request")
			case <-time.After(time.Millisecond):
			}
		}
	}
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	polls := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "reportclient.(*Client).follow") {
			polls++
		}
		if strings.Contains(stack, "net/http.(*Transport)") || strings.Contains(stack, "net/http.(*persistConn)") {
			t.Errorf("a goroutine of a transport:\n%s", stack)
		}
	}
	if polls != pods {
		t.Errorf("%d goroutines for %d pods", polls, pods)
	}
}

// BenchmarkChange measures the time from a change in one of 500 agents, all with a waiting request, to the key in Changes.
func BenchmarkChange(b *testing.B) {
	const pods = 500
	agents, endpoints, end := loopback(b, pods)
	defer end()
	r, stop := started(b, endpoints)
	defer stop()
	seqs := make([]int64, pods)
	for i, a := range agents {
		seqs[i] = 1
		for deadline := time.After(time.Minute); !a.waits(); {
			select {
			case <-r.Changes():
			case <-time.After(time.Millisecond):
			case <-deadline:
				b.Fatalf("no request to pod %d", i)
			}
		}
	}
	next := 0
	for b.Loop() {
		for !agents[next%pods].waits() {
			next++
		}
		i := next % pods
		next++
		seqs[i]++
		agents[i].set(reporttest.New(endpoints[i].UID, seqs[i], 10, 5))
		for r.Latest("shop/orders")[endpoints[i].UID].Report.Seq != seqs[i] {
			<-r.Changes()
		}
	}
}
