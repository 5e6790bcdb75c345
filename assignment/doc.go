// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assignment finds out who runs which task of a Kafka Streams application.
//
// There are two sources. One is the application's group on the Kafka cluster, seen from outside:
//
//   - a classic group by decoding what its members tell each other: SubscriptionInfo (the member to the leader) and
//     AssignmentInfo (the leader to the member), versions 1 to 11;
//   - a streams group (KIP-1071) by asking its coordinator with StreamsGroupDescribe;
//   - the changelog topics and their configs, which show the kinds of the stores and how long they keep their data.
//
// [Cluster] asks one Kafka cluster, [Monitor] asks all of them in turn and reports changes, [Match] finds the pods that
// the processes run in. The decoders are pure functions; they never trust a length that they read.
//
// The other is the agents in the pods, seen from inside: [Report] is what one of them says, [Reports] asks all of them and
// tells of changes, [DecodeReport] makes what they say harmless, [GroupOfReports] puts the pods of an application together.
//
// Both meet at [Group]: a source answers with a Group of its own, and a field that it does not know keeps its zero value.
// So a merge is field by field, best first; the user's spec fills what nothing else shows.
package assignment
