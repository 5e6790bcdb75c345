// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// cpuTime is the processor time of the instance so far.
func (i *instance) cpuTime() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", i.PID))
	if err != nil {
		return 0
	}
	return parseCPUTime(string(text))
}

// ticksPerSecond is USER_HZ: 100 on all current Linux systems.
const ticksPerSecond = 100

// parseCPUTime reads utime and stime, fields 14 and 15 of /proc/<pid>/stat. The second field can contain any character.
func parseCPUTime(stat string) time.Duration {
	all := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(all) < 13 {
		return 0
	}
	ticks := int64(0)
	for _, field := range all[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}
