// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assignment determines the assignment of tasks to the pods of a Kafka Streams application. It has two sources.
//
// The first is the application's group on the Kafka cluster:
//
//   - The members of a classic group exchange SubscriptionInfo (to the leader) and AssignmentInfo (from the leader), versions 1 to 11.
//     [DecodeClassic] decodes them.
//   - The coordinator describes a streams group (KIP-1071) with StreamsGroupDescribe. [DecodeStreams] converts the description.
//   - The configs of changelog topics show the kind and the retention of the stores.
//
// [Cluster] describes the groups of one Kafka cluster, [Monitor] polls all clusters and reports changes, and [Match] assigns processes to
// pods. The decoders are pure functions. They check each length before they use it.
//
// The second source is the reports of the agents in the pods (package report). [GroupOfReports] combines the reports of an application.
//
// The result of both is a [Group]. A field without information keeps its zero value, so two groups can be merged field by field.
package assignment
