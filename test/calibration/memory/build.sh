#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the applications of app/ with Maven, and the broker with its libraries (test/kafka/build.sh); prints the class
# path of both. Ours are in the cache outside the checkout, named by a hash of the sources, so that a fresh clone on the
# same machine uses them again. Progress goes to standard error. Exit code 69: a tool is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kafka=$("$here/../../kafka/build.sh")
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/calibrate
hash=$(cd "$here/app" && find pom.xml src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
built=$cache/$hash

if [ ! -f "$built/complete" ]; then
  if ! command -v mvn >/dev/null; then
    echo "mvn (Maven 3.8 or newer) is not on the PATH: it builds test/calibration/memory/app once" >&2
    exit 69
  fi
  mkdir -p "$cache"
  exec 9>"$cache/.lock"
  flock 9
  staging=$(mktemp -d "$cache/.build-XXXXXX")
  trap 'rm -rf "$staging"' EXIT
  cp -R "$here/app/." "$staging"
  mvn -q -B -ntp -Dstyle.color=never -f "$staging/pom.xml" compiler:compile >&2
  rm -rf "$built"
  mkdir "$built"
  mv "$staging/target/classes" "$built/classes"
  touch "$built/complete"
fi
echo "$built/classes:$kafka/classes:$kafka/lib/*"
