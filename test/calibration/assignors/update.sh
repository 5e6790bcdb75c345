#!/usr/bin/env bash
# Copyright The Streamweir Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs Kafka's task assignors over histories of groups and writes what they decide to memplan/testdata/assignors, or to the
# folder given: `test/calibration/assignors/update.sh [FOLDER [HISTORIES]]`. HISTORIES is the number for each assignor.
# The same sources give the same files.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-$here/../../../memplan/testdata/assignors}
histories=${2:-120}
built=$("$here/../../java/build.sh")
java -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$built/classes:$built/lib/*" dev.streamweir.assignors.Main "$folder" "$histories"
