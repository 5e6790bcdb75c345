// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// testJar replaces the agent's jar. Only a JVM reads the content of a jar.
var testJar = []byte("PK: not really a jar")

// topologyOfOrders is the topology of the tests' application: one subtopology with two key-value stores.
const topologyOfOrders = `Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [accounts])
      --> KSTREAM-AGGREGATE-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [totals])
      --> none
      <-- KSTREAM-AGGREGATE-0000000001
`

// fakeAgents replaces the agents in the pods of a fixture: each running pod mounting the agent's ConfigMap has one. It serves reports over
// HTTP. The running pods share the tasks of the application.
type fakeAgents struct {
	f      *fixture
	server *httptest.Server

	mu          sync.Mutex
	byIP        map[string]*fakeAgent
	change      func(pod string, r *report.Report) // changes each report
	unreachable bool                               // connections are refused
	changed     chan struct{}                      // closed by the next change
	seq         int64
}

// fakeAgent is the agent in one pod.
type fakeAgent struct {
	pod, uid string
	plan     string // the mounted ConfigMap
	started  time.Time
	tasks    []int
}

// simulateAgents adds agents. Operators that are started later request their reports.
func (f *fixture) simulateAgents() {
	f.t.Helper()
	a := &fakeAgents{f: f, byIP: map[string]*fakeAgent{}, changed: make(chan struct{}), change: func(string, *report.Report) {}}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	f.t.Cleanup(a.server.Close)
	f.agents = a
	f.agentJar = testJar
	f.run("the simulated agents", a.run)
}

// run adds and removes agents as pods start and end.
func (a *fakeAgents) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(adminSet, 0, informers.WithNamespace(a.f.namespace))
	lister := factory.Core().V1().Pods().Lister()
	factory.Start(ctx.Done())
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		pods, err := lister.Pods(a.f.namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		a.follow(pods)
	}
}

func (a *fakeAgents) follow(pods []*corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[string]*fakeAgent{}
	for _, pod := range pods {
		if !hasAgent(pod) || pod.DeletionTimestamp != nil || pod.Status.PodIP == "" || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		running := pod.Status.ContainerStatuses[0].State.Running
		if running == nil {
			continue
		}
		agent := a.byIP[pod.Status.PodIP]
		if agent == nil || agent.uid != string(pod.UID) {
			agent = &fakeAgent{pod: pod.Name, uid: string(pod.UID), plan: planOf(pod), started: running.StartedAt.Time}
		}
		now[pod.Status.PodIP] = agent
	}
	if fmt.Sprint(sortedIPs(now)) != fmt.Sprint(sortedIPs(a.byIP)) {
		a.byIP = now
		a.spread(tasksOfGroup)
	}
}

// planOf returns the plan ConfigMap that a pod mounts.
func planOf(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == v1alpha1.PlanVolume && v.ConfigMap != nil {
			return v.ConfigMap.Name
		}
	}
	return ""
}

func hasAgent(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == v1alpha1.AgentVolume })
}

func sortedIPs(byIP map[string]*fakeAgent) []string {
	var all []string
	for ip, agent := range byIP {
		all = append(all, ip+agent.uid)
	}
	slices.Sort(all)
	return all
}

// spread assigns the tasks to the agents in turn.
func (a *fakeAgents) spread(tasks int) {
	var all []*fakeAgent
	for _, agent := range a.byIP {
		agent.tasks = nil
		all = append(all, agent)
	}
	slices.SortFunc(all, func(x, y *fakeAgent) int { return cmp.Compare(x.pod, y.pod) })
	for i := range tasks {
		if len(all) > 0 {
			agent := all[i%len(all)]
			agent.tasks = append(agent.tasks, i)
		}
	}
	a.notify()
}

// notify ends the waiting requests.
func (a *fakeAgents) notify() {
	a.seq++
	close(a.changed)
	a.changed = make(chan struct{})
}

// setChange sets the function that changes each report.
func (a *fakeAgents) setChange(change func(pod string, r *report.Report)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change = change
	a.notify()
}

// setUnreachable makes all agents unreachable, or reachable again.
func (a *fakeAgents) setUnreachable(unreachable bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unreachable = unreachable
	a.server.CloseClientConnections()
	a.notify()
}

// dial connects to the agent at an address. One server serves all agents, and distinguishes them by the requested host.
func (a *fakeAgents) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	refused := a.unreachable || a.byIP[host] == nil || port != strconv.Itoa(report.Port)
	a.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, a.server.Listener.Addr().String())
}

func (a *fakeAgents) serve(writer http.ResponseWriter, request *http.Request) {
	host, _, err := net.SplitHostPort(request.Host)
	if err != nil || request.URL.Path != report.Path {
		http.NotFound(writer, request)
		return
	}
	after := request.URL.Query().Get("after")
	wait, _ := time.ParseDuration(request.URL.Query().Get("wait"))
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	ticker := time.NewTicker(polling) // the plan on disk changes at any time
	defer ticker.Stop()
	for {
		reported, token, changed := a.report(host)
		if reported == nil {
			http.NotFound(writer, request)
			return
		}
		if token == "" || request.Header.Get("Authorization") != report.Authorization(token) {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strconv.FormatInt(reported.Seq, 10) != after {
			writer.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(writer).Encode(reported) // the client notices a broken connection
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-deadline.C:
			writer.WriteHeader(http.StatusNoContent)
			return
		case <-request.Context().Done():
			return
		}
	}
}

// report returns the report of the agent at an address, nil without one, the token of its mounted plan, and the channel that the next change
// closes.
func (a *fakeAgents) report(ip string) (*report.Report, string, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	agent := a.byIP[ip]
	if agent == nil {
		return nil, "", a.changed
	}
	mounted := a.f.kubelet.Mounted(agent.pod, agent.plan)
	onDisk := mounted[planfile.RevisionKey]
	reported := reportOf(agent, onDisk)
	reported.Seq = agent.started.UnixMilli()*1000 + a.seq
	for _, c := range onDisk { // another plan changes the sequence number
		reported.Seq = reported.Seq*31%(1<<52) + int64(c)
	}
	a.change(agent.pod, reported)
	return reported, planfile.Token(mounted), a.changed
}

// reportOf returns the report of a bounded process that runs some tasks with a revision of the plan.
func reportOf(agent *fakeAgent, revision string) *report.Report {
	thread := report.Thread{Name: "orders-StreamThread-1"}
	for _, partition := range agent.tasks {
		thread.Tasks = append(thread.Tasks, report.Task{
			ID: fmt.Sprintf("0_%d", partition), Role: report.RoleActive,
			Stores: []report.Store{{Name: "accounts", Scope: "rocksdb-state"}, {Name: "totals", Scope: "rocksdb-state"}},
		})
	}
	return &report.Report{
		Schema: report.Schema, Agent: "1.0.0", PodUID: agent.uid, Started: agent.started.UnixMilli(), Bounded: report.BoundedActive,
		Plan:    report.Plan{OnDisk: revision, Active: revision, Source: report.PlanMounted},
		RocksDB: report.RocksDB{CacheCapacity: 64 << 20, WriteBufferManager: 25 << 20, Opened: int64(2 * len(agent.tasks))},
		Clients: []report.Client{{
			ApplicationID: "orders", ClientID: "orders", Version: "4.4.0", State: "RUNNING", Topology: topologyOfOrders, Brokers: 3,
			Settings: []report.Setting{{Name: "num.stream.threads", Value: "1", By: report.SetByApp}},
			Threads:  []report.Thread{thread},
		}},
		JVM: report.JVM{Version: 25, Vendor: "Eclipse Adoptium", HeapMax: 512 << 20, HeapUsed: 100 << 20, Metaspace: 50 << 20, CodeCache: 30 << 20},
	}
}

// setTasks makes the pods report this number of tasks.
func (a *fakeAgents) setTasks(tasks int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spread(tasks)
}
