#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the applications for the agent's tests with Maven, and prints the folder that holds them (about 900 MiB):
#   classes/             the application for a plain class path
#   lib/<version>/       Kafka Streams in that version and what it needs
#   relocated.jar        the application with Kafka under another package
#   spring.jar, quarkus/ the application in a fat jar of Spring Boot, and in a fast-jar of Quarkus
#   agents/              two well-known agents: OpenTelemetry's and Prometheus'
#   jlink/<name>/        run-time images that lack a module
# The folder is in the cache outside the checkout, named by a hash of the sources. Progress goes to standard error.
# Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/agent-apps
hash=$(cd "$here" && find build.sh apps -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
built=$cache/$hash

versions="2.8.2 3.4.1 3.9.1 4.1.1 4.3.1 4.4.0"
opentelemetry=io.opentelemetry.javaagent:opentelemetry-javaagent:2.33.1
prometheus=io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1

if [ -f "$built/complete" ]; then echo "$built"; exit 0; fi
for tool in javac jlink mvn; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is not on the PATH: a JDK 17 and Maven 3.8 or newer build test/agent/apps once" >&2
    exit 69
  fi
done
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ -f "$built/complete" ]; then echo "$built"; exit 0; fi

staging=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$staging"' EXIT
from=$SECONDS
cp -R "$here/apps" "$staging/apps"

maven() { mvn -q -B -ntp -Dstyle.color=never -DskipTests "$@" >&2; }
dependency=org.apache.maven.plugins:maven-dependency-plugin:3.9.0

maven -f "$staging/apps/plain/pom.xml" compiler:compile
mv "$staging/apps/plain/target/classes" "$staging/classes"
for version in $versions; do
  maven -f "$staging/apps/plain/pom.xml" "-Dkafka.version=$version" dependency:copy-dependencies "-DoutputDirectory=$staging/lib/$version"
done
for app in relocated spring quarkus; do maven -f "$staging/apps/$app/pom.xml" package; done
mv "$staging/apps/relocated/target/relocated.jar" "$staging/apps/spring/target/spring.jar" "$staging"
mv "$staging/apps/quarkus/target/quarkus-app" "$staging/quarkus"
for agent in "$opentelemetry" "$prometheus"; do
  maven "$dependency:copy" "-Dartifact=$agent" "-DoutputDirectory=$staging/agents" -Dmdep.stripVersion=true
done

# What Kafka Streams needs of the JDK; the third image is too small for it.
kafka=java.logging,java.management,java.naming,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.unsupported
image() { jlink --add-modules "$2" --strip-java-debug-attributes --no-header-files --no-man-pages --output "$staging/jlink/$1" >&2; }
image without-instrument "$kafka"
image without-httpserver "$kafka,java.instrument"
image without-management java.instrument,java.logging

rm -rf "$staging/apps" "$built"
chmod 755 "$staging"
touch "$staging/complete"
mv "$staging" "$built"
trap - EXIT
echo "agent-apps: built in $((SECONDS - from)) s" >&2
echo "$built"
