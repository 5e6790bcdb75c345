#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the heap memory of records in Kafka Streams 4.4.0 as a table: the figures in memplan/records.go.
# Needs a JDK and Maven (see test/java/build.sh) and takes about 20 s.
set -euo pipefail

built=$("$(dirname "${BASH_SOURCE[0]}")/../../java/build.sh")
java -XX:+UseSerialGC -XX:MarkSweepAlwaysCompactCount=1 -Xmx1200m -cp "$built/classes:$built/lib/*" \
  org.apache.kafka.streams.state.internals.HeapOfRecords
