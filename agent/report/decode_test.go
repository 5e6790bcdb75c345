// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

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

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/report/reporttest"
)

const podUID = "7d9b2c2e-52a1-4c63-9ef1-6f2f6e3a8d10"

// decoded applies a change to a valid report, encodes it and decodes it.
func decoded(t *testing.T, change func(*report.Report)) *report.Report {
	t.Helper()
	r := reporttest.New(podUID, 1, 2, 1)
	change(r)
	got, err := report.Decode(reporttest.Encode(t, r), podUID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDecodeReturnsTheEncodedReport(t *testing.T) {
	want := reporttest.New(podUID, 1_796_000_000_001, 5, 3)
	got, err := report.Decode(reporttest.Encode(t, want), podUID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeRejects(t *testing.T) {
	good := string(reporttest.Encode(t, reporttest.New(podUID, 1, 2, 1)))
	cases := map[string]struct {
		data string
		want report.Fault
	}{
		"no data":                          {``, report.Malformed},
		"an array":                         {`[1]`, report.SchemaUnknown},
		"a page":                           {`<html>Not here</html>`, report.Malformed},
		"half a report":                    {good[:len(good)/2], report.Malformed},
		"a report and more":                {good + `{}`, report.Malformed},
		"no schema":                        {`{"podUID":"` + podUID + `"}`, report.SchemaUnknown},
		"another schema":                   {strings.Replace(good, `"schema":1`, `"schema":2`, 1), report.SchemaUnknown},
		"another schema with another type": {`{"schema":2,"clients":"none"}`, report.SchemaUnknown},
		"a text instead of an amount":      {strings.Replace(good, `"seq":1`, `"seq":"one"`, 1), report.Malformed},
		"an amount beyond 64 bits":         {strings.Replace(good, `"seq":1`, `"seq":99999999999999999999`, 1), report.Malformed},
		"an amount with a fraction":        {strings.Replace(good, `"seq":1`, `"seq":1.5`, 1), report.Malformed},
		"another pod's UID":                {strings.Replace(good, podUID, "other", 1), report.WrongPod},
		"no UID":                           {strings.Replace(good, podUID, "", 1), report.WrongPod},
		"one byte too many":                {good + strings.Repeat(" ", report.MaxBytes+1-len(good)), report.TooLarge},
		"deeply nested arrays":             {strings.Repeat("[", report.MaxBytes), report.Malformed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := report.Decode([]byte(c.data), podUID)
			e, ok := errors.AsType[*report.Error](err)
			if !ok || e.Fault != c.want || got != nil {
				t.Errorf("the report is %v and the error %v, want fault %s", got, err, c.want)
			}
		})
	}
	if _, err := report.Decode([]byte(good+strings.Repeat(" ", report.MaxBytes-len(good))), podUID); err != nil {
		t.Errorf("a report of the maximum size returned the error %v", err)
	}
}

func TestDecodeClampsAmounts(t *testing.T) {
	got := decoded(t, func(r *report.Report) {
		r.Seq, r.Started = -5, math.MinInt64
		r.RocksDB = report.RocksDB{CacheCapacity: -1, CacheUsage: math.MaxInt64, Opened: math.MinInt64,
			OwnCaches: []report.Cache{{Capacity: math.MaxInt64, Stores: -3}}}
		r.JVM.HeapMax, r.JVM.Threads, r.JVM.ThreadsPeak, r.JVM.Version = math.MaxInt64, math.MaxInt, -1, -17
		r.Cgroup = report.Cgroup{Version: 3, Limit: -1, Usage: math.MaxInt64}
		r.Allocator.Arenas = math.MaxInt
		r.Clients[0].Brokers, r.Clients[0].Records.LargestSize, r.Clients[0].StateDir.Bytes = -1, math.MaxInt64, -1
	})
	if got.Seq != 0 || got.Started != 0 || got.JVM.Version != 0 || got.JVM.ThreadsPeak != 0 || got.Clients[0].StateDir.Bytes != 0 {
		t.Errorf("negative amounts were not set to zero: %+v", got)
	}
	if diff := cmp.Diff(report.Cgroup{Usage: 1 << 50}, got.Cgroup); diff != "" {
		t.Errorf("cgroup (-want +got):\n%s", diff)
	}
	want := report.RocksDB{CacheUsage: 1 << 50, OwnCaches: []report.Cache{{Capacity: 1 << 50}}}
	if diff := cmp.Diff(want, got.RocksDB); diff != "" {
		t.Errorf("RocksDB (-want +got):\n%s", diff)
	}
	checkBounds(t, got)
}

func TestDecodeReplacesUnknownWords(t *testing.T) {
	got := decoded(t, func(r *report.Report) {
		r.Bounded, r.Plan.Source = "Certainly", "Somewhere"
		r.Clients[0].Settings[0].By = "Nobody"
		r.Clients[0].Threads[0].Tasks[0].Role = "Idle"
		r.Clients[0].Threads[0].Tasks[2].Role = "standby" // Words are case-sensitive.
	})
	if got.Bounded != report.BoundedOff || got.Plan.Source != report.PlanBootstrap || got.Clients[0].Settings[0].By != report.SetByApp {
		t.Errorf("bounded is %s, the plan from %s, the setting by %s", got.Bounded, got.Plan.Source, got.Clients[0].Settings[0].By)
	}
	for _, task := range got.Clients[0].Threads[0].Tasks {
		if task.Role != report.RoleActive {
			t.Errorf("task %s is %s, should be active", task.ID, task.Role)
		}
	}
}

func TestDecodeRemovesMalformedAndDuplicateTasks(t *testing.T) {
	task := func(id string, role report.TaskRole) report.Task {
		return report.Task{ID: id, Role: role}
	}
	got := decoded(t, func(r *report.Report) {
		r.Clients[0].Threads = []report.Thread{
			{Name: "a", Tasks: []report.Task{
				task("0_1", report.RoleStandby), task("0_2", report.RoleStandby), task("0_2", report.RoleStandby),
				task("", report.RoleActive), task("0", report.RoleActive), task("0_", report.RoleActive), task("_1", report.RoleActive),
				task("0_-1", report.RoleActive), task("-1_0", report.RoleActive), task("0_01", report.RoleActive),
				task("0_1000000000000", report.RoleActive), task("0_100000", report.RoleActive), task("x_1", report.RoleActive),
				task("a\n__0_1", report.RoleActive), task(strings.Repeat("a", 300)+"__0_1", report.RoleActive),
			}},
			{Name: "b", Tasks: []report.Task{task("0_1", report.RoleActive), task("näme__0_1", report.RoleActive)}},
		}
	})
	want := []report.Thread{
		{Name: "a", Tasks: []report.Task{task("0_2", report.RoleStandby)}},
		{Name: "b", Tasks: []report.Task{task("0_1", report.RoleActive), task("näme__0_1", report.RoleActive)}},
	}
	if diff := cmp.Diff(want, got.Clients[0].Threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	if got.Findings[0].Reason != report.ReasonTaskMalformed || !strings.HasPrefix(got.Findings[0].Message, "12 tasks") {
		t.Errorf("the first finding is %+v, should have the number of tasks", got.Findings[0])
	}
}

func TestDecodeAppliesTheAllowLists(t *testing.T) {
	setting := func(name string) report.Setting {
		return report.Setting{Name: name, Value: "v\u202e\u0007", By: report.SetByApp}
	}
	got := decoded(t, func(r *report.Report) {
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

// TestSettingsMatchTheAgent compares the allow-list with that of the agent's source.
func TestSettingsMatchTheAgent(t *testing.T) {
	source, err := os.ReadFile("../src/main/java/dev/streamweir/agent/report/Settings.java")
	if err != nil {
		t.Fatal(err)
	}
	reported := map[string]bool{}
	prefixes := map[string]bool{}
	for _, literal := range regexp.MustCompile(`"([a-z0-9. ]+)"`).FindAllSubmatch(source, -1) {
		for word := range strings.FieldsSeq(string(literal[1])) {
			switch {
			case strings.HasSuffix(word, "."):
				prefixes[word] = true
			case strings.Contains(word, ".") && !strings.HasPrefix(word, "streamweir."): // Internal settings of the agent are not reported.
				reported[word] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(reported)), report.Settings); diff != "" {
		t.Errorf("(-agent +operator):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(prefixes)), slices.Sorted(slices.Values(report.SettingPrefixes))); diff != "" {
		t.Errorf("prefixes (-agent +operator):\n%s", diff)
	}
}

func TestDecodeCutsLists(t *testing.T) {
	cases := map[string]struct {
		change func(*report.Report)
		length func(*report.Report) int
		want   int
	}{
		"clients": {
			func(r *report.Report) { r.Clients = make([]report.Client, 100) },
			func(r *report.Report) int { return len(r.Clients) }, 64,
		},
		"threads of all clients": {
			func(r *report.Report) {
				r.Clients = make([]report.Client, 2)
				for i := range r.Clients {
					r.Clients[i].Threads = make([]report.Thread, 700)
				}
			},
			func(r *report.Report) int { return len(r.Clients[0].Threads) + len(r.Clients[1].Threads) }, 1000,
		},
		"tasks": {
			func(r *report.Report) {
				tasks := make([]report.Task, 5500)
				for i := range tasks {
					tasks[i].ID = fmt.Sprintf("0_%d", i)
				}
				r.Clients = []report.Client{
					{ApplicationID: "a", Threads: []report.Thread{{Tasks: tasks}}},
					{ApplicationID: "b", Threads: []report.Thread{{Tasks: tasks}}},
				}
			},
			func(r *report.Report) int {
				return len(r.Clients[0].Threads[0].Tasks) + len(r.Clients[1].Threads[0].Tasks)
			}, 10_000,
		},
		"stores": {
			func(r *report.Report) {
				for i := range 11_000 {
					r.Clients[0].GlobalStores = append(r.Clients[0].GlobalStores, report.Store{Name: fmt.Sprint(i)})
				}
			},
			func(r *report.Report) int { return len(r.Clients[0].GlobalStores) }, 10_000 - 9, // Three tasks with three stores each precede them.
		},
		"tasks of all subtopologies": {
			func(r *report.Report) {
				for i := range 20 {
					task := report.Task{ID: fmt.Sprintf("%d_99999", i+1)}
					r.Clients[0].Threads[0].Tasks = append(r.Clients[0].Threads[0].Tasks, task)
				}
			},
			func(r *report.Report) int { return len(r.Clients[0].Threads[0].Tasks) }, 3 + 9,
		},
		"findings": {
			func(r *report.Report) {
				for i := range 60 {
					r.Findings = append(r.Findings, report.Finding{Reason: "R", Message: fmt.Sprint(i)})
				}
				r.JVM.Flags = slices.Repeat([]string{"-Xmx1g"}, 300)
			},
			func(r *report.Report) int { return len(r.Findings) }, 50,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := reporttest.New(podUID, 1, 2, 1)
			c.change(r)
			data := compact(t, r)
			got, err := report.Decode(data, podUID)
			if err != nil {
				t.Fatal(err)
			}
			if n := c.length(got); n != c.want {
				t.Errorf("%d remain, want %d", n, c.want)
			}
			if got.Findings[0].Reason != report.ReasonCut {
				t.Errorf("the first finding is %+v, want reason ReportCut", got.Findings[0])
			}
			checkBounds(t, got)
		})
	}
}

func TestDecodeCutsTextsBetweenCharacters(t *testing.T) {
	got := decoded(t, func(r *report.Report) {
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

// compact encodes a report without empty fields, so that more fits into it.
func compact(t testing.TB, r *report.Report) []byte {
	t.Helper()
	var tree any
	if err := json.Unmarshal(reporttest.Encode(t, r), &tree); err != nil {
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

// checkBounds checks that all amounts of a report are within bounds and all texts are printable.
func checkBounds(t *testing.T, r *report.Report) {
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
			if v.Int() < 0 || (v.Int() > 1<<50 && path != ".Seq") {
				t.Errorf("%s is %d", path, v.Int())
			}
		case reflect.String:
			topology := strings.HasSuffix(path, ".Topology")
			bad := func(r rune) bool { return !unicode.IsPrint(r) && (!topology || r != '\n') }
			if s := v.String(); path != ".PodUID" && (!utf8.ValidString(s) || strings.IndexFunc(s, bad) >= 0 || len(s) > 128<<10) {
				t.Errorf("%s is %q", path, s)
			}
		case reflect.Bool:
		default:
			t.Errorf("%s has the unchecked kind %s", path, v.Kind())
		}
	}
	walk("", reflect.ValueOf(*r))
}

func FuzzDecode(f *testing.F) {
	f.Add(reporttest.Encode(f, reporttest.New(podUID, 1, 2, 1)))
	f.Add([]byte(`{"schema":1,"podUID":"` + podUID + `","seq":-1,"clients":[{"threads":[{"tasks":[{"id":"0_99999"},{"id":"0_1"},{"id":"0_1"}]}]}]}`))
	f.Add([]byte(`{"schema":1,"podUID":"` + podUID + `","findings":[{"reason":"ReportCut"},{"reason":"x\u0000"},{"reason":"ReportCut"}]}`))
	f.Add([]byte(`{"schema":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := report.Decode(data, podUID)
		if err != nil {
			return
		}
		checkBounds(t, got)
		var again bytes.Buffer
		encoder := json.NewEncoder(&again)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(got); err != nil {
			t.Fatal(err)
		}
		if again.Len() > report.MaxBytes {
			return // Empty fields and escapes made it too long.
		}
		reread, err := report.Decode(again.Bytes(), podUID)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := reporttest.Encode(t, got), reporttest.Encode(t, reread); !bytes.Equal(a, b) {
			t.Errorf("decoding the decoded report changes it:\n%s", cmp.Diff(got, reread))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := reporttest.Encode(b, reporttest.New(podUID, 1, 150, 50))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := report.Decode(data, podUID); err != nil {
			b.Fatal(err)
		}
	}
}
