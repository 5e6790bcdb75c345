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

// Pod is what [Match] needs to know of a pod.
type Pod struct {
	// Name of the pod.
	Name string
	// Addresses are all its IP addresses (status.podIPs).
	Addresses []string
}

// PodLoad is what the processes in one pod run together. Several KafkaStreams clients in a pod add up.
type PodLoad struct {
	// Pod is the pod's name.
	Pod string
	// Processes is how many KafkaStreams clients run in the pod.
	Processes int
	// Threads of all of them.
	Threads int
	// Static says that all of them have static membership.
	Static bool
	// Tasks of all of them now.
	Tasks Tasks
	// Target is what they are going to run, nil where it is not known or no different.
	Target *Tasks
}

// Unmatched is a pod or a process without its counterpart.
type Unmatched struct {
	// Name of the pod, or ID of the process.
	Name string
	// Host is the process's address; empty for a pod.
	Host string
	// Why is a sentence for a person, the same from pass to pass.
	Why string
}

// Matching is the answer of [Match]. All lists are sorted.
type Matching struct {
	// Loads of the pods that could be matched, by pod.
	Loads []PodLoad
	// Pods without a process: not (yet) members, or not to be told apart.
	Pods []Unmatched
	// Processes without a pod. While there are any, each pod in Pods may be any of them: it must be planned for
	// Heaviest.
	Processes []Unmatched
	// Heaviest is the largest load that a process without a pod has, zero if there is none.
	Heaviest PodLoad
}

// Complete says that every process has its pod.
func (m Matching) Complete() bool { return len(m.Processes) == 0 }

// Match finds the pods that processes run in, by the address that the broker sees. It fails, and says why, where that
// address is not the pod's own (source NAT on the way) or where pods share one (host network).
func Match(processes []Process, pods []Pod) Matching {
	owners := podsByAddress(pods)
	byPod := map[string][]Process{}
	shared := map[string]string{}
	var m Matching
	var lost []Process
	for _, p := range processes {
		names := owners[normalHost(p.Host)]
		if len(names) == 1 {
			byPod[names[0]] = append(byPod[names[0]], p)
			continue
		}
		lost = append(lost, p)
		m.Processes = append(m.Processes, Unmatched{Name: p.ID, Host: p.Host, Why: whyProcess(p, names)})
		for _, name := range names {
			shared[name] = p.Host
		}
	}
	for _, pod := range pods {
		if ps := byPod[pod.Name]; len(ps) > 0 {
			m.Loads = append(m.Loads, sum(pod.Name, ps))
			continue
		}
		m.Pods = append(m.Pods, Unmatched{Name: pod.Name, Why: whyPod(shared[pod.Name], len(lost))})
	}
	m.Heaviest = heaviest(lost)
	slices.SortFunc(m.Loads, func(a, b PodLoad) int { return cmp.Compare(a.Pod, b.Pod) })
	byName := func(a, b Unmatched) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host)) }
	slices.SortFunc(m.Pods, byName)
	slices.SortFunc(m.Processes, byName)
	return m
}

// podsByAddress gives the names of the pods with an address, each once, sorted.
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

// whyProcess says why a process has no pod; names are the pods that share its address.
func whyProcess(p Process, names []string) string {
	if len(names) > 1 {
		return fmt.Sprintf("pods %s share the address %s (host network?)", strings.Join(names, ", "), p.Host)
	}
	return fmt.Sprintf("no pod has the address %s that the broker sees (address translation on the way, or the pod is gone)", p.Host)
}

// whyPod says why a pod has no process.
func whyPod(sharedHost string, lost int) string {
	switch {
	case sharedHost != "":
		return fmt.Sprintf("shares the address %s with other pods (host network?)", sharedHost)
	case lost > 0:
		return "no member of the group has its address, and some members have no pod"
	}
	return "no member of the group has its address: it has not joined"
}

// sum adds up the processes of one pod.
func sum(pod string, processes []Process) PodLoad {
	load := PodLoad{Pod: pod, Processes: len(processes), Static: true}
	var target Tasks
	var moving bool
	for _, p := range processes {
		load.Threads += p.Threads
		load.Static = load.Static && p.Static
		load.Tasks = load.Tasks.plus(p.Tasks)
		if p.Target != nil {
			moving = true
			target = target.plus(*p.Target)
			continue
		}
		target = target.plus(p.Tasks)
	}
	if moving {
		load.Target = &target
	}
	return load
}

// plus gives the tasks of both; a task that both have is held twice, and stays in the list twice.
func (t Tasks) plus(o Tasks) Tasks {
	merge := func(a, b []Task) []Task {
		all := slices.Concat(a, b)
		slices.SortFunc(all, CompareTasks)
		return all
	}
	return Tasks{Active: merge(t.Active, o.Active), Standby: merge(t.Standby, o.Standby), WarmUp: merge(t.WarmUp, o.WarmUp)}
}

// heaviest gives the load of the process with most tasks now or soon, then most active ones, then the first.
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

// normalHost brings an address to one form: no leading slash (Java prints "/10.1.2.3"), no brackets, no zone, IPv4 in
// IPv6 as IPv4, IPv6 in its short form. A host name stays as it is, in lower case.
func normalHost(host string) string {
	host = host[strings.LastIndexByte(host, '/')+1:]
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	address, err := netip.ParseAddr(host)
	if err != nil {
		return strings.ToLower(host)
	}
	return address.Unmap().WithZone("").String()
}
