#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the Java programs of the tests with Maven and prints the folder that holds them.
#
# `build.sh` builds the programs in this folder, for Kafka 4.4.0 (about 115 MiB):
#   classes/             the broker, the applications, the assignors and the measurement of records
#   lib/                 Kafka Streams, the broker and their dependencies
#
# `build.sh agent` builds the applications of test/agent/apps (about 900 MiB):
#   classes/             the application for a plain class path
#   lib/<version>/       Kafka Streams in that version and its dependencies
#   relocated.jar        the application with Kafka under another package
#   spring.jar, quarkus/ the application in a fat jar of Spring Boot, and in a fast-jar of Quarkus
#   agents/              two common agents: those of OpenTelemetry and Prometheus
#   jlink/<name>/        run-time images without some modules
#
# The folder is in the cache, outside the checkout. Its name is a hash of the sources, so that a fresh clone on the same
# machine uses it again. Progress goes to standard error. Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}

maven() { mvn -q -B -ntp -Dstyle.color=never -DskipTests "$@" >&2; }

# programs: builds the programs in this folder.
programs() {
  maven -f "$staging/sources/pom.xml" compiler:compile dependency:copy-dependencies "-DoutputDirectory=$staging/lib"
  mv "$staging/sources/target/classes" "$staging/classes"
}

# agent: builds the applications of test/agent/apps.
agent() {
  local app artifact version versions="2.8.2 3.4.1 3.9.1 4.1.1 4.3.1 4.4.0"
  local plain=$staging/sources/apps/plain/pom.xml
  maven -f "$plain" compiler:compile
  mv "$staging/sources/apps/plain/target/classes" "$staging/classes"
  for version in $versions; do
    maven -f "$plain" "-Dkafka.version=$version" dependency:copy-dependencies "-DoutputDirectory=$staging/lib/$version"
  done
  for app in relocated spring quarkus; do maven -f "$staging/sources/apps/$app/pom.xml" package; done
  mv "$staging/sources/apps/relocated/target/relocated.jar" "$staging/sources/apps/spring/target/spring.jar" "$staging"
  mv "$staging/sources/apps/quarkus/target/quarkus-app" "$staging/quarkus"
  for artifact in io.opentelemetry.javaagent:opentelemetry-javaagent:2.33.1 io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1; do
    maven org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy "-Dartifact=$artifact" "-DoutputDirectory=$staging/agents" \
      -Dmdep.stripVersion=true
  done
  # The modules of the JDK that Kafka Streams requires; the third image has only one of them.
  local kafka=java.logging,java.management,java.naming,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.unsupported
  image without-instrument "$kafka"
  image without-httpserver "$kafka,java.instrument"
  image without-management java.instrument,java.logging
}

# image NAME MODULES: makes a run-time image.
image() {
  jlink --add-modules "$2" --strip-java-debug-attributes --no-header-files --no-man-pages --output "$staging/jlink/$1" >&2
}

case ${1:-programs} in
programs) target=programs sources=$here inputs="pom.xml src" tools="javac mvn" ;;
agent) target=agent sources=$here/../agent inputs="apps" tools="javac jlink mvn" ;;
*) echo "usage: $0 [agent]" >&2; exit 2 ;;
esac

# shellcheck disable=SC2086 # a list of words
hash=$(cd "$sources" && find "$here/build.sh" $inputs -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sed "s|$here/||" | sha256sum | cut -c1-16)
built=$cache/java-$target/$hash
use() { echo "$built"; exit 0; }

[ -f "$built/complete" ] && use
for tool in $tools; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is not on the PATH: a JDK 17 and Maven 3.8 or newer are needed once to build the Java programs of the tests" >&2
    exit 69
  fi
done
mkdir -p "${built%/*}"
exec 9>"${built%/*}/.lock"
flock 9
[ -f "$built/complete" ] && use # built by another process

staging=$(mktemp -d "${built%/*}/.build-XXXXXX")
trap 'rm -rf "$staging"' EXIT
mkdir "$staging/sources"
# shellcheck disable=SC2086 # a list of words
(cd "$sources" && cp -R $inputs "$staging/sources")
case $target in
programs) programs ;;
agent) agent ;;
esac
rm -rf "$staging/sources" "$built"
chmod 755 "$staging"
touch "$staging/complete"
mv "$staging" "$built"
trap - EXIT
echo "java programs ($target): built in $SECONDS s" >&2
use
