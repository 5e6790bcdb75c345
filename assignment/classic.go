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

// streamsAssignor is the protocol name of a classic Kafka Streams group (StreamsPartitionAssignor.name), within the
// protocol type of all consumers.
const (
	streamsAssignor = "stream"
	consumerType    = "consumer"
)

// classicMember is a member of a classic group with its bytes decoded.
type classicMember struct {
	described    kmsg.DescribeGroupsResponseGroupMember
	subscription SubscriptionInfo
	assignment   AssignmentInfo
	partitions   []TopicPartition // Sorted; one for each of assignment.Active.
}

// DecodeClassic makes a Group of the broker's description of a classic group. A group that is not Stable comes without
// members' bytes: it is not Assigned. Errors are of the classes UnknownGroup, NotStreamsGroup, MalformedGroup and those
// of the broker's error codes.
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

// classicError gives the error that a description stands for, nil if it is one of a Kafka Streams group.
func classicError(g kmsg.DescribeGroupsResponseGroup) error {
	if err := kerr.TypedErrorForCode(g.ErrorCode); err != nil {
		return &Error{Class: classOfBroker(err), Group: g.Group, Err: err}
	}
	switch {
	case g.State == "Dead": // Before version 6 the broker gives no error code.
		return &Error{Class: ClassUnknownGroup, Group: g.Group}
	case g.ProtocolType != "" && g.ProtocolType != consumerType:
		return &Error{Class: ClassNotStreamsGroup, Group: g.Group,
			Err: fmt.Errorf("its protocol type is %q, must be %q", g.ProtocolType, consumerType)}
	case g.Protocol != "" && g.Protocol != streamsAssignor:
		return &Error{Class: ClassNotStreamsGroup, Group: g.Group,
			Err: fmt.Errorf("its assignor is %q, must be %q", g.Protocol, streamsAssignor)}
	}
	return nil
}

// decodeMembers decodes all members' bytes, in the order of their IDs.
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

// decodeMember decodes one member's bytes. No assignment at all is that of a member whose leader gave it nothing.
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
		return m, fmt.Errorf("field AssignmentInfo.activeTasks: %d entries must be as many as the %d partitions assigned", got, want)
	}
	return m, nil
}

// assignorErrors are the error codes of AssignmentInfo (AssignorError of Kafka Streams 4.4).
var assignorErrors = map[int32]string{
	1: "source topics are missing",
	2: "members of different versions are finding a common one",
	3: "the leader could not assign tasks",
	4: "a member asked the whole application to shut down",
}

// memberFaults gives a warning for each error code that members were told.
func memberFaults(members []classicMember) []string {
	told := map[int32]int{}
	for _, m := range members {
		if code := m.assignment.ErrorCode; code != 0 {
			told[code]++
		}
	}
	var warnings []string
	for _, code := range slices.Sorted(maps.Keys(told)) {
		warnings = append(warnings, fmt.Sprintf("%d members were assigned nothing, with error %d: %s", told[code], code,
			cmp.Or(assignorErrors[code], "not known")))
	}
	slices.Sort(warnings)
	return warnings
}

// classicProcesses puts members with the same process ID together. Warm-ups are still among the standbys.
func classicProcesses(members []classicMember) []Process {
	byID := map[string]*Process{}
	for _, m := range members {
		p := processFor(byID, m.subscription.ProcessID, m.described.ClientHost, m.described.ClientID, m.described.InstanceID)
		p.Tasks.Active = append(p.Tasks.Active, m.assignment.Active...)
		for _, s := range m.assignment.Standby {
			p.Tasks.Standby = append(p.Tasks.Standby, s.Task)
		}
	}
	return sortedProcesses(byID)
}

// processFor gives the process of one more member.
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

// clientOf strips what Kafka Streams puts behind the application's client.id for a thread's consumer.
func clientOf(clientID string) string {
	client, _, _ := strings.Cut(clientID, "-StreamThread-")
	return client
}

// sortedProcesses brings processes and their tasks into order.
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

// sort brings the lists into order, each task once.
func (t *Tasks) sort() {
	t.Active, t.Standby, t.WarmUp = sortTasks(t.Active), sortTasks(t.Standby), sortTasks(t.WarmUp)
}

// classicSubtopologies finds the subtopologies in what is assigned: their tasks, and their source topics, as each
// active task stands for one partition. The topics' own numbers of partitions come later, from the cluster.
func classicSubtopologies(members []classicMember) []Subtopology {
	found := newSubtopologies()
	for _, m := range members {
		for i, task := range m.assignment.Active {
			found.source(task, m.partitions[i].Topic)
		}
		for _, s := range m.assignment.Standby {
			found.task(s.Task).Stateful = true
			for _, p := range s.Partitions {
				found.source(s.Task, p.Topic)
			}
		}
	}
	for _, m := range members {
		for _, o := range m.subscription.Tasks {
			if s := found.byID[o.Task.Subtopology]; s != nil && m.subscription.Version >= 7 {
				s.Stateful = true // Only tasks with changelogs have offset sums (TaskManager.taskOffsetSums).
			}
		}
	}
	return found.sorted()
}

// classicVersion gives the oldest release that knows what the members know. Sources: StreamsAssignmentProtocolVersions
// of 2.8 (9), 3.0 (10) and 3.2 (11).
func classicVersion(members []classicMember) string {
	latest := int32(math.MaxInt32)
	for _, m := range members {
		latest = min(latest, max(m.subscription.Version, m.subscription.LatestVersion))
	}
	return map[int32]string{9: "2.8", 10: "3.0", 11: "3.2"}[min(latest, LatestVersion)]
}

// nextRebalance gives the soonest follow-up rebalance of a member; at once is 1970.
func nextRebalance(members []classicMember) time.Time {
	soonest := int64(NoRebalance)
	for _, m := range members {
		soonest = min(soonest, m.assignment.NextRebalanceMillis)
	}
	if soonest == NoRebalance {
		return time.Time{}
	}
	return time.UnixMilli(soonest).UTC()
}
