// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"maps"
	"slices"

	"streamweir.dev/streamweir/agent/report"
)

// ReportedApplication is one application in the reports of some pods.
type ReportedApplication struct {
	// Group is the application from the view of its pods. It has only the fields ApplicationID, Protocol, Assigned (there is a process, and
	// all pods have reported), Processes, Subtopologies (with Stores instead of Changelogs), GlobalStores, Standbys (classic protocol
	// only), VersionHint (the oldest running version), Brokers, TLS and Warnings. Warm-ups are among the standbys.
	//
	// A process has the ID <pod>/<client.id> and no host.
	Group Group
	// Loads are the loads of the pods with a client of the application, sorted by pod.
	Loads []PodLoad
}

// ReportedGroup is the result of [GroupOfReports].
type ReportedGroup struct {
	// ReportedApplication is the application of the workload.
	ReportedApplication

	// Further are other applications with clients in the same pods, and so in the same memory, sorted by application ID.
	Further []ReportedApplication
	// Guessed is true if the pods run several applications and none was specified. The one with the most tasks was chosen.
	Guessed bool
	// Missing are the pods without a report of all their tasks, sorted.
	Missing []string
}

// Complete returns whether all pods have reported.
func (g *ReportedGroup) Complete() bool { return len(g.Missing) == 0 }

// GroupOfReports combines the reports of the pods of one workload. The order of the pods does not matter. Pods without a report are
// missing, and so are those with a truncated one; the caller excludes an outdated report by setting Report to nil.
//
// applicationID specifies the application. If it is empty, the result is the only application of the pods, or the one with the most tasks,
// or the first of these by name. known are the last known subtopologies: tasks and stores that no pod has at present still count. The
// caller drops them for another application, as after a rollout.
func GroupOfReports(pods []report.PodReport, applicationID string, known []Subtopology) ReportedGroup {
	var group ReportedGroup
	var clients []podClient
	for _, pod := range pods {
		if pod.Report == nil || pod.Report.Truncated {
			group.Missing = append(group.Missing, pod.Pod)
			continue
		}
		for i := range pod.Report.Clients {
			clients = append(clients, podClient{pod.Pod, &pod.Report.Clients[i]})
		}
	}
	slices.Sort(group.Missing)
	byApplication := clientsByApplication(clients)
	applicationID, group.Guessed = choose(byApplication, applicationID)
	for _, id := range slices.Sorted(maps.Keys(byApplication)) {
		if id != applicationID {
			group.Further = append(group.Further, applicationOf(id, byApplication[id], nil))
		}
	}
	group.ReportedApplication = applicationOf(applicationID, byApplication[applicationID], known)
	group.Group.Assigned = len(group.Group.Processes) > 0 && group.Complete()
	for i := range group.Further {
		group.Further[i].Group.Assigned = group.Complete()
	}
	return group
}

// podClient is a KafkaStreams client in a pod.
type podClient struct {
	pod string
	*report.Client
}

// tasks returns the number of tasks of a client.
func (c podClient) tasks() int {
	n := 0
	for _, t := range c.Threads {
		n += len(t.Tasks)
	}
	return n
}

// setting returns the value of a setting of the main consumer or of Kafka Streams, with the most specific prefix.
func (c podClient) setting(name string) (string, bool) {
	for _, prefix := range []string{"main.consumer.", "consumer.", ""} {
		if i := slices.IndexFunc(c.Settings, func(s report.Setting) bool { return s.Name == prefix+name }); i >= 0 {
			return c.Settings[i].Value, true
		}
	}
	return "", false
}

func clientsByApplication(clients []podClient) map[string][]podClient {
	byApplication := map[string][]podClient{}
	for _, client := range clients {
		byApplication[client.ApplicationID] = append(byApplication[client.ApplicationID], client)
	}
	return byApplication
}

// choose returns the application to use, and whether it is a guess.
func choose(byApplication map[string][]podClient, applicationID string) (string, bool) {
	if applicationID != "" || len(byApplication) == 0 {
		return applicationID, false
	}
	tasks := func(id string) int {
		total := 0
		for _, client := range byApplication[id] {
			total += client.tasks()
		}
		return total
	}
	best := slices.MaxFunc(slices.Collect(maps.Keys(byApplication)), func(a, b string) int {
		return cmp.Or(cmp.Compare(tasks(a), tasks(b)), cmp.Compare(b, a))
	})
	return best, len(byApplication) > 1
}

// applicationOf combines the clients of one application.
func applicationOf(id string, clients []podClient, known []Subtopology) ReportedApplication {
	application := ReportedApplication{Group: Group{ApplicationID: id}}
	group := &application.Group
	byPod := map[string][]Process{}
	for _, client := range clients {
		process := processOf(client)
		group.Processes = append(group.Processes, process)
		byPod[client.pod] = append(byPod[client.pod], process)
	}
	for _, pod := range slices.Sorted(maps.Keys(byPod)) {
		application.Loads = append(application.Loads, sum(pod, byPod[pod]))
	}
	slices.SortFunc(group.Processes, compareProcesses)
	group.Subtopologies = reportedSubtopologies(clients, known)
	group.GlobalStores = reportedGlobalStores(clients)
	addFacts(group, clients)
	return application
}

// compareProcesses orders processes by ID, then by threads and tasks. Clients of a pod may have the same client.id, and the order of the
// reports must not matter.
func compareProcesses(a, b Process) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Threads, b.Threads),
		slices.CompareFunc(a.Tasks.Active, b.Tasks.Active, CompareTasks),
		slices.CompareFunc(a.Tasks.Standby, b.Tasks.Standby, CompareTasks))
}

// processOf converts a client to a process.
func processOf(client podClient) Process {
	_, static := client.setting("group.instance.id")
	process := Process{ID: client.pod + "/" + client.ClientID, ClientID: client.ClientID, Threads: len(client.Threads), Static: static}
	for _, thread := range client.Threads {
		for _, reported := range thread.Tasks {
			task, ok := parseTask(reported.ID)
			switch {
			case !ok:
			case reported.Role == report.RoleStandby:
				process.Tasks.Standby = append(process.Tasks.Standby, task)
			default:
				process.Tasks.Active = append(process.Tasks.Active, task)
			}
		}
	}
	sortTasks(process.Tasks.Active)
	sortTasks(process.Tasks.Standby)
	return process
}

// parseTask parses the ID of a reported task.
func parseTask(id string) (Task, bool) {
	subtopology, partition, ok := report.ParseTaskID(id)
	return Task{Subtopology: subtopology, Partition: partition}, ok
}
