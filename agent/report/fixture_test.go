// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/report"
)

var update = flag.Bool("update", false, "write the shared fixture in agent/testdata")

// fixture is the report in agent/testdata/report.json. It sets each field.
func fixture() *report.Report {
	return &report.Report{
		Schema: report.Schema, Agent: "0.1.0", Seq: 1_796_000_000_007, PodUID: podUID, Started: 1_796_000_000_000, Bounded: report.BoundedActive,
		Truncated: true,
		Plan:      report.Plan{OnDisk: "6419e817a99f31a6", Active: "0123456789abcdef", Source: report.PlanClamped},
		RocksDB: report.RocksDB{
			CacheCapacity: 240 << 20, CacheUsage: 100 << 20, CachePinned: 12 << 20, WriteBufferManager: 96 << 20, ArenaBlock: 64 << 10,
			WriteBuffer: 24 << 20, Opened: 7, Closed: 1, OwnCaches: []report.Cache{{Capacity: 32 << 20, Stores: 2}},
		},
		Clients: []report.Client{{
			ApplicationID: "orders", ClientID: "orders-1", Version: "4.4.0", State: "RUNNING", Topology: "Topologies:\n   Sub-topology: 0\n",
			Settings: []report.Setting{
				{Name: "num.standby.replicas", Value: "1", By: report.SetByApp},
				{Name: "main.consumer.fetch.max.bytes", Value: "1048576", By: report.SetByPlan},
			},
			Threads: []report.Thread{{Name: "orders-1-StreamThread-1", Tasks: []report.Task{
				{ID: "0_3", Role: report.RoleActive, Stores: []report.Store{
					{Name: "counts", Scope: "rocksdb-state"}, {Name: "hourly", Scope: "rocksdb-window-state"},
				}},
				{ID: "named__1_0", Role: report.RoleStandby, Stores: []report.Store{{Name: "visits", Scope: "in-memory-session-state"}}},
			}}},
			GlobalStores: []report.Store{{Name: "rates", Scope: "rocksdb-state"}},
			Brokers:      3,
			Records:      report.Records{AverageSize: 300, LargestSize: 4000},
			StateDir:     report.StateDir{Type: "tmpfs", Bytes: 64 << 20},
		}},
		JVM: report.JVM{
			Version: 21, Vendor: "Eclipse Adoptium", Name: "OpenJDK 64-Bit Server VM", Collectors: []string{"G1 Young Generation", "G1 Old Generation"},
			HeapMax: 256 << 20, HeapUsed: 100 << 20, HeapLive: 80 << 20, Metaspace: 48 << 20, CodeCache: 24 << 20, Direct: 8 << 20,
			Threads: 40, ThreadsPeak: 44, Flags: []string{"-Xmx256m", "-XX:MaxRAMPercentage=33.0"},
		},
		Cgroup: report.Cgroup{
			Version: 2, Limit: 760 << 20, High: 696 << 20, Usage: 640 << 20, Anon: 600 << 20, File: 32 << 20, Kernel: 8 << 20, Peak: 700 << 20, OOMKills: 1,
		},
		Allocator: report.Allocator{Name: "glibc", Arenas: 2},
		Findings:  []report.Finding{{Reason: "OwnCache", Message: "The application's RocksDBConfigSetter creates its own cache."}},
	}
}

// TestFixture decodes agent/testdata/report.json, which the agent's own tests compare with a report that they write.
func TestFixture(t *testing.T) {
	const path = "../testdata/report.json"
	if *update {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(fixture()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report.Report{}); err != nil {
		t.Errorf("%s does not follow the schema: %v", path, err)
	}
	decoded, err := report.Decode(data, podUID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fixture(), decoded); diff != "" {
		t.Errorf("%s differs (-fixture +file); run this test with -update:\n%s", path, diff)
	}
	checkAllSet(t, "report", reflect.ValueOf(*decoded))
}

// checkAllSet reports each field with a zero value: the fixture covers the whole schema.
func checkAllSet(t *testing.T, path string, value reflect.Value) {
	t.Helper()
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			checkAllSet(t, path+"."+value.Type().Field(i).Name, value.Field(i))
		}
	case reflect.Slice:
		if value.Len() == 0 {
			t.Errorf("%s is empty", path)
		}
		for i := range value.Len() {
			checkAllSet(t, path, value.Index(i))
		}
	default:
		if value.IsZero() {
			t.Errorf("%s is not set", path)
		}
	}
}
