// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/internal/tracker"
)

// maxLongPolls is the default limit of long polls. Each costs the operator a socket, a goroutine and its buffers, in addition to the report
// itself, 60 KiB with 200 tasks of three stores.
const maxLongPolls = 10000

// Endpoint is a pod with an agent.
type Endpoint struct {
	// Name is the name of the pod.
	Name string
	// UID is the UID of the pod, and must be that of its report.
	UID string
	// Address is the host:port of the agent (see [net.JoinHostPort]): the pod's IP and [report.Port]. A pod without an IP has an empty
	// address and gets no requests.
	Address string
	// Token is the token of the plan that the pod mounts; empty if it is unknown. The agent then returns no report.
	Token string
	// Started is the start of the pod's container. Failed requests are repeated sooner within the startup window after it. A later time
	// begins another window.
	Started time.Time
}

// Client polls the agents of the tracked pods and reports changes. All methods are safe for concurrent use.
type Client struct {
	dial    dialFunc
	long    chan struct{} // Holds an element for each pod with a long poll.
	short   chan struct{} // Holds an element for each short poll in progress.
	failing chan struct{} // Holds an element for each request in progress to a pod whose last request failed.
	log     logr.Logger
	tracker *tracker.Tracker

	mu   sync.Mutex
	pods map[string]map[string]*podPoll // By key, then by UID.
}

// dialFunc connects to an address.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Options configure a [Client].
type Options struct {
	// Dial connects to a pod. Nil connects over TCP, with a keep-alive that detects dead nodes.
	Dial dialFunc
	// LongPolls is the number of pods with a long poll; further pods are polled every ten seconds. Zero means 10,000.
	LongPolls int
	// Log receives the causes of failed requests at level 1, including text from the network. The zero value discards them.
	Log logr.Logger
}

// New returns a client that tracks no pods.
func New(o Options) *Client {
	dial := o.Dial
	if dial == nil {
		dial = newDialer().DialContext
	}
	return &Client{
		dial:    dial,
		long:    make(chan struct{}, cmp.Or(o.LongPolls, maxLongPolls)),
		short:   make(chan struct{}, maxShortPolls),
		failing: make(chan struct{}, maxFailingPolls),
		log:     o.Log,
		tracker: tracker.New("the client for reports"),
		pods:    map[string]map[string]*podPoll{},
	}
}

// Start polls until the context ends, and then ends all requests. It may be called once.
func (c *Client) Start(ctx context.Context) error { return c.tracker.Start(ctx) }

// Track replaces the pods of a key: new pods are polled from now on, missing pods are forgotten, and the reports of all others are kept.
// [Client.Changes] delivers the key when one of its pods changes.
func (c *Client) Track(key string, pods []Endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.pods[key]
	now := make(map[string]*podPoll, len(pods))
	for _, endpoint := range pods {
		if now[endpoint.UID] != nil {
			continue
		}
		poll := before[endpoint.UID]
		if poll == nil || poll.endpoint.Address != endpoint.Address {
			poll = c.replace(key, poll, endpoint, len(pods))
		}
		poll.update(endpoint)
		now[endpoint.UID] = poll
	}
	for uid, poll := range before {
		if now[uid] != poll {
			poll.stop()
		}
	}
	c.pods[key] = now
}

// replace returns the poll of a new pod (old is nil) or of a pod with another address.
func (c *Client) replace(key string, old *podPoll, endpoint Endpoint, pods int) *podPoll {
	poll := newPodPoll(key, endpoint)
	if old != nil {
		poll.state = old.state
		poll.state.Err = nil
		poll.state.Since = time.Time{}
		poll.state.Gone = time.Time{}
	}
	if endpoint.Address != "" {
		poll.stop = c.tracker.Run(func(ctx context.Context) { c.follow(ctx, poll, spread(pods)) })
	}
	return poll
}

// Forget ends the polls of a key and drops the reports of its pods.
func (c *Client) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, poll := range c.pods[key] {
		poll.stop()
	}
	delete(c.pods, key)
}

// Latest returns the latest report of each pod of a key, by UID. It includes pods before their first response.
func (c *Client) Latest(key string) map[string]report.PodReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := make(map[string]report.PodReport, len(c.pods[key]))
	for uid, poll := range c.pods[key] {
		latest[uid] = poll.state
	}
	return latest
}

// Changes returns the channel of the keys with a change in one of their pods: a first report, a report with a significant change (see
// [report.Changed]), or an error that begins, ends or turns into another one. Changes of a waiting key are delivered together. The channel
// is never closed.
func (c *Client) Changes() <-chan string { return c.tracker.Changes() }
