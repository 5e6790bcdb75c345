// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/internal/tracker"
)

// maxLongPolls is how many pods [Client] holds a connection to, if nothing else is said: each costs the operator a socket and 40 KiB
// (measured with 1,000 pods: three goroutines and the buffers of net/http), beside the report itself, 60 KiB with 200 tasks of three stores.
const maxLongPolls = 2000

// Endpoint is a pod that has an agent.
type Endpoint struct {
	// Name of the pod.
	Name string
	// UID of the pod, which its report has to carry.
	UID string
	// Address is host:port of the agent, the pod's IP with [report.Port]; see [net.JoinHostPort]. Empty: the pod has no IP yet, and is
	// not asked.
	Address string
	// Since is when the pod's container started. While it is young it is asked more often if it does not answer; a later time makes it
	// young again.
	Since time.Time
}

// Client asks the agents of the pods that are tracked for their reports and tells of changes. Each pod has a request of its own that
// waits for news, so that a rebalance arrives as it happens. All methods may be called at any time, from any goroutine.
type Client struct {
	client  *http.Client
	long    chan struct{} // Holds an element for each pod with a long-poll.
	short   chan struct{} // Holds an element for each short poll under way.
	log     logr.Logger
	changes *tracker.Changes

	mu      sync.Mutex
	started context.Context                // Nil until Start.
	tracked map[string]map[string]*podPoll // By key, then by UID.
	running sync.WaitGroup
}

// Options are the settings of a [Client].
type Options struct {
	// Dial connects to a pod; nil: over TCP, with the keep-alive that finds dead machines.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LongPolls is how many pods have a long-poll; those beyond are asked in turn, every ten seconds. 0: 2,000.
	LongPolls int
	// Log takes, at level 1, why pods cannot be asked, with text from the network; the zero value discards.
	Log logr.Logger
}

// New makes a source of reports that tracks nothing yet.
func New(o Options) *Client {
	dial := o.Dial
	if dial == nil {
		dial = newReportDialer().DialContext
	}
	return &Client{
		client:  newReportClient(dial),
		long:    make(chan struct{}, cmp.Or(o.LongPolls, maxLongPolls)),
		short:   make(chan struct{}, maxShortPolls),
		log:     o.Log,
		changes: tracker.NewChanges(),
		tracked: map[string]map[string]*podPoll{},
	}
}

// Start asks until the context ends, and then ends all requests. It may be called once.
func (r *Client) Start(ctx context.Context) error {
	r.mu.Lock()
	if r.started != nil {
		r.mu.Unlock()
		return errors.New("the source of reports was started before")
	}
	r.started = ctx
	for _, pods := range r.tracked {
		for _, p := range pods {
			r.run(p, len(pods))
		}
	}
	r.mu.Unlock()
	r.changes.Run(ctx)
	r.running.Wait()
	return nil
}

// Track makes the pods those of a key: new ones are asked from now on, those that are not there any more are forgotten, and of the
// others what is known stays. The key is sent through [Client.Changes] when something changes in one of them.
func (r *Client) Track(key string, pods []Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.tracked[key]
	now := make(map[string]*podPoll, len(pods))
	for _, e := range pods {
		if now[e.UID] != nil {
			continue
		}
		p := before[e.UID]
		if p == nil || p.endpoint.Address != e.Address {
			p = r.replace(key, p, e, len(pods))
		}
		p.update(e)
		now[e.UID] = p
	}
	for uid, p := range before {
		if now[uid] != p {
			p.end()
		}
	}
	r.tracked[key] = now
}

// replace makes the poll of a pod that is new (old is nil), or that has another address.
func (r *Client) replace(key string, old *podPoll, e Endpoint, pods int) *podPoll {
	p := newPodPoll(key, e)
	if old != nil {
		p.state = old.state
		p.state.Err, p.state.Since, p.state.Gone = nil, time.Time{}, time.Time{}
	}
	if r.started != nil {
		r.run(p, pods)
	}
	return p
}

// Forget ends what [Client.Track] began, and drops what was known of the key's pods.
func (r *Client) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.tracked[key] {
		p.end()
	}
	delete(r.tracked, key)
}

// Latest gives what is known of each pod of a key, by UID; pods that were not asked yet are there as well.
func (r *Client) Latest(key string) map[string]report.PodReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := make(map[string]report.PodReport, len(r.tracked[key]))
	for uid, p := range r.tracked[key] {
		latest[uid] = p.state
	}
	return latest
}

// Changes sends the keys in whose pods something has changed: a first report, one in which more has changed than figures, an error that
// begins, ends, or is another one. Changes of a key that waits to be received are told together. The channel is never closed.
func (r *Client) Changes() <-chan string { return r.changes.C() }
