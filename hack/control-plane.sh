#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Provides kube-apiserver, etcd and kubectl for the tests and the demo, and prints their folder. It uses the first of:
#   1. KUBEBUILDER_ASSETS, if this folder contains all three;
#   2. the result of an earlier build or download in the cache;
#   3. a download by setup-envtest, if its index responds within ten seconds;
#   4. a build from Go modules (hack/control-plane/go.mod): 10 to 20 minutes on two cores, once for each version.
# The cache is $STREAMWEIR_CACHE, else streamweir in the user's cache folder. It is outside the checkout, so that a fresh
# clone can use it. Progress goes to standard error, so that `KUBEBUILDER_ASSETS=$(hack/control-plane.sh)` works.
set -euo pipefail

version=1.37.2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/control-plane
built=$cache/$version

log() { echo "control plane: $*" >&2; }
complete() { [ -x "$1/kube-apiserver" ] && [ -x "$1/etcd" ] && [ -x "$1/kubectl" ]; }
use() { log "using $1 ($2)"; echo "$1"; exit 0; }

# setup_envtest TIMEOUT ARGUMENT...: runs setup-envtest for our minor version and our cache. SETUP_ENVTEST_INDEX is the
# address of another index, for a mirror.
setup_envtest() {
  timeout "$1" "$cache/setup-envtest" "${@:2}" "${version%.*}.x" --bin-dir "$cache/envtest" \
    ${SETUP_ENVTEST_INDEX:+--index "$SETUP_ENVTEST_INDEX"}
}

# download: reads the index first, since without a connection the download may hang instead of failing.
download() {
  local found
  go build -modfile="$here/tools/go.mod" -o "$cache/setup-envtest" sigs.k8s.io/controller-runtime/tools/setup-envtest || return 1
  if found=$(setup_envtest 10 use --installed-only --print path 2>/dev/null) && complete "$found"; then
    use "$found" "downloaded earlier"
  fi
  log "reading the index of setup-envtest for Kubernetes ${version%.*}"
  setup_envtest 10 list >/dev/null 2>&1 || return 1
  if found=$(setup_envtest 600 use --print path) && complete "$found"; then
    use "$found" "downloaded now"
  fi
  return 1
}

# build BINARY PACKAGE [LDFLAGS]: builds one binary into the staging folder.
build() {
  local from=$SECONDS
  (cd "$here/control-plane" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${3:-}" -o "$staging/$1" "$2")
  log "$1 built in $((SECONDS - from)) s"
}

# build_all: builds in a staging folder and moves the result into the cache, so that an interrupted build has no effect.
build_all() {
  local minor package=k8s.io/component-base/version stamp
  minor=$(echo "$version" | cut -d. -f2)
  # Without these flags the server reports the version v0.0.0-master, which misleads its clients.
  stamp="-X $package.gitVersion=v$version -X $package.gitMajor=${version%%.*} -X $package.gitMinor=$minor"
  staging=$(mktemp -d "$cache/.build-XXXXXX")
  trap 'rm -rf "$staging"' EXIT
  build etcd go.etcd.io/etcd/server/v3
  build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "$stamp"
  build kubectl k8s.io/kubernetes/cmd/kubectl "$stamp"
  chmod 755 "$staging"
  rm -rf "$built"
  mv "$staging" "$built"
}

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  complete "$KUBEBUILDER_ASSETS" && use "$KUBEBUILDER_ASSETS" "KUBEBUILDER_ASSETS"
  log "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS has no kube-apiserver, etcd or kubectl: trying other sources"
fi
complete "$built" && use "$built" "built earlier"

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9 # The second of two concurrent runs uses the result of the first.
complete "$built" && use "$built" "built by another run"
download || log "nothing to download with setup-envtest"
log "building Kubernetes $version and etcd from Go modules (10 to 20 minutes on two cores, once)"
build_all
use "$built" "built now"
