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

// testJar stands for the agent's jar: what is in it is nobody's business but the JVM's.
var testJar = []byte("PK: not really a jar")

// topologyOfOrders is what the application of the tests describes: one subtopology with two key-value stores.
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

// agents plays the agents in the pods of a world: each pod that mounts the agent's ConfigMap and runs gets one, which serves reports over
// HTTP. The tasks of the application are shared by those that run.
type agents struct {
	w      *world
	server *httptest.Server

	mu     sync.Mutex
	byIP   map[string]*playedAgent
	change func(pod string, reported *report.Report) // what a test has the agents say instead
	away   bool                                      // no connection is made
	news   chan struct{}                             // closed when something changes
	seq    int64
}

// playedAgent is the agent in one pod.
type playedAgent struct {
	pod, uid string
	started  time.Time
	tasks    []int
}

// playAgents plays agents from now on; operators that are started later ask them.
func (w *world) playAgents() {
	w.t.Helper()
	a := &agents{w: w, byIP: map[string]*playedAgent{}, news: make(chan struct{}), change: func(string, *report.Report) {}}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	w.t.Cleanup(a.server.Close)
	w.agents, w.agentJar = a, testJar
	w.run("the played agents", a.run)
}

// run keeps the agents those of the pods that run.
func (a *agents) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(adminSet, 0, informers.WithNamespace(a.w.namespace))
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
		pods, err := lister.Pods(a.w.namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		a.follow(pods)
	}
}

func (a *agents) follow(pods []*corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[string]*playedAgent{}
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
			agent = &playedAgent{pod: pod.Name, uid: string(pod.UID), started: running.StartedAt.Time}
		}
		now[pod.Status.PodIP] = agent
	}
	if fmt.Sprint(sortedIPs(now)) != fmt.Sprint(sortedIPs(a.byIP)) {
		a.byIP = now
		a.share(tasksOfGroup)
	}
}

func hasAgent(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == v1alpha1.AgentVolume })
}

func sortedIPs(byIP map[string]*playedAgent) []string {
	var all []string
	for ip, agent := range byIP {
		all = append(all, ip+agent.uid)
	}
	slices.Sort(all)
	return all
}

// share gives the tasks to the agents in turn, and tells.
func (a *agents) share(tasks int) {
	var all []*playedAgent
	for _, agent := range a.byIP {
		agent.tasks = nil
		all = append(all, agent)
	}
	slices.SortFunc(all, func(x, y *playedAgent) int { return cmp.Compare(x.pod, y.pod) })
	for i := range tasks {
		if len(all) > 0 {
			agent := all[i%len(all)]
			agent.tasks = append(agent.tasks, i)
		}
	}
	a.tell()
}

// tell ends the requests that wait.
func (a *agents) tell() {
	a.seq++
	close(a.news)
	a.news = make(chan struct{})
}

// say has the agents say something else from now on.
func (a *agents) say(change func(pod string, reported *report.Report)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.change = change
	a.tell()
}

// hide makes all pods unreachable, or reachable again.
func (a *agents) hide(away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = away
	a.server.CloseClientConnections()
	a.tell()
}

// dial connects to the agent at an address: all of them are one server, which tells them apart by the host that is asked for.
func (a *agents) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	refused := a.away || a.byIP[host] == nil || port != strconv.Itoa(report.Port)
	a.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, a.server.Listener.Addr().String())
}

func (a *agents) serve(writer http.ResponseWriter, request *http.Request) {
	host, _, err := net.SplitHostPort(request.Host)
	if err != nil || request.URL.Path != report.Path {
		http.NotFound(writer, request)
		return
	}
	after := request.URL.Query().Get("after")
	wait, _ := time.ParseDuration(request.URL.Query().Get("wait"))
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	look := time.NewTicker(polling) // the plan on disk changes by itself
	defer look.Stop()
	for {
		reported, news := a.report(host)
		if reported == nil {
			http.NotFound(writer, request)
			return
		}
		if strconv.FormatInt(reported.Seq, 10) != after {
			writer.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(writer).Encode(reported) // a connection that broke is the client's to tell
			return
		}
		select {
		case <-news:
		case <-look.C:
		case <-deadline.C:
			writer.WriteHeader(http.StatusNoContent)
			return
		case <-request.Context().Done():
			return
		}
	}
}

// report is what the agent at an address says now; nil if there is none.
func (a *agents) report(ip string) (*report.Report, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	agent := a.byIP[ip]
	if agent == nil {
		return nil, a.news
	}
	onDisk := a.w.kubelet.Mounted(agent.pod, "streamweir-plan-orders")[planfile.RevisionKey]
	reported := reportOf(agent, onDisk)
	reported.Seq = agent.started.UnixMilli()*1000 + a.seq
	for _, c := range onDisk { // another plan is another report
		reported.Seq = reported.Seq*31%(1<<52) + int64(c)
	}
	a.change(agent.pod, reported)
	return reported, a.news
}

// reportOf is a report of a bounded process that runs some tasks.
func reportOf(agent *playedAgent, generation string) *report.Report {
	thread := report.Thread{Name: "orders-StreamThread-1"}
	for _, partition := range agent.tasks {
		thread.Tasks = append(thread.Tasks, report.Task{
			ID: fmt.Sprintf("0_%d", partition), Role: report.RoleActive,
			Stores: []report.Store{{Name: "accounts", Scope: "rocksdb-state"}, {Name: "totals", Scope: "rocksdb-state"}},
		})
	}
	return &report.Report{
		Schema: report.Schema, Agent: "1.0.0", PodUID: agent.uid, Started: agent.started.UnixMilli(), Bounded: report.BoundedActive,
		Plan:    report.Plan{OnDisk: generation, Active: generation, Source: report.PlanMounted},
		RocksDB: report.RocksDB{CacheCapacity: 64 << 20, WriteBufferManager: 25 << 20, Opened: int64(2 * len(agent.tasks))},
		Clients: []report.Client{{
			ApplicationID: "orders", ClientID: "orders", Version: "4.4.0", State: "RUNNING", Topology: topologyOfOrders, Brokers: 3,
			Settings: []report.Setting{{Name: "num.stream.threads", Value: "1", By: report.SetByApp}},
			Threads:  []report.Thread{thread},
		}},
		JVM: report.JVM{Version: 25, Vendor: "Eclipse Adoptium", HeapMax: 512 << 20, HeapUsed: 100 << 20, Metaspace: 50 << 20, CodeCache: 30 << 20},
	}
}

// sharedTasks has the pods report that many tasks.
func (a *agents) sharedTasks(tasks int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.share(tasks)
}
