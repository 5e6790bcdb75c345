#!/usr/bin/env bash
# Provides kube-apiserver, etcd and kubectl for the tests and the demo, and prints the folder that holds them.
# In this order, first that works:
#   1. KUBEBUILDER_ASSETS, if it names a folder with all three;
#   2. what an earlier run left in the cache;
#   3. setup-envtest, where its index answers within ten seconds;
#   4. a build from Go modules (hack/control-plane/go.mod): 10 to 20 minutes on two cores, once for each version.
# Progress goes to standard error, so that `KUBEBUILDER_ASSETS=$(hack/control-plane.sh)` works.
set -euo pipefail

version=1.37.2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/control-plane
built=$cache/$version

say() { echo "control plane: $*" >&2; }
complete() { [ -x "$1/kube-apiserver" ] && [ -x "$1/etcd" ] && [ -x "$1/kubectl" ]; }
use() { say "using $1 ($2)"; echo "$1"; exit 0; }

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  complete "$KUBEBUILDER_ASSETS" && use "$KUBEBUILDER_ASSETS" "KUBEBUILDER_ASSETS"
  say "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks kube-apiserver, etcd or kubectl: looking elsewhere"
fi
complete "$built" && use "$built" "built earlier"

envtest() { go tool -modfile="$here/tools/go.mod" setup-envtest "$@" --bin-dir "$cache/envtest"; }
found=$(envtest use "${version%.*}.x" --installed-only --print path 2>/dev/null || true)
[ -n "$found" ] && complete "$found" && use "$found" "downloaded earlier"
say "asking setup-envtest for Kubernetes ${version%.*}"
if timeout 10 go tool -modfile="$here/tools/go.mod" setup-envtest list "${version%.*}.x" --remote-only >/dev/null 2>&1 ||
   timeout 10 go tool -modfile="$here/tools/go.mod" setup-envtest list "${version%.*}.x" 2>/dev/null | grep -q available; then
  if found=$(envtest use "${version%.*}.x" --print path) && complete "$found"; then use "$found" "downloaded now"; fi
fi

say "setup-envtest cannot be reached: building Kubernetes $version and etcd from Go modules (10 to 20 minutes on two cores, once)"
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
complete "$built" && use "$built" "built meanwhile"
staging=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$staging"' EXIT
# Without these the server calls itself v0.0.0-master, and whatever asks for its version is misled.
package=k8s.io/component-base/version
stamp="-X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=$(echo $version | cut -d. -f2)"
build() { # binary, package
  local from=$SECONDS
  (cd "$here/control-plane" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $stamp" -o "$staging/$1" "$2")
  say "$1 built in $((SECONDS - from)) s"
}
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kubectl k8s.io/kubernetes/cmd/kubectl
rm -rf "$built"
chmod 755 "$staging"
mv "$staging" "$built"
trap - EXIT
use "$built" "built now"
