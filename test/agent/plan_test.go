// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"streamweir.dev/streamweir/agent/planfile"
)

const (
	mib = 1 << 20
	// planCache is the capacity of the shared cache in the plan of these tests. No cache of an application has it.
	planCache = 24 * mib
	// planManager is the limit of all memtables in the plan.
	planManager = 8 * mib
)

// goodPlan returns a valid plan.
func goodPlan() map[string]string {
	return map[string]string{
		"limit.bytes":                            fmt.Sprint(400 * mib),
		"heap.bytes":                             fmt.Sprint(128 * mib),
		"rocksdb.cache.bytes":                    fmt.Sprint(planCache),
		"rocksdb.write.buffer.manager.bytes":     fmt.Sprint(planManager),
		"rocksdb.arena.block.bytes":              "65536",
		"rocksdb.write.buffer.bytes":             fmt.Sprint(4 * mib),
		"streams.buffered.records.per.partition": "500",
		"streams.fetch.max.bytes":                "4194304",
		"streams.main.consumer.max.poll.records": "200",
	}
}

// with returns a copy of a plan with changed values. An empty value removes the key.
func with(plan map[string]string, changes map[string]string) map[string]string {
	changed := maps.Clone(plan)
	for key, value := range changes {
		if value == "" {
			delete(changed, key)
			continue
		}
		changed[key] = value
	}
	return changed
}

// properties returns the text of a properties file.
func properties(values map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "%s=%s\n", key, values[key])
	}
	return text.String()
}

// planVolume is the folder of a mounted plan ConfigMap.
type planVolume struct {
	path     string
	versions int
}

// newPlan mounts a plan. Its revision is "g1".
func newPlan(tb testing.TB, plan map[string]string) *planVolume {
	tb.Helper()
	v := &planVolume{path: tb.TempDir()}
	v.publish(tb, map[string]string{planfile.PropertiesKey: properties(plan), planfile.RevisionKey: "g1", planfile.OptionsKey: ""})
	return v
}

// planToken is the token in each plan of these tests.
var planToken = strings.Repeat("0123456789abcdef", 4)

// publish replaces all files at once, as the kubelet does (AtomicWriter): the files are links into ..data, which is a link to a folder. It adds
// the token if the files have none.
func (v *planVolume) publish(tb testing.TB, files map[string]string) {
	tb.Helper()
	if _, ok := files[planfile.TokenKey]; !ok {
		files = with(files, map[string]string{planfile.TokenKey: planToken})
	}
	v.versions++
	folder := fmt.Sprintf("..version_%d", v.versions)
	check := func(err error) {
		if err != nil {
			tb.Fatalf("publish a plan: %v", err)
		}
	}
	check(os.Mkdir(filepath.Join(v.path, folder), 0o755))
	for name, content := range files {
		check(os.WriteFile(filepath.Join(v.path, folder, name), []byte(content), 0o600))
	}
	next := filepath.Join(v.path, "..data_tmp")
	check(os.Symlink(folder, next))
	check(os.Rename(next, filepath.Join(v.path, "..data")))
	for name := range files {
		link := filepath.Join(v.path, name)
		if _, err := os.Lstat(link); err != nil {
			check(os.Symlink(filepath.Join("..data", name), link))
		}
	}
}
