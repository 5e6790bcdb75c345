// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"maps"
	"slices"

	"streamweir.dev/streamweir/agent/report"
)

// ReportedApplication is what the reports of some pods say of one application.
type ReportedApplication struct {
	// Group is the application as its pods see it. Of its fields these are known: ApplicationID, Protocol, Assigned (there is a process,
	// and every pod has reported), Processes, Subtopologies (with Stores in place of Changelogs), GlobalStores, Standbys (classic protocol
	// only), VersionHint (the oldest version that runs), Brokers, TLS and Warnings. Warm-ups stand among the standbys.
	//
	// A process has the ID <pod>/<client.id>, and no host.
	Group Group
	// Loads is what each pod runs of the application, sorted by pod. Pods that run nothing of it are not there.
	Loads []PodLoad
}

// ReportedGroup is the answer of [GroupOfReports].
type ReportedGroup struct {
	// ReportedApplication is the one that is meant.
	ReportedApplication

	// Further are other applications whose clients run in the same pods, and use the same memory, sorted by application ID.
	Further []ReportedApplication
	// Guessed says that no application ID was given and that the pods run several applications: the one with most tasks was taken.
	Guessed bool
	// Missing are the pods without a report, sorted.
	Missing []string
}

// Complete says that every pod has reported.
func (g *ReportedGroup) Complete() bool { return len(g.Missing) == 0 }

// GroupOfReports puts together what the pods of one workload report. The order of the pods makes no difference; pods without a report
// count as missing, so that a caller leaves out, by setting report.Report to nil, what it thinks too old.
//
// applicationID is the application that is meant; empty: the only one that the pods run, else the one with most tasks, then the first by
// name. known are the subtopologies as they were last known: a task that no pod has right now does not make a subtopology smaller, nor a
// store that is not open right now make it poorer. They are to be dropped when the application is another one, as after a rollout.
func GroupOfReports(pods []report.PodReport, applicationID string, known []Subtopology) ReportedGroup {
	var g ReportedGroup
	var clients []podClient
	for _, p := range pods {
		if p.Report == nil {
			g.Missing = append(g.Missing, p.Pod)
			continue
		}
		for i := range p.Report.Clients {
			clients = append(clients, podClient{p.Pod, &p.Report.Clients[i]})
		}
	}
	slices.Sort(g.Missing)
	byApplication := clientsByApplication(clients)
	applicationID, g.Guessed = meant(byApplication, applicationID)
	for _, id := range slices.Sorted(maps.Keys(byApplication)) {
		if id != applicationID {
			g.Further = append(g.Further, applicationOf(id, byApplication[id], nil))
		}
	}
	g.ReportedApplication = applicationOf(applicationID, byApplication[applicationID], known)
	g.Group.Assigned = len(g.Group.Processes) > 0 && g.Complete()
	for i := range g.Further {
		g.Further[i].Group.Assigned = g.Complete()
	}
	return g
}

// podClient is a KafkaStreams client in a pod.
type podClient struct {
	pod string
	*report.Client
}

// tasks is the number of tasks of a client.
func (c podClient) tasks() int {
	n := 0
	for _, t := range c.Threads {
		n += len(t.Tasks)
	}
	return n
}

// setting gives the value of a setting of the main consumer or of Kafka Streams: the most specific prefix counts.
func (c podClient) setting(name string) (string, bool) {
	for _, prefix := range []string{"main.consumer.", "consumer.", ""} {
		if i := slices.IndexFunc(c.Settings, func(s report.Setting) bool { return s.Name == prefix+name }); i >= 0 {
			return c.Settings[i].Value, true
		}
	}
	return "", false
}

func clientsByApplication(clients []podClient) map[string][]podClient {
	by := map[string][]podClient{}
	for _, c := range clients {
		by[c.ApplicationID] = append(by[c.ApplicationID], c)
	}
	return by
}

// meant gives the application that is meant, and whether that is a guess.
func meant(by map[string][]podClient, applicationID string) (string, bool) {
	if applicationID != "" || len(by) == 0 {
		return applicationID, false
	}
	tasks := func(id string) int {
		n := 0
		for _, c := range by[id] {
			n += c.tasks()
		}
		return n
	}
	best := slices.MaxFunc(slices.Collect(maps.Keys(by)), func(a, b string) int {
		return cmp.Or(cmp.Compare(tasks(a), tasks(b)), cmp.Compare(b, a))
	})
	return best, len(by) > 1
}

// applicationOf puts together the clients of one application.
func applicationOf(id string, clients []podClient, known []Subtopology) ReportedApplication {
	a := ReportedApplication{Group: Group{ApplicationID: id}}
	byPod := map[string][]Process{}
	for _, c := range clients {
		p := processOf(c)
		a.Group.Processes = append(a.Group.Processes, p)
		byPod[c.pod] = append(byPod[c.pod], p)
	}
	for _, pod := range slices.Sorted(maps.Keys(byPod)) {
		a.Loads = append(a.Loads, sum(pod, byPod[pod]))
	}
	slices.SortFunc(a.Group.Processes, compareProcesses)
	a.Group.Subtopologies, a.Group.GlobalStores = subtopologiesOf(clients, known)
	factsOf(&a.Group, clients)
	return a
}

// compareProcesses orders processes by ID. Clients of a pod that have the same client.id are told apart by what they run, so that the
// order of the reports makes no difference.
func compareProcesses(a, b Process) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Threads, b.Threads),
		slices.CompareFunc(a.Tasks.Active, b.Tasks.Active, CompareTasks),
		slices.CompareFunc(a.Tasks.Standby, b.Tasks.Standby, CompareTasks))
}

// processOf reads a process from a client.
func processOf(c podClient) Process {
	_, static := c.setting("group.instance.id")
	p := Process{ID: c.pod + "/" + c.ClientID, ClientID: c.ClientID, Threads: len(c.Threads), Static: static}
	for _, thread := range c.Threads {
		for _, t := range thread.Tasks {
			task, ok := parseTask(t.ID)
			switch {
			case !ok:
			case t.Role == report.RoleStandby:
				p.Tasks.Standby = append(p.Tasks.Standby, task)
			default:
				p.Tasks.Active = append(p.Tasks.Active, task)
			}
		}
	}
	sortTasks(p.Tasks.Active)
	sortTasks(p.Tasks.Standby)
	return p
}

// parseTask parses the ID of a reported task.
func parseTask(id string) (Task, bool) {
	subtopology, partition, ok := report.ParseTaskID(id)
	return Task{Subtopology: subtopology, Partition: partition}, ok
}
