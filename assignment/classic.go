// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// streamsAssignor is the protocol name of a classic Kafka Streams group (StreamsPartitionAssignor.name), and consumerType the protocol type
// of all consumer groups.
const (
	streamsAssignor = "stream"
	consumerType    = "consumer"
)

// classicMember is a decoded member of a classic group.
type classicMember struct {
	described    kmsg.DescribeGroupsResponseGroupMember
	subscription SubscriptionInfo
	assignment   AssignmentInfo
	partitions   []TopicPartition // Sorted, one for each entry of assignment.Active.
}

// DecodeClassic returns the Group for the broker's description of a classic group. A group that is not Stable is not Assigned: its
// description lacks the metadata of the members. Errors have the classes UnknownGroup, NotStreamsGroup, MalformedGroup and those of the
// broker's error codes.
func DecodeClassic(g kmsg.DescribeGroupsResponseGroup) (Group, error) {
	if err := classicError(g); err != nil {
		return Group{}, err
	}
	group := Group{ApplicationID: g.Group, Protocol: Classic, State: g.State, Stable: g.State == "Stable"}
	if !group.Stable || len(g.Members) == 0 {
		return group, nil
	}
	members, err := decodeMembers(g)
	if err != nil {
		return Group{}, err
	}
	group.Warnings = memberFaults(members)
	group.Processes = classicProcesses(members)
	group.Subtopologies = classicSubtopologies(members)
	group.Assigned = len(group.Subtopologies) > 0 || len(group.Warnings) == 0
	group.VersionHint = classicVersion(members)
	group.NextRebalance = nextRebalance(members)
	splitWarmUps(&group, members)
	return group, nil
}

// classicError returns the error of a description, nil for a Kafka Streams group.
func classicError(g kmsg.DescribeGroupsResponseGroup) error {
	if err := kerr.TypedErrorForCode(g.ErrorCode); err != nil {
		return &Error{Class: classOfBroker(err), Group: g.Group, Err: err}
	}
	switch {
	case g.State == "Dead": // Brokers before version 6 return no error code.
		return &Error{Class: ClassUnknownGroup, Group: g.Group}
	case g.ProtocolType != "" && g.ProtocolType != consumerType:
		return &Error{Class: ClassNotStreamsGroup, Group: g.Group,
			Err: fmt.Errorf("the protocol type is %q, expected %q", g.ProtocolType, consumerType)}
	case g.Protocol != "" && g.Protocol != streamsAssignor:
		return &Error{Class: ClassNotStreamsGroup, Group: g.Group,
			Err: fmt.Errorf("the assignor is %q, expected %q", g.Protocol, streamsAssignor)}
	}
	return nil
}

// decodeMembers decodes all members, in the order of their IDs.
func decodeMembers(g kmsg.DescribeGroupsResponseGroup) ([]classicMember, error) {
	members := make([]classicMember, 0, len(g.Members))
	for _, described := range g.Members {
		m, err := decodeMember(described)
		if err != nil {
			return nil, &Error{Class: ClassMalformed, Group: g.Group, Member: described.MemberID,
				Host: normalHost(described.ClientHost), Err: err}
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b classicMember) int { return cmp.Compare(a.described.MemberID, b.described.MemberID) })
	return members, nil
}

// decodeMember decodes one member. A member without tasks may have an empty assignment.
func decodeMember(described kmsg.DescribeGroupsResponseGroupMember) (classicMember, error) {
	m := classicMember{described: described, assignment: AssignmentInfo{NextRebalanceMillis: NoRebalance}}
	userData, err := decodeSubscriptionLayer(described.ProtocolMetadata)
	if err != nil {
		return m, err
	}
	if m.subscription, err = DecodeSubscription(userData); err != nil {
		return m, err
	}
	if len(described.MemberAssignment) == 0 {
		return m, nil
	}
	if m.partitions, userData, err = decodeAssignmentLayer(described.MemberAssignment); err != nil {
		return m, err
	}
	if m.assignment, err = DecodeAssignment(userData); err != nil {
		return m, err
	}
	if got, want := len(m.assignment.Active), len(m.partitions); got != want {
		return m, fmt.Errorf("field AssignmentInfo.activeTasks: %d entries for %d assigned partitions", got, want)
	}
	return m, nil
}

// assignorErrors describe the error codes of AssignmentInfo (AssignorError of Kafka Streams 4.4).
var assignorErrors = map[int32]string{
	1: "source topics are missing",
	2: "members of different versions are negotiating a common one",
	3: "the leader could not assign tasks",
	4: "a member requested the shutdown of the whole application",
}

// memberFaults returns a warning for each error code in the assignments.
func memberFaults(members []classicMember) []string {
	counts := map[int32]int{}
	for _, member := range members {
		if code := member.assignment.ErrorCode; code != 0 {
			counts[code]++
		}
	}
	var warnings []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		warnings = append(warnings, fmt.Sprintf("%d members have no assignment because of error %d: %s", counts[code], code,
			cmp.Or(assignorErrors[code], "unknown")))
	}
	slices.Sort(warnings)
	return warnings
}

// classicProcesses groups members by process ID. Warm-ups are still among the standbys.
func classicProcesses(members []classicMember) []Process {
	byID := map[string]*Process{}
	for _, member := range members {
		described := member.described
		process := processFor(byID, member.subscription.ProcessID, described.ClientHost, described.ClientID, described.InstanceID)
		process.Tasks.Active = append(process.Tasks.Active, member.assignment.Active...)
		for _, standby := range member.assignment.Standby {
			process.Tasks.Standby = append(process.Tasks.Standby, standby.Task)
		}
	}
	return sortedProcesses(byID)
}

// processFor returns the process of a member and counts the member as a thread.
func processFor(byID map[string]*Process, id, host, clientID string, instanceID *string) *Process {
	static := instanceID != nil && *instanceID != ""
	p := byID[id]
	if p == nil {
		p = &Process{ID: id, Host: normalHost(host), ClientID: clientOf(clientID), Static: static}
		byID[id] = p
	}
	p.Threads++
	p.Static = p.Static && static
	return p
}

// clientOf removes the suffix of Kafka Streams for the consumer of a thread from a client.id.
func clientOf(clientID string) string {
	client, _, _ := strings.Cut(clientID, "-StreamThread-")
	return client
}

// sortedProcesses sorts processes and their tasks.
func sortedProcesses(byID map[string]*Process) []Process {
	processes := make([]Process, 0, len(byID))
	for _, p := range byID {
		p.Tasks.sort()
		if p.Target != nil {
			p.Target.sort()
		}
		processes = append(processes, *p)
	}
	slices.SortFunc(processes, func(a, b Process) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) })
	return processes
}

// sort sorts the lists and removes duplicates.
func (t *Tasks) sort() {
	t.Active = sortTasks(t.Active)
	t.Standby = sortTasks(t.Standby)
	t.WarmUp = sortTasks(t.WarmUp)
}

// classicSubtopologies derives subtopologies from the assignments: their tasks and their source topics, as each active task is paired with
// one partition. The numbers of partitions are added later, from the cluster.
func classicSubtopologies(members []classicMember) []Subtopology {
	found := newSubtopologies()
	for _, member := range members {
		for i, task := range member.assignment.Active {
			found.source(task, member.partitions[i].Topic)
		}
		for _, standby := range member.assignment.Standby {
			found.task(standby.Task).Stateful = true
			for _, partition := range standby.Partitions {
				found.source(standby.Task, partition.Topic)
			}
		}
	}
	for _, member := range members {
		for _, offset := range member.subscription.Tasks {
			if known := found.byID[offset.Task.Subtopology]; known != nil && member.subscription.Version >= 7 {
				known.Stateful = true // Only tasks with changelogs have offset sums (TaskManager.taskOffsetSums).
			}
		}
	}
	return found.sorted()
}

// classicVersion returns the oldest release with the protocol version of all members. Sources: StreamsAssignmentProtocolVersions of 2.8
// (9), 3.0 (10) and 3.2 (11).
func classicVersion(members []classicMember) string {
	latest := int32(math.MaxInt32)
	for _, member := range members {
		latest = min(latest, max(member.subscription.Version, member.subscription.LatestVersion))
	}
	return map[int32]string{9: "2.8", 10: "3.0", 11: "3.2"}[min(latest, LatestVersion)]
}

// nextRebalance returns the time of the first follow-up rebalance; 1970 is at once.
func nextRebalance(members []classicMember) time.Time {
	soonest := int64(NoRebalance)
	for _, member := range members {
		soonest = min(soonest, member.assignment.NextRebalanceMillis)
	}
	if soonest == NoRebalance {
		return time.Time{}
	}
	return time.UnixMilli(soonest).UTC()
}
