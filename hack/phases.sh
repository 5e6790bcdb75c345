#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Functions for the other scripts: run named phases, print the duration of each, and record the failed ones.

failed=()

# phase NAME COMMAND...: runs the command and continues after a failure.
phase() {
  local name=$1 from=$SECONDS
  shift
  echo "==> $name"
  if "$@"; then
    echo "    $name: done in $((SECONDS - from)) s"
  else
    echo "    $name: FAILED after $((SECONDS - from)) s"
    failed+=("$name")
  fi
}

# verdict: ends the script, with an error if phases have failed.
verdict() {
  if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}" >&2
    exit 1
  fi
  echo "all phases passed in $SECONDS s"
}
