// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assignment finds out who runs which task of a Kafka Streams application.
//
// The source is the application's group on the Kafka cluster, seen from outside:
//
//   - a classic group by decoding what its members tell each other: SubscriptionInfo (the member to the leader) and
//     AssignmentInfo (the leader to the member), versions 1 to 11;
//   - a streams group (KIP-1071) by asking its coordinator with StreamsGroupDescribe;
//   - the changelog topics and their configs, which show the kinds of the stores and how long they keep their data.
//
// [Cluster] asks one Kafka cluster, [Monitor] asks all of them in turn and reports changes, [Match] finds the pods that
// the processes run in. The decoders are pure functions; they never trust a length that they read.
//
// Other sources know more of the same facts: the pods' own reports, which are better, and the user's spec, which fills
// what nothing else shows. They meet at [Group]: a source answers with a Group of its own, and a field that it does not
// know keeps its zero value. So a later source is one more producer of Group, and a merge is field by field, best first.
package assignment
