// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Pod is the input of [Match] for one pod.
type Pod struct {
	// Name is the name of the pod.
	Name string
	// Addresses are all IP addresses of the pod (status.podIPs).
	Addresses []string
}

// PodLoad is the sum of all processes in one pod. A pod may run several KafkaStreams clients.
type PodLoad struct {
	// Pod is the name of the pod.
	Pod string
	// Processes is the number of KafkaStreams clients in the pod.
	Processes int
	// Threads is the number of their stream threads.
	Threads int
	// Static is true if all of them have static membership.
	Static bool
	// Tasks are their current tasks.
	Tasks Tasks
	// Target are their future tasks, nil if unknown or equal to Tasks.
	Target *Tasks
}

// Unmatched is a pod or a process without its counterpart.
type Unmatched struct {
	// Name is the name of the pod or the ID of the process.
	Name string
	// Host is the address of the process, empty for a pod.
	Host string
	// Why is a sentence with the reason. It is the same in each pass.
	Why string
}

// Matching is the result of [Match]. All lists are sorted.
type Matching struct {
	// Loads are the loads of the matched pods, by pod.
	Loads []PodLoad
	// Pods are the pods without a process: they are not members (yet), or share an address.
	Pods []Unmatched
	// Processes are the processes without a pod. While there are any, each pod in Pods may run any of them, so a plan must provide for
	// Heaviest.
	Processes []Unmatched
	// Heaviest is the largest load of a process without a pod, zero if there is none.
	Heaviest PodLoad
}

// Complete returns whether every process has a pod.
func (m Matching) Complete() bool { return len(m.Processes) == 0 }

// Match assigns processes to pods by the address that the broker sees. A process stays unmatched if that address is not the pod's own
// (source NAT on the way), or if several pods share it (host network).
func Match(processes []Process, pods []Pod) Matching {
	owners := podsByAddress(pods)
	byPod := map[string][]Process{}
	shared := map[string]string{} // The shared address by pod.
	var matching Matching
	var unmatched []Process
	for _, process := range processes {
		names := owners[normalHost(process.Host)]
		if len(names) == 1 {
			byPod[names[0]] = append(byPod[names[0]], process)
			continue
		}
		unmatched = append(unmatched, process)
		matching.Processes = append(matching.Processes, Unmatched{Name: process.ID, Host: process.Host, Why: whyProcess(process, names)})
		for _, name := range names {
			shared[name] = process.Host
		}
	}
	for _, pod := range pods {
		if own := byPod[pod.Name]; len(own) > 0 {
			matching.Loads = append(matching.Loads, sum(pod.Name, own))
			continue
		}
		matching.Pods = append(matching.Pods, Unmatched{Name: pod.Name, Why: whyPod(shared[pod.Name], len(unmatched))})
	}
	matching.Heaviest = heaviest(unmatched)
	slices.SortFunc(matching.Loads, func(a, b PodLoad) int { return cmp.Compare(a.Pod, b.Pod) })
	byName := func(a, b Unmatched) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host)) }
	slices.SortFunc(matching.Pods, byName)
	slices.SortFunc(matching.Processes, byName)
	return matching
}

// podsByAddress returns the sorted names of the pods with an address, without duplicates.
func podsByAddress(pods []Pod) map[string][]string {
	owners := map[string][]string{}
	for _, pod := range pods {
		for _, address := range pod.Addresses {
			host := normalHost(address)
			if host != "" && !slices.Contains(owners[host], pod.Name) {
				owners[host] = append(owners[host], pod.Name)
			}
		}
	}
	for _, names := range owners {
		slices.Sort(names)
	}
	return owners
}

// whyProcess returns the reason for a process without a pod. names are the pods with its address.
func whyProcess(p Process, names []string) string {
	if len(names) > 1 {
		return fmt.Sprintf("pods %s share the address %s (host network?)", strings.Join(names, ", "), p.Host)
	}
	return fmt.Sprintf("no pod has the address %s that the broker sees (address translation on the way, or the pod is gone)", p.Host)
}

// whyPod returns the reason for a pod without a process.
func whyPod(sharedHost string, unmatched int) string {
	switch {
	case sharedHost != "":
		return fmt.Sprintf("shares the address %s with other pods (host network?)", sharedHost)
	case unmatched > 0:
		return "no member of the group has its address, and some members have no pod"
	}
	return "no member of the group has its address: it has not joined"
}

// sum returns the load of the processes of one pod.
func sum(pod string, processes []Process) PodLoad {
	load := PodLoad{Pod: pod, Processes: len(processes), Static: true}
	var target Tasks
	var moving bool
	for _, process := range processes {
		load.Threads += process.Threads
		load.Static = load.Static && process.Static
		load.Tasks = load.Tasks.plus(process.Tasks)
		if process.Target != nil {
			moving = true
			target = target.plus(*process.Target)
			continue
		}
		target = target.plus(process.Tasks)
	}
	if moving {
		load.Target = &target
	}
	return load
}

// plus returns the tasks of both. A task of both is in memory twice, and stays in the list twice.
func (t Tasks) plus(other Tasks) Tasks {
	merge := func(a, b []Task) []Task {
		all := slices.Concat(a, b)
		slices.SortFunc(all, CompareTasks)
		return all
	}
	return Tasks{Active: merge(t.Active, other.Active), Standby: merge(t.Standby, other.Standby), WarmUp: merge(t.WarmUp, other.WarmUp)}
}

// heaviest returns the load of the process with the most current or future tasks, then the most active tasks, then the first ID.
func heaviest(processes []Process) PodLoad {
	if len(processes) == 0 {
		return PodLoad{}
	}
	weigh := func(p Process) (int, int) {
		if p.Target != nil && p.Target.Len() > p.Tasks.Len() {
			return p.Target.Len(), len(p.Target.Active)
		}
		return p.Tasks.Len(), len(p.Tasks.Active)
	}
	return sum("", []Process{slices.MaxFunc(processes, func(a, b Process) int {
		allA, activeA := weigh(a)
		allB, activeB := weigh(b)
		return cmp.Or(cmp.Compare(allA, allB), cmp.Compare(activeA, activeB), cmp.Compare(b.ID, a.ID))
	})})
}

// normalHost normalizes an address: no leading slash (Java prints "/10.1.2.3"), no brackets, no zone, IPv4 instead of IPv4 in IPv6, and the
// short form of IPv6. It changes a host name to lower case only.
func normalHost(host string) string {
	host = host[strings.LastIndexByte(host, '/')+1:]
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	address, err := netip.ParseAddr(host)
	if err != nil {
		return strings.ToLower(host)
	}
	return address.Unmap().WithZone("").String()
}
