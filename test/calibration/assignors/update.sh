#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs Kafka's task assignors on histories of groups and writes their decisions to memplan/testdata/assignors, or to FOLDER:
# `test/calibration/assignors/update.sh [FOLDER [HISTORIES]]`. HISTORIES is the number for each assignor.
# The output depends only on the sources.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-$here/../../../memplan/testdata/assignors}
histories=${2:-120}
built=$("$here/../../java/build.sh")
java -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$built/classes:$built/lib/*" dev.streamweir.assignors.Main "$folder" "$histories"
