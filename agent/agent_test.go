// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/memplan"
)

var update = flag.Bool("update", false, "write the bootstrap plans in testdata")

// TestJar checks that a JVM accepts the jar as an agent, and that it fits into a ConfigMap.
func TestJar(t *testing.T) {
	if len(Jar) >= 200<<10 {
		t.Errorf("the jar has %d bytes, want less than 200 KiB", len(Jar))
	}
	archive, err := zip.NewReader(bytes.NewReader(Jar), int64(len(Jar)))
	if err != nil {
		t.Fatalf("the jar is not an archive: %v", err)
	}
	manifest, err := archive.Open("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatalf("the jar has no manifest: %v", err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(manifest); err != nil {
		t.Fatalf("read the manifest: %v", err)
	}
	if want := "Premain-Class: dev.streamweir.agent.Agent"; !strings.Contains(text.String(), want) {
		t.Errorf("the manifest lacks %q:\n%s", want, text.String())
	}
	for _, file := range archive.File {
		if strings.HasSuffix(file.Name, ".class") && !strings.HasPrefix(file.Name, "dev/streamweir/agent/") {
			t.Errorf("%s could hide a class of the application", file.Name)
		}
	}
}

// TestBootstrapPlans compares testdata/bootstrap.csv with the planner. The jar's own tests compare the agent's bootstrap bounds with this file.
func TestBootstrapPlans(t *testing.T) {
	var lines strings.Builder
	for _, limit := range []memplan.Bytes{640, 768, 900, 1024, 1536, 1791, 1792, 2048, 3072, 4096, 8192, 16384, 65536} {
		plan := memplan.Bootstrap(memplan.NewJVM(), memplan.DefaultPolicy(), limit*memplan.MiB)
		for _, config := range plan.Configs {
			if config.Name == "rocksdb.cache.bytes" {
				fmt.Fprintf(&lines, "%d,%d,%s\n", plan.Limit, plan.Heap, config.Value)
			}
		}
	}
	const file = "testdata/bootstrap.csv"
	if *update {
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), lines.String()); diff != "" {
		t.Errorf("%s differs from the planner (-file +planner); run this test with -update:\n%s", file, diff)
	}
}
