#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs all tests, or those of some packages: `hack/test.sh ./memplan/...`. TESTFLAGS contains additional flags for `go test`.
# With CI=true a test without its requirements fails instead of being skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

KUBEBUILDER_ASSETS=$(hack/control-plane.sh)
export KUBEBUILDER_ASSETS
# The start takes 3 to 5 s on an idle machine; envtest's default timeout of 20 s is too short for a busy one.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=${KUBEBUILDER_CONTROLPLANE_START_TIMEOUT:-120s}
[ $# -gt 0 ] || set -- ./...
echo "control plane ready after $SECONDS s, now the tests"
# Two packages at a time: several packages start a control plane or a broker.
# shellcheck disable=SC2086 # TESTFLAGS may hold several flags.
exec go test -p 2 -timeout 20m ${TESTFLAGS:-} "$@"
