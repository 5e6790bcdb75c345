// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// KnownAssignment is the assignment as it was last known. Only newer knowledge replaces it: a silent pod is planned with its last load, and
// an application does not look smaller while its tasks move.
type KnownAssignment struct {
	Topology KnownTopology
	// Kafka has the facts that only the Kafka group shows, such as the retention of stores; nil before the first. It has no processes and
	// no state.
	Kafka *assignment.Group
	// Loads are the loads of pods by UID. That of a pod that is gone is kept while an unseen pod counts with it.
	Loads map[types.UID]assignment.PodLoad
	// NotBounded are the pods whose last report shows stores without the bounds, by UID, sorted.
	NotBounded []types.UID
}

// KnownTopology is a topology with its subtopologies as they were last seen in full.
type KnownTopology struct {
	// Hash is the [topologyHash] of the text of Topology#describe(). Another hash is another topology.
	Hash          string
	Subtopologies []assignment.Subtopology
}

// topologyHash returns a short hash of a description of a topology; empty without a description.
func topologyHash(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// empty returns whether nothing is known.
func (k *KnownAssignment) empty() bool {
	return k.Topology.Hash == "" && k.Kafka == nil && len(k.Topology.Subtopologies)+len(k.Loads)+len(k.NotBounded) == 0
}

// seen returns the known subtopologies of the topology with this description; nil if another one, or none, is known.
func (k *KnownAssignment) seen(description string) []assignment.Subtopology {
	if k == nil || k.Topology.Hash != topologyHash(description) {
		return nil
	}
	return k.Topology.Subtopologies
}

// kafkaFacts returns the facts of a Kafka group that do not change from poll to poll.
func kafkaFacts(group *assignment.Group) *assignment.Group {
	return &assignment.Group{
		ApplicationID: group.ApplicationID, Protocol: group.Protocol, Subtopologies: group.Subtopologies, Standbys: group.Standbys,
		SessionTimeout: group.SessionTimeout, Brokers: group.Brokers,
	}
}

// kafka returns the remembered facts of the Kafka group; nil for another application.
func (k *KnownAssignment) kafka(applicationID string) *assignment.Group {
	if k == nil || k.Kafka == nil || k.Kafka.ApplicationID != applicationID {
		return nil
	}
	return k.Kafka
}

// notBounded returns whether the last report of a pod shows stores without the bounds.
func (k *KnownAssignment) notBounded(pod *Pod) bool {
	return k != nil && slices.Contains(k.NotBounded, pod.UID)
}

// load returns the last known load of a pod.
func (k *KnownAssignment) load(pod *Pod) (assignment.PodLoad, bool) {
	if k == nil {
		return assignment.PodLoad{}, false
	}
	load, known := k.Loads[pod.UID]
	load.Pod = pod.Name
	return load, known
}

// gone returns the UIDs of the pods that are gone, the one with the heaviest load first.
func (k *KnownAssignment) gone(pods []Pod) []types.UID {
	if k == nil {
		return nil
	}
	var gone []types.UID
	for uid := range k.Loads {
		if !slices.ContainsFunc(pods, func(p Pod) bool { return p.UID == uid }) {
			gone = append(gone, uid)
		}
	}
	slices.SortFunc(gone, func(a, b types.UID) int { return cmp.Or(heaviestFirst(k.Loads[a], k.Loads[b]), cmp.Compare(a, b)) })
	return gone
}

// unseenLoad returns the load for unseen pod number i. It replaces a pod that is gone, and gets its load. Any further one gets the heaviest load.
func (k *KnownAssignment) unseenLoad(i int, pods []Pod, current []assignment.PodLoad) assignment.PodLoad {
	if gone := k.gone(pods); i < len(gone) {
		return k.Loads[gone[i]]
	}
	all := slices.Clone(current)
	if k != nil {
		all = slices.AppendSeq(all, maps.Values(k.Loads))
	}
	if len(all) == 0 {
		return assignment.PodLoad{}
	}
	return slices.MinFunc(all, heaviestFirst)
}

// heaviestFirst orders loads by their number of tasks, then by pod and tasks: the order must not depend on that of a map.
func heaviestFirst(a, b assignment.PodLoad) int {
	return cmp.Or(cmp.Compare(b.Tasks.Len(), a.Tasks.Len()), cmp.Compare(len(b.Tasks.Active), len(a.Tasks.Active)), cmp.Compare(a.Pod, b.Pod),
		slices.CompareFunc(a.Tasks.Active, b.Tasks.Active, assignment.CompareTasks),
		slices.CompareFunc(a.Tasks.Standby, b.Tasks.Standby, assignment.CompareTasks), cmp.Compare(b.Threads, a.Threads))
}

// nextAssignment returns the known assignment after a pass. Loads are kept while tasks move: a pod that has given tasks up and not received
// others yet would be remembered with too few.
func nextAssignment(f *Facts) *KnownAssignment {
	before := f.Memory.Assignment
	var next KnownAssignment
	if before != nil {
		next = *before
	}
	next.NotBounded = nil
	for i := range f.Pods {
		if p := &f.Pods[i]; p.Report.NotBounded() {
			next.NotBounded = append(next.NotBounded, p.UID)
		}
	}
	slices.Sort(next.NotBounded)
	unknown := f.Assignment.Group == nil || f.Reports.Confirmed != nil // tasks of one report alone are not remembered
	switch {
	case f.Assignment.Group == nil && len(next.NotBounded) == 0:
		return before
	case unknown && next.empty():
		return nil
	case unknown:
		return &next
	}
	if f.Reports.Usable {
		next.Topology = KnownTopology{Hash: topologyHash(topologyText(f.Reports.Client)), Subtopologies: f.Reports.Group.Group.Subtopologies}
	}
	if kafka := f.Kafka.Latest.Group; kafka != nil {
		next.Kafka = kafkaFacts(kafka)
	} else if f.Kafka.Unavailable.Reason == v1alpha1.ReasonNoSource {
		next.Kafka = nil
	}
	if f.Assignment.allTasksRun() {
		next.Loads = f.Assignment.knownLoads(f.Pods, before)
	}
	return &next
}

// allTasksRun returns whether every task of the group is an active task of a pod.
func (a *Assignment) allTasksRun() bool {
	active := map[assignment.Task]bool{}
	for _, load := range a.Matching.Loads {
		for _, task := range load.Tasks.Active {
			active[task] = true
		}
	}
	total := 0
	for _, s := range a.Group.Subtopologies {
		total += int(s.Tasks)
	}
	return total > 0 && len(active) >= total
}

// knownLoads returns the loads of the pods, as far as they are current or were known before, and the loads of pods that are gone that count for
// unseen ones.
func (a *Assignment) knownLoads(pods []Pod, before *KnownAssignment) map[types.UID]assignment.PodLoad {
	loads := map[types.UID]assignment.PodLoad{}
	gone := before.gone(pods)
	for _, uid := range gone[:min(len(gone), a.Unseen)] {
		loads[uid] = before.Loads[uid]
	}
	for i := range pods {
		p := &pods[i]
		known, knownBefore := before.load(p)
		current := slices.IndexFunc(a.Matching.Loads, func(l assignment.PodLoad) bool { return l.Pod == p.Name })
		switch {
		case current >= 0 && p.Running() && !slices.Contains(a.Remembered, p.Name):
			loads[p.UID] = rememberedLoad(a.Matching.Loads[current])
		case knownBefore:
			loads[p.UID] = known
		}
	}
	return loads
}

// rememberedLoad returns the part of a load that is remembered: warm-ups take the memory of standbys.
func rememberedLoad(load assignment.PodLoad) assignment.PodLoad {
	copies := slices.Concat(load.Tasks.Standby, load.Tasks.WarmUp)
	slices.SortFunc(copies, assignment.CompareTasks)
	tasks := assignment.Tasks{Active: sortedTasks(load.Tasks.Active), Standby: sortedTasks(copies)}
	return assignment.PodLoad{Pod: load.Pod, Threads: load.Threads, Tasks: tasks}
}

// sortedTasks returns sorted tasks without duplicates; nil for none.
func sortedTasks(tasks []assignment.Task) []assignment.Task {
	if len(tasks) == 0 {
		return nil
	}
	sorted := slices.Clone(tasks)
	slices.SortFunc(sorted, assignment.CompareTasks)
	return slices.Compact(sorted)
}
