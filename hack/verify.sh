#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks modules, format, lint with the API rules, licence headers, and that generated files are up to date. It needs no
# cluster, but JDK 17 and Maven for the agent's jar. The first run builds the linter: two to five minutes on two cores.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. hack/phases.sh

lint() { go tool -modfile=hack/tools/go.mod golangci-lint-kube-api-linter "$@"; }

# tidy: every module file contains exactly the required modules.
tidy() {
  local module status=0
  for module in . hack/tools hack/control-plane; do
    (cd "$module" && go mod tidy -diff) || status=1
  done
  return $status
}

# headers: every source file begins with the licence; the linter checks Go files.
headers() {
  local missing
  missing=$(git ls-files '*.sh' '*.yaml' '*.yml' '*.java' 'Makefile' 'Dockerfile' '.ci/run' |
    xargs grep -L 'SPDX-License-Identifier: Apache-2.0' | grep -v -e '/testdata/' -e '^config/crd/bases/' -e '^config/rbac/role.yaml$')
  [ -z "$missing" ] || { echo "without a licence header:"; echo "$missing"; return 1; }
}

# regenerated: generates into the checkout and compares the result with the files before, so that uncommitted changes have no
# effect on the result.
regenerated() {
  local before status
  before=$(mktemp -d)
  cp -r api config "$before"
  make --no-print-directory generate manifests || { rm -rf "$before"; return 1; }
  diff -ru "$before/api" api && diff -ru "$before/config" config
  status=$?
  rm -rf "$before"
  [ $status -eq 0 ] || echo "generated files were out of date: they are regenerated now, commit them"
  return $status
}

# agent: the embedded jar is up to date with its sources.
agent() {
  local built status
  built=$(mktemp)
  agent/build.sh "$built" && cmp "$built" agent/streamweir-agent.jar
  status=$?
  rm -f "$built"
  [ $status -eq 0 ] || echo "agent/streamweir-agent.jar is out of date or not built with JDK 17: run make agent, commit it"
  return $status
}

phase "modules are tidy" tidy
phase "format" lint fmt --diff
phase "lint, with the API rules" lint run --allow-serial-runners
phase "licence headers" headers
phase "generated files" regenerated
phase "the agent's jar" agent
verdict
