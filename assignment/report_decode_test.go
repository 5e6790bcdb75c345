// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/assignment"
)

const podUID = "7d9b2c2e-52a1-4c63-9ef1-6f2f6e3a8d10"

// reportOf makes a report of an application that runs tasks of three stores each, active ones first.
func reportOf(uid string, seq int64, active, standby int) *assignment.Report {
	thread := assignment.ReportedThread{Name: "orders-1-StreamThread-1"}
	for i := range active + standby {
		task := assignment.ReportedTask{ID: fmt.Sprintf("0_%d", i), Role: assignment.RoleActive}
		if i >= active {
			task.Role = assignment.RoleStandby
		}
		for _, s := range []string{"counts rocksdb-state", "hourly rocksdb-window-state", "seen in-memory-state"} {
			name, scope, _ := strings.Cut(s, " ")
			task.Stores = append(task.Stores, assignment.ReportedStore{Name: name, Scope: scope})
		}
		thread.Tasks = append(thread.Tasks, task)
	}
	return &assignment.Report{
		Schema: assignment.ReportSchema, Agent: "0.1.0", Seq: seq, PodUID: uid, Started: 1_796_000_000_000, Bounded: assignment.BoundedInForce,
		Plan:    assignment.ReportedPlan{OnDisk: "g2", InForce: "g1", Source: assignment.PlanMounted},
		RocksDB: assignment.ReportedRocksDB{CacheCapacity: 240 << 20, CacheUsage: 100 << 20, WriteBufferManager: 100 << 20, ArenaBlock: 1 << 20},
		Clients: []assignment.ReportedClient{{
			ApplicationID: "orders", ClientID: "orders-1", Version: "4.4.0", State: "RUNNING", Topology: "Topologies:\n   Sub-topology: 0\n",
			Settings: []assignment.ReportedSetting{
				{Name: "num.standby.replicas", Value: "1", By: assignment.SetByApp},
				{Name: "main.consumer.fetch.max.bytes", Value: "1048576", By: assignment.SetByPlan},
			},
			Threads:  []assignment.ReportedThread{thread},
			Brokers:  3,
			Records:  assignment.ReportedRecords{AverageSize: 300, LargestSize: 4000},
			StateDir: assignment.ReportedStateDir{Type: "ext4"},
		}},
		JVM: assignment.ReportedJVM{Version: 17, Vendor: "Debian", Name: "OpenJDK 64-Bit Server VM", Collectors: []string{"G1 Young Generation"},
			HeapMax: 256 << 20, HeapUsed: 100 << 20, Threads: 40, Flags: []string{"-Xmx256m", "-XX:MaxRAMPercentage=33.0"}},
		Cgroup:    assignment.ReportedCgroup{Version: 2, Limit: 760 << 20, Usage: 640 << 20, Anon: 600 << 20},
		Allocator: assignment.ReportedAllocator{Name: "glibc", Arenas: 2},
		Findings:  []assignment.ReportedFinding{{Reason: "OwnCache", Message: "The application's setter has its own cache."}},
	}
}

// encode writes a report as the agent does.
func encode(t testing.TB, r *assignment.Report) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decoded changes a good report and gives what is read of it.
func decoded(t *testing.T, change func(*assignment.Report)) *assignment.Report {
	t.Helper()
	r := reportOf(podUID, 1, 2, 1)
	change(r)
	got, err := assignment.DecodeReport(encode(t, r), podUID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDecodeReportReadsWhatTheAgentWrites(t *testing.T) {
	want := reportOf(podUID, 1_796_000_000_001, 5, 3)
	got, err := assignment.DecodeReport(encode(t, want), podUID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeReportRefuses(t *testing.T) {
	good := string(encode(t, reportOf(podUID, 1, 2, 1)))
	cases := map[string]struct {
		data string
		want assignment.ReportFault
	}{
		"nothing":                               {``, assignment.ReportMalformed},
		"no object":                             {`[1]`, assignment.ReportSchemaUnknown},
		"a page":                                {`<html>Not here</html>`, assignment.ReportMalformed},
		"half a report":                         {good[:len(good)/2], assignment.ReportMalformed},
		"a report and more":                     {good + `{}`, assignment.ReportMalformed},
		"no schema":                             {`{"podUID":"` + podUID + `"}`, assignment.ReportSchemaUnknown},
		"another schema":                        {strings.Replace(good, `"schema":1`, `"schema":2`, 1), assignment.ReportSchemaUnknown},
		"another schema with another type":      {`{"schema":2,"clients":"none"}`, assignment.ReportSchemaUnknown},
		"a text where an amount belongs":        {strings.Replace(good, `"seq":1`, `"seq":"one"`, 1), assignment.ReportMalformed},
		"an amount beyond 64 bits":              {strings.Replace(good, `"seq":1`, `"seq":99999999999999999999`, 1), assignment.ReportMalformed},
		"an amount with a fraction":             {strings.Replace(good, `"seq":1`, `"seq":1.5`, 1), assignment.ReportMalformed},
		"another pod's UID":                     {strings.Replace(good, podUID, "other", 1), assignment.ReportWrongPod},
		"no UID":                                {strings.Replace(good, podUID, "", 1), assignment.ReportWrongPod},
		"one byte more than may be":             {good + strings.Repeat(" ", assignment.MaxReportBytes+1-len(good)), assignment.ReportTooLarge},
		"lists in lists without an end in them": {strings.Repeat("[", assignment.MaxReportBytes), assignment.ReportMalformed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := assignment.DecodeReport([]byte(c.data), podUID)
			e, ok := errors.AsType[*assignment.ReportError](err)
			if !ok || e.Fault != c.want || got != nil {
				t.Errorf("the report is %v, the error %v; should be of kind %s", got, err, c.want)
			}
		})
	}
	if _, err := assignment.DecodeReport([]byte(good+strings.Repeat(" ", assignment.MaxReportBytes-len(good))), podUID); err != nil {
		t.Errorf("a report of just the size that may be gave %v", err)
	}
}

func TestDecodeReportBringsAmountsIntoBounds(t *testing.T) {
	got := decoded(t, func(r *assignment.Report) {
		r.Seq, r.Started = -5, math.MinInt64
		r.RocksDB = assignment.ReportedRocksDB{CacheCapacity: -1, CacheUsage: math.MaxInt64, Opened: math.MinInt64,
			OwnCaches: []assignment.ReportedCache{{Capacity: math.MaxInt64, Stores: -3}}}
		r.JVM.HeapMax, r.JVM.Threads, r.JVM.ThreadsPeak, r.JVM.Version = math.MaxInt64, math.MaxInt, -1, -17
		r.Cgroup = assignment.ReportedCgroup{Version: 3, Limit: -1, Usage: math.MaxInt64}
		r.Allocator.Arenas = math.MaxInt
		r.Clients[0].Brokers, r.Clients[0].Records.LargestSize, r.Clients[0].StateDir.Bytes = -1, math.MaxInt64, -1
	})
	if got.Seq != 0 || got.Started != 0 || got.JVM.Version != 0 || got.JVM.ThreadsPeak != 0 || got.Clients[0].StateDir.Bytes != 0 {
		t.Errorf("what is below zero should be zero, is %+v", got)
	}
	if diff := cmp.Diff(assignment.ReportedCgroup{Usage: 1 << 50}, got.Cgroup); diff != "" {
		t.Errorf("cgroup (-want +got):\n%s", diff)
	}
	want := assignment.ReportedRocksDB{CacheUsage: 1 << 50, OwnCaches: []assignment.ReportedCache{{Capacity: 1 << 50}}}
	if diff := cmp.Diff(want, got.RocksDB); diff != "" {
		t.Errorf("RocksDB (-want +got):\n%s", diff)
	}
	checkBounds(t, got)
}

func TestDecodeReportTakesTheSafeWordForAnUnknownOne(t *testing.T) {
	got := decoded(t, func(r *assignment.Report) {
		r.Bounded, r.Plan.Source = "Certainly", "Somewhere"
		r.Clients[0].Settings[0].By = "Nobody"
		r.Clients[0].Threads[0].Tasks[0].Role = "Idle"
		r.Clients[0].Threads[0].Tasks[2].Role = "standby" // Words have one spelling.
	})
	if got.Bounded != assignment.BoundedOff || got.Plan.Source != assignment.PlanBootstrap || got.Clients[0].Settings[0].By != assignment.SetByApp {
		t.Errorf("bounded is %s, the plan from %s, the setting by %s", got.Bounded, got.Plan.Source, got.Clients[0].Settings[0].By)
	}
	for _, task := range got.Clients[0].Threads[0].Tasks {
		if task.Role != assignment.RoleActive {
			t.Errorf("task %s is %s, should be active", task.ID, task.Role)
		}
	}
}

func TestDecodeReportDropsTasksThatAreNoneAndThoseNamedTwice(t *testing.T) {
	task := func(id string, role assignment.TaskRole) assignment.ReportedTask {
		return assignment.ReportedTask{ID: id, Role: role}
	}
	got := decoded(t, func(r *assignment.Report) {
		r.Clients[0].Threads = []assignment.ReportedThread{
			{Name: "a", Tasks: []assignment.ReportedTask{
				task("0_1", assignment.RoleStandby), task("0_2", assignment.RoleStandby), task("0_2", assignment.RoleStandby),
				task("", assignment.RoleActive), task("0", assignment.RoleActive), task("0_", assignment.RoleActive), task("_1", assignment.RoleActive),
				task("0_-1", assignment.RoleActive), task("-1_0", assignment.RoleActive), task("0_01", assignment.RoleActive),
				task("0_1000000000000", assignment.RoleActive), task("0_100000", assignment.RoleActive), task("x_1", assignment.RoleActive),
				task("a\n__0_1", assignment.RoleActive), task(strings.Repeat("a", 300)+"__0_1", assignment.RoleActive),
			}},
			{Name: "b", Tasks: []assignment.ReportedTask{task("0_1", assignment.RoleActive), task("näme__0_1", assignment.RoleActive)}},
		}
	})
	want := []assignment.ReportedThread{
		{Name: "a", Tasks: []assignment.ReportedTask{task("0_2", assignment.RoleStandby)}},
		{Name: "b", Tasks: []assignment.ReportedTask{task("0_1", assignment.RoleActive), task("näme__0_1", assignment.RoleActive)}},
	}
	if diff := cmp.Diff(want, got.Clients[0].Threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	if got.Findings[0].Reason != assignment.ReportedTaskMalformed || !strings.HasPrefix(got.Findings[0].Message, "12 of the tasks") {
		t.Errorf("the first finding is %+v, should count the tasks", got.Findings[0])
	}
}

func TestDecodeReportLetsOnlyKnownSettingsAndFlagsPass(t *testing.T) {
	setting := func(name string) assignment.ReportedSetting {
		return assignment.ReportedSetting{Name: name, Value: "v\u202e\u0007", By: assignment.SetByApp}
	}
	got := decoded(t, func(r *assignment.Report) {
		r.Clients[0].Settings = nil
		for _, name := range []string{
			"buffer.memory", "producer.buffer.memory", "main.consumer.group.instance.id", "buffer.memory", "sasl.jaas.config",
			"consumer.sasl.jaas.config", "ssl.keystore.password", "my.own.token", "", "consumer.", "consumer.consumer.max.poll.records",
		} {
			r.Clients[0].Settings = append(r.Clients[0].Settings, setting(name))
		}
		r.JVM.Flags = []string{"-Xmx1g", "-XX:+UseG1GC", "-XX:MaxRAMPercentage=33.0", "-Dpassword=secret", "-XX:OnOutOfMemoryError=\"curl x\"",
			"-Djdk.nio.maxCachedBufferSize=65536", "-Djdk.nio.maxCachedBufferSize=a/b",
			"-javaagent:/a.jar", "-XX:VMOptionsFile=/etc/passwd", "-Xmx1g -Dx=y", "-Xlog:gc*:file=/x", "-X" + strings.Repeat("m", 300)}
	})
	var names []string
	for _, s := range got.Clients[0].Settings {
		names = append(names, s.Name+"="+s.Value)
	}
	if diff := cmp.Diff([]string{"buffer.memory=v", "producer.buffer.memory=v", "main.consumer.group.instance.id=v"}, names); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"-Xmx1g", "-XX:+UseG1GC", "-XX:MaxRAMPercentage=33.0", "-Djdk.nio.maxCachedBufferSize=65536"}, got.JVM.Flags); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

// The agent is the other half of the agreement.
func TestReportedSettingsAreThoseThatTheAgentTells(t *testing.T) {
	source, err := os.ReadFile("../agent/src/main/java/dev/streamweir/agent/report/Settings.java")
	if err != nil {
		t.Fatal(err)
	}
	told, prefixes := map[string]bool{}, map[string]bool{}
	for _, literal := range regexp.MustCompile(`"([a-z0-9. ]+)"`).FindAllSubmatch(source, -1) {
		for word := range strings.FieldsSeq(string(literal[1])) {
			switch {
			case strings.HasSuffix(word, "."):
				prefixes[word] = true
			case strings.Contains(word, ".") && !strings.HasPrefix(word, "streamweir."): // The agent's own notes are not told.
				told[word] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(told)), assignment.ReportedSettings); diff != "" {
		t.Errorf("(-agent +operator):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(prefixes)), slices.Sorted(slices.Values(assignment.SettingPrefixes))); diff != "" {
		t.Errorf("prefixes (-agent +operator):\n%s", diff)
	}
}

func TestDecodeReportCutsListsAndTexts(t *testing.T) {
	cases := map[string]struct {
		change func(*assignment.Report)
		length func(*assignment.Report) int
		want   int
	}{
		"clients": {
			func(r *assignment.Report) { r.Clients = make([]assignment.ReportedClient, 100) },
			func(r *assignment.Report) int { return len(r.Clients) }, 64,
		},
		"threads of all clients": {
			func(r *assignment.Report) {
				r.Clients = make([]assignment.ReportedClient, 2)
				for i := range r.Clients {
					r.Clients[i].Threads = make([]assignment.ReportedThread, 700)
				}
			},
			func(r *assignment.Report) int { return len(r.Clients[0].Threads) + len(r.Clients[1].Threads) }, 1000,
		},
		"tasks": {
			func(r *assignment.Report) {
				tasks := make([]assignment.ReportedTask, 5500)
				for i := range tasks {
					tasks[i].ID = fmt.Sprintf("0_%d", i)
				}
				r.Clients = []assignment.ReportedClient{
					{ApplicationID: "a", Threads: []assignment.ReportedThread{{Tasks: tasks}}},
					{ApplicationID: "b", Threads: []assignment.ReportedThread{{Tasks: tasks}}},
				}
			},
			func(r *assignment.Report) int {
				return len(r.Clients[0].Threads[0].Tasks) + len(r.Clients[1].Threads[0].Tasks)
			}, 10_000,
		},
		"stores": {
			func(r *assignment.Report) {
				for i := range 11_000 {
					r.Clients[0].GlobalStores = append(r.Clients[0].GlobalStores, assignment.ReportedStore{Name: fmt.Sprint(i)})
				}
			},
			func(r *assignment.Report) int { return len(r.Clients[0].GlobalStores) }, 10_000 - 9, // Three tasks of three stores are before them.
		},
		"subtopologies that are larger together than any": {
			func(r *assignment.Report) {
				for i := range 20 {
					task := assignment.ReportedTask{ID: fmt.Sprintf("%d_99999", i+1)}
					r.Clients[0].Threads[0].Tasks = append(r.Clients[0].Threads[0].Tasks, task)
				}
			},
			func(r *assignment.Report) int { return len(r.Clients[0].Threads[0].Tasks) }, 3 + 9,
		},
		"findings": {
			func(r *assignment.Report) {
				for i := range 60 {
					r.Findings = append(r.Findings, assignment.ReportedFinding{Reason: "R", Message: fmt.Sprint(i)})
				}
				r.JVM.Flags = slices.Repeat([]string{"-Xmx1g"}, 300)
			},
			func(r *assignment.Report) int { return len(r.Findings) }, 50,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := reportOf(podUID, 1, 2, 1)
			c.change(r)
			data := compact(t, r)
			got, err := assignment.DecodeReport(data, podUID)
			if err != nil {
				t.Fatal(err)
			}
			if n := c.length(got); n != c.want {
				t.Errorf("there are %d, should be %d", n, c.want)
			}
			if got.Findings[0].Reason != assignment.ReportCut {
				t.Errorf("the first finding is %+v, should say that something was cut", got.Findings[0])
			}
			checkBounds(t, got)
		})
	}
}

func TestDecodeReportCutsTextsBetweenCharacters(t *testing.T) {
	got := decoded(t, func(r *assignment.Report) {
		r.Findings[0].Message = strings.Repeat("ä", 600) + "\x1b[31m"
		r.Clients[0].ClientID = "a\nb\x00c\u200b"
		r.Clients[0].Topology = "a\n\tb\r\n" + strings.Repeat("日本", 30_000)
	})
	if got.Findings[0].Message != strings.Repeat("ä", 512) {
		t.Errorf("the message is %q", got.Findings[0].Message)
	}
	if got.Clients[0].ClientID != "abc" {
		t.Errorf("the client ID is %q", got.Clients[0].ClientID)
	}
	if topology := got.Clients[0].Topology; !strings.HasPrefix(topology, "a\nb\n日") || len(topology) > 128<<10 || !utf8.ValidString(topology) {
		t.Errorf("the topology has %d bytes and begins with %.10q", len(topology), topology)
	}
}

// compact writes a report without what is empty, as a liar who wants to say much would.
func compact(t testing.TB, r *assignment.Report) []byte {
	t.Helper()
	var tree any
	if err := json.Unmarshal(encode(t, r), &tree); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(withoutEmpty(tree))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func withoutEmpty(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil || reflect.ValueOf(value).IsZero() {
				delete(v, key)
				continue
			}
			v[key] = withoutEmpty(value)
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return tree
}

// checkBounds walks through a report: no amount is out of bounds, and every text is fit to be shown.
func checkBounds(t *testing.T, r *assignment.Report) {
	t.Helper()
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice:
			if v.Len() > 10_000 {
				t.Errorf("%s has %d elements", path, v.Len())
			}
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		case reflect.Int, reflect.Int64:
			if v.Int() < 0 || v.Int() > 1<<50 && path != ".Seq" {
				t.Errorf("%s is %d", path, v.Int())
			}
		case reflect.String:
			topology := strings.HasSuffix(path, ".Topology")
			bad := func(r rune) bool { return !unicode.IsPrint(r) && (!topology || r != '\n') }
			if s := v.String(); path != ".PodUID" && (!utf8.ValidString(s) || strings.IndexFunc(s, bad) >= 0 || len(s) > 128<<10) {
				t.Errorf("%s is %q", path, s)
			}
		default:
			t.Errorf("%s is a %s, which is not checked", path, v.Kind())
		}
	}
	walk("", reflect.ValueOf(*r))
}

func FuzzDecodeReport(f *testing.F) {
	f.Add(encode(f, reportOf(podUID, 1, 2, 1)))
	f.Add([]byte(`{"schema":1,"podUID":"` + podUID + `","seq":-1,"clients":[{"threads":[{"tasks":[{"id":"0_99999"},{"id":"0_1"},{"id":"0_1"}]}]}]}`))
	f.Add([]byte(`{"schema":1,"podUID":"` + podUID + `","findings":[{"reason":"ReportCut"},{"reason":"x\u0000"},{"reason":"ReportCut"}]}`))
	f.Add([]byte(`{"schema":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := assignment.DecodeReport(data, podUID)
		if err != nil {
			return
		}
		checkBounds(t, got)
		group := assignment.GroupOfReports([]assignment.PodReport{{Pod: "a", Report: got}}, "", nil)
		all := 0
		for _, s := range group.Group.Subtopologies {
			all += int(s.Tasks)
		}
		if all < 0 || all > 1_000_000 {
			t.Errorf("the subtopologies have %d tasks", all)
		}
		var again bytes.Buffer
		encoder := json.NewEncoder(&again)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(got); err != nil {
			t.Fatal(err)
		}
		if again.Len() > assignment.MaxReportBytes {
			return // Empty fields and escapes make it longer.
		}
		reread, err := assignment.DecodeReport(again.Bytes(), podUID)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := encode(t, got), encode(t, reread); !bytes.Equal(a, b) {
			t.Errorf("decoding again changes it:\n%s", cmp.Diff(got, reread))
		}
	})
}

func BenchmarkDecodeReport(b *testing.B) {
	data := encode(b, reportOf(podUID, 1, 150, 50))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := assignment.DecodeReport(data, podUID); err != nil {
			b.Fatal(err)
		}
	}
}
