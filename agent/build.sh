#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the agent with Maven, runs its unit tests, and writes the jar into this folder, where the operator embeds it.
# `agent/build.sh FILE` writes it to FILE instead. With JDK 17 the same sources give the same bytes. Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jar=${1:-$here/streamweir-agent.jar}
largest=$((200 * 1024)) # Base64 adds a third, and kubectl apply stores it twice, within the 1 MiB of a ConfigMap

command -v mvn >/dev/null || { echo "mvn is not on the PATH: building the agent requires Maven 3.8 or newer" >&2; exit 69; }
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
cp -R "$here/pom.xml" "$here/src" "$here/testdata" "$target"
mvn -q -B -ntp -Dstyle.color=never -f "$target/pom.xml" package >&2
java -cp "$target/target/streamweir-agent.jar" "$here/src/build/Strip.java" "$target/target/streamweir-agent.jar" "$target/streamweir-agent.jar"
size=$(stat -c %s "$target/streamweir-agent.jar")
[ "$size" -lt "$largest" ] || { echo "the agent has $size bytes; the limit is $largest" >&2; exit 1; }
# A new file replaces the old one, because a JVM may be reading the old one.
cp "$target/streamweir-agent.jar" "$jar.new"
mv "$jar.new" "$jar"
echo "agent: $size bytes" >&2
