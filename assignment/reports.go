// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// ReportPort is the port at which the agent serves its report unless it is told another: chosen, since no service that is likely to run
// in a pod listens there.
const ReportPort = 7907

// maxLongPolls is how many pods [Reports] holds a connection to, if nothing else is said: each costs the operator a socket and 40 KiB
// (measured with 1,000 pods: three goroutines and the buffers of net/http), beside the report itself, 60 KiB with 200 tasks of three stores.
const maxLongPolls = 2000

// PodEndpoint is a pod that has an agent.
type PodEndpoint struct {
	// Name of the pod.
	Name string
	// UID of the pod, which its report has to carry.
	UID string
	// Address is host:port of the agent, the pod's IP with [ReportPort]; see [net.JoinHostPort]. Empty: the pod has no IP yet, and is
	// not asked.
	Address string
	// Since is when the pod's container started. While it is young it is asked more often if it does not answer; a later time makes it
	// young again.
	Since time.Time
}

// PodReport is what a [Reports] knows of a pod.
type PodReport struct {
	// Pod is the pod's name, UID its UID.
	Pod, UID string
	// Report is the newest report that could be read; nil: none so far. It stays the last one while the pod cannot be asked. It is
	// shared: read only.
	Report *Report
	// At is when Report was read. Its figures are as old as that: up to a minute while all is well, since only what matters is told at
	// once.
	At time.Time
	// Err is why the last request failed, nil if it did not, or if none has ended yet.
	Err *ReportError
	// Since is since when requests fail, whatever the fault; zero while Err is nil.
	Since time.Time
	// Gone is when the pod fell silent, although it was connected: its machine, or the network to it, has not acknowledged anything for
	// about 11 s. It is zero again once the pod has answered. A connection that the process closes, as it does when it ends, does not
	// count: the kubelet tells of that at once.
	Gone time.Time
}

// Reports asks the agents of the pods that are tracked for their reports and tells of changes. Each pod has a request of its own that
// waits for news, so that a rebalance arrives as it happens. All methods may be called at any time, from any goroutine.
type Reports struct {
	client  *http.Client
	long    chan struct{} // Holds an element for each pod with a long-poll.
	short   chan struct{} // Holds an element for each short poll under way.
	log     logr.Logger
	changes *changes

	mu      sync.Mutex
	started context.Context                // Nil until Start.
	tracked map[string]map[string]*podPoll // By key, then by UID.
	running sync.WaitGroup
}

// ReportsOptions are the settings of a [Reports].
type ReportsOptions struct {
	// Dial connects to a pod; nil: over TCP, with the keep-alive that finds dead machines.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LongPolls is how many pods have a long-poll; those beyond are asked in turn, every ten seconds. 0: 2,000.
	LongPolls int
	// Log takes, at level 1, why pods cannot be asked, with text from the network; the zero value discards.
	Log logr.Logger
}

// NewReports makes a source of reports that tracks nothing yet.
func NewReports(o ReportsOptions) *Reports {
	dial := o.Dial
	if dial == nil {
		dial = newReportDialer().DialContext
	}
	return &Reports{
		client:  newReportClient(dial),
		long:    make(chan struct{}, cmp.Or(o.LongPolls, maxLongPolls)),
		short:   make(chan struct{}, maxShortPolls),
		log:     o.Log,
		changes: newChanges(),
		tracked: map[string]map[string]*podPoll{},
	}
}

// Start asks until the context ends, and then ends all requests. It may be called once.
func (r *Reports) Start(ctx context.Context) error {
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
	r.changes.run(ctx)
	r.running.Wait()
	return nil
}

// Track makes the pods those of a key: new ones are asked from now on, those that are not there any more are forgotten, and of the
// others what is known stays. The key is sent through [Reports.Changes] when something changes in one of them.
func (r *Reports) Track(key string, pods []PodEndpoint) {
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
func (r *Reports) replace(key string, old *podPoll, e PodEndpoint, pods int) *podPoll {
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

// Forget ends what [Reports.Track] began, and drops what was known of the key's pods.
func (r *Reports) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.tracked[key] {
		p.end()
	}
	delete(r.tracked, key)
}

// Latest gives what is known of each pod of a key, by UID; pods that were not asked yet are there as well.
func (r *Reports) Latest(key string) map[string]PodReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := make(map[string]PodReport, len(r.tracked[key]))
	for uid, p := range r.tracked[key] {
		latest[uid] = p.state
	}
	return latest
}

// Changes sends the keys in whose pods something has changed: a first report, one in which more has changed than figures, an error that
// begins, ends, or is another one. Changes of a key that waits to be received are told together. The channel is never closed.
func (r *Reports) Changes() <-chan string { return r.changes.out }
