#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs each fuzz target for a short time: `hack/fuzz.sh 10s`. `go test -fuzz` takes one target of one package at a time.
# An interesting input is minimised for at most a second: the default of a minute would take all of a short run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. hack/phases.sh

duration=${1:-10s}
while IFS=: read -r file target; do
  phase "$target" go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 1s
done < <(git grep -o '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | sed 's/func //')
verdict
