#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# `old-java.sh 8` or `old-java.sh 11` installs this Java from Debian's unstable release with its libraries into a folder, and prints the folder.
# A process uses it as its root (chroot), because these libraries are newer than those of a stable release. The folder is in the cache outside
# the checkout. Progress goes to standard error. Exit code 69: this is not Debian, or the package is not available.
set -euo pipefail

java=openjdk-$1-jre-headless
packages="$java libc6 libgcc-s1 libstdc++6 zlib1g"
root=${STREAMWEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamweir}/$java

if [ -f "$root/complete" ]; then echo "$root"; exit 0; fi
# shellcheck disable=SC2016 # expanded by apt-get
uri=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -1)
[ -n "$uri" ] || { echo "no archive of Debian is configured; Java $1 is installed from it" >&2; exit 69; }

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
mkdir -p "$staging"/{lists/partial,cache/archives/partial,debs} "$root"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri unstable main" >"$staging/sources.list"
apt() {
  apt-get -q -o "Dir::Etc::sourcelist=$staging/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$staging/lists" \
    -o "Dir::Cache=$staging/cache" -o APT::Sandbox::User=root "$@" >&2
}
apt update || { echo "Debian's unstable release is not available" >&2; exit 69; }
# shellcheck disable=SC2086 # a list of words
(cd "$staging/debs" && apt download $packages) || { echo "$java is not available" >&2; exit 69; }
mkdir -p "$root"/{proc,sys,dev,tmp,usr/lib,usr/lib64}
ln -sfn usr/lib "$root/lib"
ln -sfn usr/lib64 "$root/lib64"
for package in "$staging"/debs/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"; done
# shellcheck disable=SC2016 # the inner shell expands them
unshare --mount sh -ec 'mount --bind /proc "$1/proc"; exec chroot "$@" -version' sh "$root" "/usr/lib/jvm/java-$1-openjdk-amd64/bin/java" >&2
touch "$root/complete"
echo "$root"
