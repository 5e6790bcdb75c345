#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the agent with Maven, its unit tests included, and puts the jar here, where the operator embeds it.
# `agent/build.sh FILE` puts it there instead. The same sources give the same bytes with JDK 17. Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jar=${1:-$here/streamweir-agent.jar}
most=$((200 * 1024)) # of a ConfigMap's 1 MiB it takes 4/3 of that, twice where it is applied with kubectl

command -v mvn >/dev/null || { echo "mvn (Maven 3.8 or newer) is not on the PATH: it builds the agent" >&2; exit 69; }
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
cp -R "$here/pom.xml" "$here/src" "$here/testdata" "$target"
mvn -q -B -ntp -Dstyle.color=never -f "$target/pom.xml" package >&2
java -cp "$target/target/streamweir-agent.jar" "$here/src/build/Strip.java" "$target/target/streamweir-agent.jar" "$target/streamweir-agent.jar"
size=$(stat -c %s "$target/streamweir-agent.jar")
[ "$size" -lt "$most" ] || { echo "the agent has $size bytes: it must have less than $most" >&2; exit 1; }
# Moved, not written into: a JVM may be reading the old one.
cp "$target/streamweir-agent.jar" "$jar.new"
mv "$jar.new" "$jar"
echo "agent: $size bytes" >&2
