#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs all tests. `hack/test.sh ./memplan/...` runs some. TESTFLAGS adds flags for `go test`.
# Where CI is set to true, a test whose needs are not met fails instead of being skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

KUBEBUILDER_ASSETS=$(hack/control-plane.sh)
export KUBEBUILDER_ASSETS
# The start takes 3 to 5 s on an idle machine; envtest's own bound of 20 s is short for a busy one.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=${KUBEBUILDER_CONTROLPLANE_START_TIMEOUT:-120s}
[ $# -gt 0 ] || set -- ./...
echo "control plane ready after $SECONDS s, now the tests"
# Two packages at a time: several start a control plane or a broker of their own.
# shellcheck disable=SC2086 # TESTFLAGS may hold several flags.
exec go test -p 2 -timeout 20m ${TESTFLAGS:-} "$@"
