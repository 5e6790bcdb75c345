// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/report/reporttest"
	"streamweir.dev/streamweir/assignment"
)

// client returns a KafkaStreams client of an application. A thread is a list of its tasks, standbys with a star: "0_1 0_2*".
func client(applicationID, clientID string, threads ...string) report.Client {
	c := report.Client{ApplicationID: applicationID, ClientID: clientID, Version: "4.4.0"}
	for i, tasks := range threads {
		thread := report.Thread{Name: fmt.Sprintf("%s-StreamThread-%d", clientID, i+1)}
		for task := range strings.FieldsSeq(tasks) {
			role := report.RoleActive
			if id, ok := strings.CutSuffix(task, "*"); ok {
				task, role = id, report.RoleStandby
			}
			thread.Tasks = append(thread.Tasks, report.Task{ID: task, Role: role})
		}
		c.Threads = append(c.Threads, thread)
	}
	return c
}

// with adds settings in the form name=value.
func with(c report.Client, settings ...string) report.Client {
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		c.Settings = append(c.Settings, report.Setting{Name: name, Value: value, By: report.SetByApp})
	}
	return c
}

// opens adds stores in the form name:scope to all tasks of a subtopology.
func opens(c report.Client, subtopology string, stores ...string) report.Client {
	for i := range c.Threads {
		for j := range c.Threads[i].Tasks {
			task := &c.Threads[i].Tasks[j]
			if !strings.HasPrefix(task.ID, subtopology+"_") {
				continue
			}
			for _, s := range stores {
				name, scope, _ := strings.Cut(s, ":")
				task.Stores = append(task.Stores, report.Store{Name: name, Scope: scope})
			}
		}
	}
	return c
}

// reports returns the report of a pod with some clients.
func reports(pod string, clients ...report.Client) report.PodReport {
	return report.PodReport{Pod: pod, UID: pod, Report: &report.Report{Clients: clients}}
}

// tasksOf parses tasks in the form of client.
func tasksOf(text string) assignment.Tasks {
	var all assignment.Tasks
	for id := range strings.FieldsSeq(text) {
		list := &all.Active
		if rest, ok := strings.CutSuffix(id, "*"); ok {
			id, list = rest, &all.Standby
		}
		i := strings.LastIndexByte(id, '_')
		var partition int32
		_, _ = fmt.Sscan(id[i+1:], &partition) // Zero for a malformed test case.
		*list = append(*list, assignment.Task{Subtopology: id[:i], Partition: partition})
	}
	return all
}

func TestGroupOfReportsCombinesPods(t *testing.T) {
	pods := []report.PodReport{
		reports("a", opens(with(client("orders", "orders-1", "0_0 1_4", "0_2 0_1*"), "num.standby.replicas=1", "security.protocol=SASL_SSL"),
			"0", "counts:rocksdb-state", "hourly:rocksdb-window-state")),
		reports("b", opens(with(client("orders", "orders-2", "0_1 0_0*"), "num.standby.replicas=1", "consumer.group.instance.id=b"),
			"0", "counts:rocksdb-state", "seen:in-memory-session-state")),
		reports("c"),
	}
	pods[1].Report.Clients[0].GlobalStores = []report.Store{{Name: "rates", Scope: "rocksdb-state"}}
	pods[1].Report.Clients[0].Brokers = 3
	got := assignment.GroupOfReports(pods, "", nil)
	want := assignment.ReportedGroup{ReportedApplication: assignment.ReportedApplication{
		Group: assignment.Group{
			ApplicationID: "orders", Protocol: assignment.Classic, Assigned: true, VersionHint: "4.4.0", Brokers: 3, TLS: true, Standbys: new(int32(1)),
			Processes: []assignment.Process{
				{ID: "a/orders-1", ClientID: "orders-1", Threads: 2, Tasks: tasksOf("0_0 0_2 1_4 0_1*")},
				{ID: "b/orders-2", ClientID: "orders-2", Threads: 1, Static: true, Tasks: tasksOf("0_1 0_0*")},
			},
			Subtopologies: []assignment.Subtopology{
				{ID: "0", Tasks: 3, Stateful: true, Stores: []assignment.OpenStore{
					{Name: "counts", Kind: assignment.KeyValue},
					{Name: "hourly", Kind: assignment.Window},
					{Name: "seen", Kind: assignment.Session, InMemory: true},
				}},
				{ID: "1", Tasks: 5},
			},
			GlobalStores: []string{"rates"},
		},
		Loads: []assignment.PodLoad{
			{Pod: "a", Processes: 1, Threads: 2, Tasks: tasksOf("0_0 0_2 1_4 0_1*")},
			{Pod: "b", Processes: 1, Threads: 1, Static: true, Tasks: tasksOf("0_1 0_0*")},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got.Complete() {
		t.Error("all pods have reported, but the group is not complete")
	}
}

func TestGroupOfReportsChoosesTheApplication(t *testing.T) {
	pods := []report.PodReport{
		reports("a", client("audit", "audit-1", "0_0"), client("orders", "orders-1", "0_0 0_1")),
		reports("b", client("orders", "orders-2", "0_2"), client("zoo", "zoo-1", "0_0 0_1 0_2")),
	}
	cases := map[string]struct {
		pods          []report.PodReport
		applicationID string
		want          string
		wantGuessed   bool
		wantFurther   string
	}{
		"by its ID":                             {pods, "audit", "audit", false, "orders zoo"},
		"by the ID of another application":      {pods, "payments", "payments", false, "audit orders zoo"},
		"the one with most tasks, then by name": {pods, "", "orders", true, "audit zoo"},
		"the only one":                          {pods[:1:1][:0], "", "", false, ""},
		"the only one without tasks":            {[]report.PodReport{reports("a", client("orders", "x", ""))}, "", "orders", false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := assignment.GroupOfReports(c.pods, c.applicationID, nil)
			var further []string
			for _, a := range got.Further {
				further = append(further, a.Group.ApplicationID)
			}
			if got.Group.ApplicationID != c.want || got.Guessed != c.wantGuessed || strings.Join(further, " ") != c.wantFurther {
				t.Errorf("the application is %q (guessed: %v), the others are %q", got.Group.ApplicationID, got.Guessed, further)
			}
		})
	}
}

func TestGroupOfReportsAddsTheClientsOfAPod(t *testing.T) {
	got := assignment.GroupOfReports([]report.PodReport{
		reports("a", with(client("orders", "x", "0_0", "0_1"), "group.instance.id=x"), client("orders", "y", "0_2 0_1*")),
	}, "orders", nil)
	want := []assignment.PodLoad{{Pod: "a", Processes: 2, Threads: 3, Tasks: tasksOf("0_0 0_1 0_2 0_1*")}}
	if diff := cmp.Diff(want, got.Loads); diff != "" {
		t.Errorf("loads (-want +got):\n%s", diff)
	}
}

func TestGroupOfReportsIsCompleteWithAllPods(t *testing.T) {
	silent := report.PodReport{Pod: "z", Err: &report.Error{Fault: report.Unreachable}}
	got := assignment.GroupOfReports([]report.PodReport{silent, {Pod: "y"}, reports("a", client("orders", "x", "0_0"))}, "", nil)
	if diff := cmp.Diff([]string{"y", "z"}, got.Missing); diff != "" || got.Complete() || got.Group.Assigned {
		t.Errorf("complete is %v, assigned %v; missing (-want +got):\n%s", got.Complete(), got.Group.Assigned, diff)
	}
	if got.Loads[0].Pod != "a" {
		t.Errorf("the loads of the reporting pods are missing: %+v", got.Loads)
	}
	if got := assignment.GroupOfReports(nil, "", nil); !got.Complete() || got.Group.Assigned || len(got.Loads) > 0 {
		t.Errorf("without pods the group is %+v", got)
	}
}

func TestGroupOfReportsKeepsKnownSubtopologies(t *testing.T) {
	known := []assignment.Subtopology{
		{ID: "0", Tasks: 12, Stores: []assignment.OpenStore{{Name: "counts", Kind: assignment.Window}, {Name: "old", Kind: assignment.KeyValue}}},
		{ID: "1", Tasks: 2},
		{ID: "2", Tasks: 4},
	}
	pods := []report.PodReport{reports("a", opens(client("orders", "x", "0_3 1_7"), "0", "counts:rocksdb-state"))}
	got := assignment.GroupOfReports(pods, "", known)
	want := []assignment.Subtopology{
		{ID: "0", Tasks: 12, Stateful: true,
			Stores: []assignment.OpenStore{{Name: "counts", Kind: assignment.KeyValue}, {Name: "old", Kind: assignment.KeyValue}}},
		{ID: "1", Tasks: 8},
		{ID: "2", Tasks: 4},
	}
	if diff := cmp.Diff(want, got.Group.Subtopologies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroupOfReportsDerivesStoreKinds(t *testing.T) {
	cases := map[string]assignment.OpenStore{
		"counts:rocksdb-state":                                            {Kind: assignment.KeyValue},
		"counts:":                                                         {Kind: assignment.KeyValue},
		"hourly:rocksdb-window-state":                                     {Kind: assignment.Window},
		"visits:rocksdb-session-state":                                    {Kind: assignment.Session},
		"cache:in-memory-state":                                           {Kind: assignment.KeyValue, InMemory: true},
		"cache:in-memory-lru-state":                                       {Kind: assignment.KeyValue, InMemory: true},
		"cache:in-memory-window-state":                                    {Kind: assignment.Window, InMemory: true},
		"cache:in-memory-session-state":                                   {Kind: assignment.Session, InMemory: true},
		"late:in-memory-suppression-state":                                {Kind: assignment.Suppress, InMemory: true},
		"KSTREAM-JOINTHIS-0000000004-store:rocksdb-window-state":          {Kind: assignment.JoinWindow},
		"pay-this-join-store:rocksdb-window-state":                        {Kind: assignment.JoinWindow},
		"pay-other-join-store:in-memory-window-state":                     {Kind: assignment.JoinWindow, InMemory: true},
		"KSTREAM-OUTERSHARED-0000000004-store:rocksdb-state":              {Kind: assignment.OuterJoinList},
		"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-000000001:rocksdb-state": {Kind: assignment.ForeignKeySubscription},
	}
	for store, want := range cases {
		t.Run(store, func(t *testing.T) {
			want.Name, _, _ = strings.Cut(store, ":")
			got := assignment.GroupOfReports([]report.PodReport{reports("a", opens(client("orders", "x", "0_0"), "0", store))}, "", nil)
			if diff := cmp.Diff([]assignment.OpenStore{want}, got.Group.Subtopologies[0].Stores); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroupOfReportsDerivesFacts(t *testing.T) {
	version := func(c report.Client, v string) report.Client {
		c.Version = v
		return c
	}
	cases := map[string]struct {
		clients      []report.Client
		wantProtocol assignment.Protocol
		wantStandbys int32 // -1 for unknown.
		wantVersion  string
		wantWarnings string
	}{
		"defaults":             {[]report.Client{client("o", "x", "")}, assignment.Classic, 0, "4.4.0", ""},
		"the streams protocol": {[]report.Client{with(client("o", "x", ""), "group.protocol=STREAMS")}, assignment.Streams, -1, "4.4.0", ""},
		"malformed standbys":   {[]report.Client{with(client("o", "x", ""), "num.standby.replicas=many")}, assignment.Classic, 0, "4.4.0", ""},
		"too many standbys": {
			[]report.Client{with(client("o", "x", ""), "num.standby.replicas=2000000000")}, assignment.Classic, 1000, "4.4.0", "",
		},
		"negative standbys": {[]report.Client{with(client("o", "x", ""), "num.standby.replicas=-4")}, assignment.Classic, 0, "4.4.0", ""},
		"a rollout": {
			[]report.Client{
				version(with(client("o", "x", ""), "num.standby.replicas=2", "group.protocol=streams"), "3.10.0"), version(client("o", "y", ""), "3.9.1"),
				version(client("o", "z", ""), ""),
			},
			assignment.Classic, 2, "3.9.1",
			"the pods have different settings of group.protocol; the pods have different settings of num.standby.replicas; the largest counts; " +
				"the pods run different versions of Kafka Streams: 3.9.1, 3.10.0",
		},
		"malformed versions": {
			[]report.Client{version(client("o", "x", ""), "trunk"), version(client("o", "y", ""), "4.4.0-SNAPSHOT")},
			assignment.Classic, 0, "trunk", "the pods run different versions of Kafka Streams: trunk, 4.4.0-SNAPSHOT",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := assignment.GroupOfReports([]report.PodReport{reports("a", c.clients...)}, "", nil).Group
			standbys := int32(-1)
			if g.Standbys != nil {
				standbys = *g.Standbys
			}
			if g.Protocol != c.wantProtocol || standbys != c.wantStandbys || g.VersionHint != c.wantVersion || strings.Join(g.Warnings, "; ") != c.wantWarnings {
				t.Errorf("the group is %s with %d standbys, version %s, warnings %q", g.Protocol, standbys, g.VersionHint, g.Warnings)
			}
		})
	}
}

func TestGroupOfReportsIsIndependentOfTheOrder(t *testing.T) {
	for seed := range int64(200) {
		r := rand.New(rand.NewSource(seed))
		pods := randomReports(r)
		want := assignment.GroupOfReports(shuffled(r, pods), "", nil)
		again := assignment.GroupOfReports(shuffled(r, pods), "", nil)
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		once := assignment.GroupOfReports(pods, "", want.Group.Subtopologies)
		if diff := cmp.Diff(want, once); diff != "" {
			t.Fatalf("seed %d: known subtopologies change the result (-want +got):\n%s", seed, diff)
		}
	}
}

// randomReports returns random reports of pods with up to three applications.
func randomReports(r *rand.Rand) []report.PodReport {
	var pods []report.PodReport
	scopes := []string{"rocksdb-state", "rocksdb-window-state", "in-memory-state"}
	for i := range 2 + r.Intn(4) {
		if r.Intn(5) == 0 {
			pods = append(pods, report.PodReport{Pod: fmt.Sprint("pod-", i)})
			continue
		}
		var clients []report.Client
		for range r.Intn(4) {
			var threads []string
			for range r.Intn(3) {
				threads = append(threads, fmt.Sprintf("%d_%d %d_%d*", r.Intn(3), r.Intn(9), 3+r.Intn(3), r.Intn(9)))
			}
			c := client(fmt.Sprint("app-", r.Intn(3)), fmt.Sprint("client-", r.Intn(2)), threads...)
			c.Version = fmt.Sprintf("4.%d.0", r.Intn(12))
			clients = append(clients, opens(with(c, fmt.Sprint("num.standby.replicas=", r.Intn(3))),
				fmt.Sprint(r.Intn(6)), "store-a:"+scopes[r.Intn(3)], "store-b:"+scopes[r.Intn(3)]))
		}
		pods = append(pods, reports(fmt.Sprint("pod-", i), clients...))
	}
	return pods
}

// shuffled returns the pods and their clients in another order.
func shuffled(r *rand.Rand, pods []report.PodReport) []report.PodReport {
	pods = slices.Clone(pods)
	r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for i := range pods {
		if pods[i].Report == nil {
			continue
		}
		clients := slices.Clone(pods[i].Report.Clients)
		r.Shuffle(len(clients), func(i, j int) { clients[i], clients[j] = clients[j], clients[i] })
		pods[i].Report = &report.Report{Clients: clients}
	}
	return pods
}

// FuzzGroupOfReports checks that no report makes the subtopologies of an application larger than a million tasks.
func FuzzGroupOfReports(f *testing.F) {
	const uid = "7d9b2c2e-52a1-4c63-9ef1-6f2f6e3a8d10"
	f.Add(reporttest.Encode(f, reporttest.New(uid, 1, 2, 1)))
	f.Add([]byte(`{"schema":1,"podUID":"` + uid + `","seq":-1,"clients":[{"threads":[{"tasks":[{"id":"0_99999"},{"id":"0_1"},{"id":"0_1"}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := report.Decode(data, uid)
		if err != nil {
			return
		}
		group := assignment.GroupOfReports([]report.PodReport{{Pod: "a", Report: decoded}}, "", nil)
		tasks := 0
		for _, s := range group.Group.Subtopologies {
			tasks += int(s.Tasks)
		}
		if tasks < 0 || tasks > 1_000_000 {
			t.Errorf("the subtopologies have %d tasks", tasks)
		}
	})
}
