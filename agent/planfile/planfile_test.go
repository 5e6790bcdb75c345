// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package planfile_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/planfile"
)

var update = flag.Bool("update", false, "write the shared fixtures in agent/testdata")

// fixture is the plan in agent/testdata/plan. It sets each field.
func fixture() planfile.Plan {
	return planfile.Plan{
		Limit: 1 << 30,
		Heap:  384 << 20,
		Options: []string{
			"-XX:+IgnoreUnrecognizedVMOptions", "-XX:MaxRAM=1073741824", "-XX:MaxRAMPercentage=37.5000", "-XX:MinRAMPercentage=37.5000",
		},
		RocksDB: planfile.RocksDB{
			Cache: 128 << 20, WriteBufferManager: 51 << 20, ArenaBlock: 64 << 10, WriteBuffer: 12 << 20, ReplaceCaches: true,
		},
		Streams: []planfile.Config{
			{Name: "restore.consumer.fetch.max.bytes", Value: 4 << 20},
			{Name: "main.consumer.max.poll.records", Value: 200},
			{Name: "buffer.memory", Value: 8 << 20},
			{Name: "statestore.cache.max.bytes", Value: 0},
		},
	}
}

// TestFixture compares the files of a plan, and the plan that is read from them, with agent/testdata. The agent's own tests read the same
// files.
func TestFixture(t *testing.T) {
	folder := filepath.Join("..", "testdata", "plan")
	files := fixture().Files()
	compareWithFile(t, filepath.Join("..", "testdata", "plan.golden"), describe(fixture()))
	read := map[string]string{}
	for name, text := range files {
		path := filepath.Join(folder, name)
		compareWithFile(t, path, text)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read[name] = string(content)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != len(files) {
		t.Errorf("%s has %d files, should have %d: %v", folder, len(entries), len(files), err)
	}
	parsed, err := planfile.Parse(read)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(fixture(), parsed); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
}

// describe lists the fields of a plan as agent/testdata/plan.golden does. JVM options are left out: the agent does not read them.
func describe(p planfile.Plan) string {
	var text strings.Builder
	fmt.Fprintf(&text, "revision %s\nlimit %d\nheap %d\ncache %d\nwriteBufferManager %d\narenaBlock %d\nwriteBuffer %d\nreplaceCaches %v\n",
		p.Revision(), p.Limit, p.Heap, p.RocksDB.Cache, p.RocksDB.WriteBufferManager, p.RocksDB.ArenaBlock, p.RocksDB.WriteBuffer, p.RocksDB.ReplaceCaches)
	for _, config := range slices.SortedFunc(slices.Values(p.Streams), func(a, b planfile.Config) int { return cmp.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&text, "setting %s %d\n", config.Name, config.Value)
	}
	return text.String()
}

// compareWithFile compares a text with a file, or writes the file with -update.
func compareWithFile(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-file +plan); run this test with -update:\n%s", path, diff)
	}
}

func TestFilesOfAPlanWithoutBounds(t *testing.T) {
	plan := planfile.Plan{Limit: 100, Heap: 40}
	want := map[string]string{
		"jvm.options":        "\n",
		"plan.v1.properties": "limit.bytes=100\nheap.bytes=40\n",
		"revision":           plan.Revision(),
	}
	if diff := gocmp.Diff(want, plan.Files()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseReturnsThePlanThatWasWritten(t *testing.T) {
	plans := map[string]func(*planfile.Plan){
		"the fixture":       func(*planfile.Plan) {},
		"no JVM options":    func(p *planfile.Plan) { p.Options = []string{} },
		"no bounds":         func(p *planfile.Plan) { p.RocksDB, p.Streams = planfile.RocksDB{}, nil },
		"the largest limit": func(p *planfile.Plan) { p.Limit = 1 << 50 },
		"caches kept":       func(p *planfile.Plan) { p.RocksDB.ReplaceCaches = false },
	}
	for name, change := range plans {
		t.Run(name, func(t *testing.T) {
			want := fixture()
			change(&want)
			got, err := planfile.Parse(want.Files())
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseIgnoresPropertiesOfNewerVersions(t *testing.T) {
	files := fixture().Files()
	files[planfile.PropertiesKey] = "# A comment\n\nnewer.than.this=x\n" + files[planfile.PropertiesKey]
	got, err := planfile.Parse(files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(fixture(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRejects(t *testing.T) {
	cases := map[string]struct{ properties, want string }{
		"a line without a value":   {"garbage\n", `line "garbage" has no value`},
		"a negative amount":        {"limit.bytes=-1\n", "limit.bytes=-1: the value must be a number from 1 to 1125899906842624"},
		"an amount of zero":        {"heap.bytes=0\n", "heap.bytes=0"},
		"an amount that overflows": {"rocksdb.cache.bytes=99999999999999999999\n", "rocksdb.cache.bytes"},
		"an amount above 1 PiB":    {"rocksdb.cache.bytes=1125899906842625\n", "rocksdb.cache.bytes"},
		"a config with a text":     {"streams.buffer.memory=many\n", "streams.buffer.memory=many: the value must be a number from 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := planfile.Parse(map[string]string{planfile.PropertiesKey: c.properties})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, should contain %q", err, c.want)
			}
		})
	}
	if _, err := planfile.Parse(map[string]string{"plan.v2.properties": ""}); err == nil || !strings.Contains(err.Error(), "plan.v1.properties is missing") {
		t.Errorf("without the file of version 1 the error is %v", err)
	}
}

func TestSetPropertyRejectsUnknownProperties(t *testing.T) {
	var plan planfile.Plan
	if err := plan.SetProperty("rocksdb.cash.bytes", "1"); err == nil || !strings.Contains(err.Error(), "unknown property rocksdb.cash.bytes") {
		t.Errorf("the error is %v", err)
	}
}

func TestRevisionDependsOnTheContentOnly(t *testing.T) {
	one := map[string]string{"a": "1", "b": "2"}
	for range 20 { // The order of a map is random.
		if got := planfile.Revision(map[string]string{"b": "2", "a": "1"}); got != planfile.Revision(one) || len(got) != 16 {
			t.Fatalf("the same content has the revisions %q and %q", got, planfile.Revision(one))
		}
	}
	others := []map[string]string{{"a": "1"}, {"a": "2", "b": "1"}, {"a": "1", "b": "2", "c": ""}, {"ab": "12"}, {}}
	seen := map[string]bool{planfile.Revision(one): true}
	for _, other := range others {
		revision := planfile.Revision(other)
		if seen[revision] {
			t.Errorf("%v has the revision of other content", other)
		}
		seen[revision] = true
	}
	revised := planfile.WithRevision(one)
	if planfile.Revision(revised) != planfile.Revision(one) || revised[planfile.RevisionKey] != planfile.Revision(one) {
		t.Errorf("with its revision the content is %v", revised)
	}
	if !maps.Equal(one, map[string]string{"a": "1", "b": "2"}) {
		t.Errorf("WithRevision changed its argument to %v", one)
	}
}

func TestTokenIsKeptAndNotAPartOfTheRevision(t *testing.T) {
	files := fixture().Files()
	first := planfile.WithToken(files, nil)
	if token := planfile.Token(first); len(token) != 64 || token == planfile.Token(planfile.WithToken(files, nil)) {
		t.Errorf("the token %q should have 32 random bytes in hex", token)
	}
	changed := fixture()
	changed.Heap++
	second := planfile.WithToken(changed.Files(), first)
	if planfile.Token(second) != planfile.Token(first) {
		t.Errorf("another plan has the token %q, should keep %q", planfile.Token(second), planfile.Token(first))
	}
	if planfile.Revision(first) != planfile.Revision(files) {
		t.Error("the token changes the revision")
	}
	for _, invalid := range []string{"", "secret", planfile.Token(first)[2:], "z" + planfile.Token(first)[1:]} {
		stored := map[string]string{planfile.TokenKey: invalid}
		if planfile.Token(stored) != "" || planfile.Token(planfile.WithToken(files, stored)) == "" {
			t.Errorf("the token %q is not replaced", invalid)
		}
	}
	if _, ok := files[planfile.TokenKey]; ok {
		t.Error("WithToken changed its argument")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fixture().Files()[planfile.PropertiesKey], "-XX:MaxRAM=1\n")
	f.Add("streams.a=0\nstreams.a=1\n=\n", "")
	f.Fuzz(func(t *testing.T, properties, options string) {
		plan, err := planfile.Parse(map[string]string{planfile.PropertiesKey: properties, planfile.OptionsKey: options})
		if err != nil {
			return
		}
		again, err := planfile.Parse(plan.Files())
		if err != nil {
			t.Fatal(err)
		}
		if again.Revision() != plan.Revision() {
			t.Errorf("the plan changes when it is written and read again:\n%s", gocmp.Diff(plan, again))
		}
	})
}
