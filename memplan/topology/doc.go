// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology parses the output of Topology#describe() and derives parts of a [memplan.Workload] from it.
//
// The text of Kafka 2.0 and later (InternalTopologyBuilder.TopologyDescription, printed by 4.4.0):
//
//	Topologies:
//	   Sub-topology: 0
//	    Source: KSTREAM-SOURCE-0000000000 (topics: [in, in2])
//	      --> KSTREAM-AGGREGATE-0000000002
//	    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
//	      --> KSTREAM-SINK-0000000003
//	      <-- KSTREAM-SOURCE-0000000000
//	    Sink: KSTREAM-SINK-0000000003 (topic: out)
//	      <-- KSTREAM-AGGREGATE-0000000002
//
//	  Sub-topology: 1 for global store (will not generate tasks)
//	    Source: KSTREAM-SOURCE-0000000005 (topics: [ref])
//	      --> KTABLE-SOURCE-0000000006
//	    Processor: KTABLE-SOURCE-0000000006 (stores: [ref-store])
//	      --> none
//	      <-- KSTREAM-SOURCE-0000000005
//
// A source with a pattern has the pattern in place of the list. A sink that chooses its topic by record has "(extractor class: ...)". Kafka
// 0.11 to 1.1 print a node on one line, with no space before the parenthesis and no brackets around topics, under "Sub-topologies:" and
// "Global Stores:". Indentation and blank lines have no meaning, and the header may be missing.
//
// Facts that are not in the text count on the safe side, and each of them is an [Assumption]: the kind of a store with a name that may hide
// a window, the partitions of a topic, the topics of a sink that chooses them by record.
//
// Names of nodes must not contain ", ", since it separates names in the text. The DSL allows no such names (Named.validate).
package topology
