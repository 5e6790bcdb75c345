#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# For the other scripts: runs named phases, says how long each took, and remembers the failed ones.

failed=()

# phase NAME COMMAND...: runs the command and goes on whatever it returns.
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

# verdict: ends the script, with an error that names the failed phases if there are any.
verdict() {
  if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}" >&2
    exit 1
  fi
  echo "all phases passed in $SECONDS s"
}
