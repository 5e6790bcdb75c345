#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what records take on the heap of Kafka Streams 4.4.0, as a table: the figures in memplan/records.go.
# Needs a JDK and Maven (see test/kafka/build.sh) and takes about 20 s.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lib=$("$here/../../kafka/build.sh")/lib
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac -d "$classes" -cp "$lib/*" "$here/src/org/apache/kafka/streams/state/internals/HeapOfRecords.java"
java -XX:+UseSerialGC -XX:MarkSweepAlwaysCompactCount=1 -Xmx1200m -cp "$classes:$lib/*" org.apache.kafka.streams.state.internals.HeapOfRecords
