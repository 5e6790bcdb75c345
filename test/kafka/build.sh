#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the Kafka Streams application and the broker for the tests with Maven, and prints the folder that holds them:
# classes/ (ours) and lib/ (Kafka 4.4.0 and what it needs, about 115 MiB).
# The folder is in the cache outside the checkout, named by a hash of the sources, so that a fresh clone on the same
# machine uses it again. Progress goes to standard error. Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/kafka
hash=$(cd "$here/app" && find pom.xml src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
built=$cache/$hash

if [ -f "$built/complete" ]; then echo "$built"; exit 0; fi
if ! command -v mvn >/dev/null; then
  echo "mvn (Maven 3.8 or newer) is not on the PATH: it builds test/kafka/app once" >&2
  exit 69
fi
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ -f "$built/complete" ]; then echo "$built"; exit 0; fi

staging=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$staging"' EXIT
cp -R "$here/app/." "$staging/app"
from=$SECONDS
mvn -q -B -ntp -Dstyle.color=never -f "$staging/app/pom.xml" compiler:compile dependency:copy-dependencies "-DoutputDirectory=$staging/lib" >&2
mv "$staging/app/target/classes" "$staging/classes"
rm -rf "$staging/app" "$built"
chmod 755 "$staging"
touch "$staging/complete"
mv "$staging" "$built"
trap - EXIT
echo "kafka: built in $((SECONDS - from)) s" >&2
echo "$built"
