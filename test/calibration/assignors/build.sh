#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the harness that runs Kafka's task assignors with Maven, and prints the folder that holds it: classes/ (ours) and
# lib/ (Kafka Streams 4.4.0, the broker's group coordinator and what they need, about 100 MiB).
# The folder is in the cache outside the checkout, named by a hash of the sources. Progress goes to standard error.
# Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/assignors
hash=$(cd "$here/harness" && find pom.xml src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
built=$cache/$hash

if [ -f "$built/complete" ]; then echo "$built"; exit 0; fi
for tool in java mvn; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is not on the PATH: Java 17 and Maven 3.8 or newer build test/calibration/assignors/harness once" >&2
    exit 69
  fi
done
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ -f "$built/complete" ]; then echo "$built"; exit 0; fi

staging=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp -R "$here/harness/." "$staging/harness"
from=$SECONDS
mvn -q -B -ntp -Dstyle.color=never -f "$staging/harness/pom.xml" compiler:compile dependency:copy-dependencies "-DoutputDirectory=$staging/lib" >&2
mv "$staging/harness/target/classes" "$staging/classes"
rm -rf "$staging/harness" "$built"
chmod 755 "$staging"
touch "$staging/complete"
mv "$staging" "$built"
trap - EXIT
echo "assignors: built in $((SECONDS - from)) s" >&2
echo "$built"
