// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package operatorconfig_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/internal/operatorconfig"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		file, hold, fault string
		clusters          int
	}{
		"an empty file":            {},
		"hold alone":               {file: "hold: maintenance", hold: "maintenance"},
		"both keys":                {file: `{hold: x, clusters: [{name: a, bootstrapServers: ["a:1"], allowedNamespaces: ["*"]}]}`, hold: "x", clusters: 1},
		"not YAML":                 {file: "{", fault: "must be YAML with the keys hold and clusters"},
		"an unknown key":           {file: "holds: x", fault: `unknown field "holds"`},
		"hold without a reason":    {file: "hold: true", hold: "true"},
		"hold that holds nothing":  {file: "hold: false", fault: "hold must be a reason"},
		"hold of another type":     {file: "hold: [x]", fault: "cannot unmarshal array"},
		"a key twice":              {file: "clusters: []\nclusters: []", fault: `key "clusters" already set in map`},
		"a fault inside a cluster": {file: `{clusters: [{name: a}]}`, fault: `cluster "a": bootstrapServers`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := operatorconfig.Parse([]byte(c.file))
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("the error is %v, want %q in it", err, c.fault)
				}
				return
			}
			if err != nil || got.Hold != c.hold || len(got.Clusters) != c.clusters {
				t.Errorf("got %+v (%v)", got, err)
			}
		})
	}
}

// mount replaces a file as the kubelet replaces a mounted ConfigMap: the link to the folder is swapped.
func mount(t *testing.T, folder, content string) {
	t.Helper()
	data := filepath.Join(folder, "..data-"+time.Now().Format(time.RFC3339Nano))
	if err := os.Mkdir(data, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "config.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "..data")
	if err := os.Symlink(data, link+"_tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		t.Fatal(err)
	}
}

const twoClusters = "clusters:\n- {name: a, bootstrapServers: ['a:1'], allowedNamespaces: ['*']}\n- {name: b, bootstrapServers: ['b:1'], allowedNamespaces: ['*']}\n"

func TestFaultKeepsTheLastGoodConfiguration(t *testing.T) {
	folder := t.TempDir()
	mount(t, folder, twoClusters)
	applied := make(chan operatorconfig.Config, 1)
	var reported []bool
	file := operatorconfig.Open(operatorconfig.Options{
		Path: filepath.Join(folder, "..data", "config.yaml"), Interval: time.Millisecond,
		Apply: func(c operatorconfig.Config) { applied <- c }, Report: func(ok bool) { reported = append(reported, ok) },
	})
	if first := <-applied; len(first.Clusters) != 2 || first.Hold != "" {
		t.Errorf("the first configuration is %+v", first)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- file.Start(ctx) }()
	steps := []struct {
		content  string
		hold     string
		clusters int
		good     bool
	}{
		{"hold: audit\n" + twoClusters, "audit", 2, true},
		{"hold: [audit]\n" + twoClusters, "audit", 2, false}, // the last good one
		{"hold: urgent\nclusters: [{name: a}]\n", "urgent", 2, false},
		{"hold: urgent\n", "urgent", 0, true},
		{twoClusters, "", 2, true},
		{"{", "", 2, false},
	}
	for _, step := range steps {
		mount(t, folder, step.content)
		select {
		case got := <-applied:
			if got.Hold != step.hold || len(got.Clusters) != step.clusters || (file.Fault() == nil) != step.good {
				t.Errorf("after %q: %+v, fault %v", step.content, got, file.Fault())
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q was not read", step.content)
		}
		<-file.Changes()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if want := []bool{true, true, false, false, true, true, false}; len(reported) != len(want) || reported[len(reported)-1] {
		t.Errorf("reported %v, want %v", reported, want)
	}
}

// TestSample: the sample in config/ is a configuration without faults.
func TestSample(t *testing.T) {
	text, err := os.ReadFile("../../config/samples/operator/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sample struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &sample); err != nil {
		t.Fatal(err)
	}
	config, err := operatorconfig.Parse([]byte(sample.Data["config.yaml"]))
	if err != nil || len(config.Clusters) != 1 || config.Hold != "" {
		t.Errorf("the sample is %+v (%v)", config, err)
	}
}

func TestFaultAtTheStartLeavesNoClusters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if file := operatorconfig.Open(operatorconfig.Options{Path: path}); file.Fault() != nil || len(file.Current().Clusters) > 0 {
		t.Errorf("a missing file: %+v, fault %v", file.Current(), file.Fault())
	}
	if err := os.WriteFile(path, []byte("hold: audit\nclusters: [{name: a}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := operatorconfig.Open(operatorconfig.Options{Path: path})
	if file.Fault() == nil || len(file.Current().Clusters) > 0 || file.Current().Hold != "audit" {
		t.Errorf("a faulty file: %+v, fault %v", file.Current(), file.Fault())
	}
	if file := operatorconfig.Open(operatorconfig.Options{Path: t.TempDir()}); file.Fault() == nil {
		t.Error("a folder has no fault")
	}
}
