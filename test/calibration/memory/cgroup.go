// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroup is a memory cgroup with a limit, like that of a container.
type cgroup struct {
	path string
	v2   bool
}

// memory is the memory charged to a cgroup, in bytes.
type memory struct {
	Usage int64 `json:"usage"`
	// Anon is not backed by files, so it cannot be reclaimed: heap, native memory, stacks. File is page cache.
	Anon int64 `json:"anon"`
	File int64 `json:"file"`
	// Kernel includes sockets, page tables and stacks.
	Kernel   int64 `json:"kernel"`
	OOMKills int64 `json:"oomKills,omitempty"`
}

// newCgroup creates a cgroup below that of this process (version 1), or below the root (version 2, where only leaves have processes).
func newCgroup(name string, limit int64) (*cgroup, error) {
	c := &cgroup{path: filepath.Join("/sys/fs/cgroup", name)}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		c.v2 = true
	} else {
		own, err := ownMemoryCgroup()
		if err != nil {
			return nil, err
		}
		c.path = filepath.Join("/sys/fs/cgroup/memory", own, name)
	}
	if err := os.Mkdir(c.path, 0o755); err != nil {
		return nil, fmt.Errorf("make a memory cgroup (needs root): %w", err)
	}
	if err := os.WriteFile(c.file("memory.limit_in_bytes", "memory.max"), strconv.AppendInt(nil, limit, 10), 0o600); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// ownMemoryCgroup is the path of this process in the memory hierarchy of version 1.
func ownMemoryCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 && parts[1] == "memory" {
			return parts[2], nil
		}
	}
	return "", errors.New("no memory cgroup of version 1 or 2 is mounted at /sys/fs/cgroup")
}

func (c *cgroup) file(v1, v2 string) string {
	if c.v2 {
		return filepath.Join(c.path, v2)
	}
	return filepath.Join(c.path, v1)
}

// procs is the file to which a process writes its id to enter.
func (c *cgroup) procs() string { return filepath.Join(c.path, "cgroup.procs") }

// remove removes the cgroup, which must be empty.
func (c *cgroup) remove() error { return os.Remove(c.path) }

// read reads the figures.
func (c *cgroup) read() (memory, error) {
	stat, err := os.ReadFile(filepath.Join(c.path, "memory.stat"))
	if err != nil {
		return memory{}, err
	}
	usage, err := readNumber(c.file("memory.usage_in_bytes", "memory.current"))
	if err != nil {
		return memory{}, err
	}
	values := fields(stat)
	events, err := os.ReadFile(c.file("memory.oom_control", "memory.events"))
	if err != nil {
		return memory{}, err
	}
	m := memory{Usage: usage, OOMKills: fields(events)["oom_kill"]}
	if c.v2 {
		m.Anon, m.File = values["anon"], values["file"]
		m.Kernel = values["kernel"] + values["sock"]
		return m, nil
	}
	m.Anon, m.File = values["total_rss"], values["total_cache"]
	kernel, err := readNumber(filepath.Join(c.path, "memory.kmem.usage_in_bytes"))
	if err != nil {
		return memory{}, err
	}
	sockets, err := readNumber(filepath.Join(c.path, "memory.kmem.tcp.usage_in_bytes"))
	m.Kernel = kernel + sockets
	return m, err
}

// fields reads lines of a name and a number.
func fields(text []byte) map[string]int64 {
	values := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, number, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			values[name] = n
		}
	}
	return values
}

func readNumber(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
