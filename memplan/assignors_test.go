// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decisions are those of one of Kafka's assignors in many histories of groups. test/calibration/assignors/update.sh writes them.
type decisions struct {
	Kafka, Assignor, Protocol string
	Histories                 []history
}

// history is the life of one group.
type history struct {
	Name              string
	Standbys, WarmUps int
	// Persistent reports whether state directories survive their pods.
	Persistent bool
	// Threads of the pods a, b, c and so on.
	Threads       []int
	Subtopologies []struct {
		Tasks    int
		Stateful bool
	}
	Steps []step
}

// step is the group after an event.
type step struct {
	Event string
	// Pods that run, a letter each; Restarted are those that stopped and came back in this event.
	Pods, Restarted string
	// Tasks has the pods of each task: the active one, then standbys and warm-ups. Subtopologies are separated by "|".
	Tasks string
}

// readDecisions reads the decisions of the assignors, by file name.
func readDecisions(t *testing.T) map[string]decisions {
	t.Helper()
	all := map[string]decisions{}
	for _, name := range []string{"classic-high-availability", "classic-sticky", "streams-sticky"} {
		text, err := os.ReadFile(filepath.Join("testdata", "assignors", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var d decisions
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = d
	}
	return all
}

// protocol is the group protocol of the assignor.
func (d decisions) protocol() Protocol {
	if d.Protocol == "streams" {
		return Streams
	}
	return Classic
}

// workload is the application of a history.
func (h history) workload(protocol Protocol) Workload {
	w := release(4, 4, 0)
	w.Protocol = Known(protocol, App)
	w.Standbys, w.WarmUps = Known(h.Standbys, App), Known(h.WarmUps, App)
	w.StateDir.Persistent = h.Persistent
	for i, s := range h.Subtopologies {
		added := Subtopology{ID: strconv.Itoa(i), Tasks: s.Tasks, InputPartitions: 1}
		if s.Stateful {
			added.Stores = []Store{{Kind: KeyValue}}
		}
		w.Subtopologies = append(w.Subtopologies, added)
	}
	return w
}

// assignment is the group after a step. Waiting pods have joined since, and have no tasks yet.
func (h history) assignment(s step, waiting string) Assignment {
	tasks := map[rune]*Tasks{}
	for _, name := range s.Pods + waiting {
		tasks[name] = &Tasks{}
	}
	s.each(func(task Task, holders string) {
		for i, name := range holders {
			if i == 0 {
				tasks[name].Active = append(tasks[name].Active, task)
			} else {
				tasks[name].Standby = append(tasks[name].Standby, task)
			}
		}
	})
	a := Assignment{}
	for _, name := range s.Pods + waiting {
		a.Pods = append(a.Pods, Pod{Name: string(name), Threads: h.Threads[name-'a'], Current: *tasks[name]})
	}
	return a
}

// each visits all tasks with the pods that have them.
func (s step) each(visit func(task Task, holders string)) {
	for subtopology, tasks := range strings.Split(s.Tasks, "|") {
		for partition, holders := range strings.Fields(tasks) {
			visit(Task{Subtopology: strconv.Itoa(subtopology), Partition: int32(partition)}, holders)
		}
	}
}

// without are the letters of one text that another lacks.
func without(letters, lacked string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(lacked, r) {
			return -1
		}
		return r
	}, letters)
}

// TestLoadsAreNeverBelowTheDecisionsOfAssignors takes each assignment of each history as the one that is known, and compares the bounds with
// the next decision, and with those after further failures that follow at once. After any other decision the group would be looked at anew.
func TestLoadsAreNeverBelowTheDecisionsOfAssignors(t *testing.T) {
	for name, d := range readDecisions(t) {
		t.Run(name, func(t *testing.T) {
			now, later := &margins{}, &margins{}
			for _, h := range d.Histories {
				for i := range len(h.Steps) - 1 {
					h.judge(t, d.protocol(), i, now, later)
				}
			}
			t.Logf("bound / most that the assignor gave to any pod, without a failure:   %s", now)
			t.Logf("bound / most that the assignor gave to any pod, after 1 and more: %s", later)
		})
	}
}

// judge compares the bounds of one assignment with the later assignments.
func (h history) judge(t *testing.T, protocol Protocol, known int, now, later *margins) {
	t.Helper()
	w, before, failures := h.workload(protocol), h.Steps[known].Pods, 0
	a := h.assignment(h.Steps[known], without(h.Steps[known+1].Pods, before))
	for n := known + 1; n < len(h.Steps); n++ {
		s := h.Steps[n]
		if n > known+1 && (failures == 0 || !strings.HasPrefix(s.Event, "lose")) {
			return
		}
		failures += len(without(before, s.Pods)) + len(s.Restarted)
		before = s.Pods
		bounds, given := LoadsAfter(w, a, failures), h.assignment(s, "")
		for i, pod := range a.Pods {
			if !strings.Contains(s.Pods, pod.Name) {
				continue
			}
			if got := observed(w, given, pod.Name); !within(got, bounds[i]) {
				t.Errorf("history %s: step %d (%s): pod %s has %+v, the bound from step %d with %d failures is %+v",
					h.Name, n, s.Event, pod.Name, got, known, failures, bounds[i])
			}
		}
		if failures == 0 {
			now.add(w, bounds, given)
		} else {
			later.add(w, bounds, given)
		}
	}
}

// within reports whether a load is within a bound.
func within(load, bound Load) bool {
	ok := load.Active <= bound.Active && load.Total <= bound.Total
	for i := range load.Caps {
		ok = ok && load.Caps[i].Active <= bound.Caps[i].Active && load.Caps[i].Total <= bound.Caps[i].Total
	}
	return ok
}

// margins are how far above the assignor's decisions the bounds are: the largest bound of the group by the largest load.
type margins struct{ active, total []float64 }

func (m *margins) add(w Workload, bounds []Load, given Assignment) {
	bound, got := Load{}, Load{}
	for _, b := range bounds {
		bound.Active, bound.Total = max(bound.Active, b.Active), max(bound.Total, b.Total)
	}
	for _, pod := range given.Pods {
		load := observed(w, given, pod.Name)
		got.Active, got.Total = max(got.Active, load.Active), max(got.Total, load.Total)
	}
	m.active = append(m.active, float64(bound.Active)/float64(max(got.Active, 1)))
	m.total = append(m.total, float64(bound.Total)/float64(max(got.Total, 1)))
}

// String is the distribution.
func (m *margins) String() string {
	line := func(ratios []float64) string {
		slices.Sort(ratios)
		text := ""
		for _, percent := range []int{50, 75, 90, 99, 100} {
			text += " " + strconv.FormatFloat(ratios[(len(ratios)-1)*percent/100], 'f', 2, 64)
		}
		return text
	}
	return strconv.Itoa(len(m.active)) + " decisions; percentiles 50, 75, 90, 99, 100: active" + line(m.active) + "; all roles" + line(m.total)
}

func TestAColdStartIsNeverBelowTheDecisionsOfAssignors(t *testing.T) {
	for name, d := range readDecisions(t) {
		for _, h := range d.Histories {
			w := h.workload(d.protocol())
			for n, s := range h.Steps {
				a := h.assignment(s, "")
				for _, pod := range a.Pods {
					if got, bound := observed(w, a, pod.Name), ColdStart(w, pod.Threads); !within(got, bound) {
						t.Errorf("%s, history %s, step %d: pod %s has %+v, a cold start has %+v", name, h.Name, n, pod.Name, got, bound)
					}
				}
			}
		}
	}
}

func TestTheHistoriesCoverTheLifeOfGroups(t *testing.T) {
	histories := 0
	for name, d := range readDecisions(t) {
		histories += len(d.Histories)
		seen := map[string]int{}
		for _, h := range d.Histories {
			h.count(seen)
		}
		want := []string{
			"start", "lose", "restart", "replace", "0 standbys", "1 standbys", "2 standbys", "uneven threads", "several subtopologies",
			"stateless tasks", "persistent directories", "two failed at once", "all on the first pod", "the last pod",
		}
		if d.Assignor == "HighAvailabilityTaskAssignor" {
			want = append(want, "probe", "warm-ups")
		}
		for _, what := range want {
			if seen[what] < 5 {
				t.Errorf("%s: %q in %d histories, want 5 or more", name, what, seen[what])
			}
		}
	}
	if histories < 300 {
		t.Errorf("%d histories, want 300", histories)
	}
}

// count adds what happens in a history.
func (h history) count(seen map[string]int) {
	in := map[string]bool{
		strconv.Itoa(h.Standbys) + " standbys": true,
		"uneven threads":                       len(slices.Compact(slices.Sorted(slices.Values(h.Threads)))) > 1,
		"several subtopologies":                len(h.Subtopologies) > 1,
		"persistent directories":               h.Persistent,
	}
	for _, s := range h.Subtopologies {
		in["stateless tasks"] = in["stateless tasks"] || !s.Stateful
	}
	before := ""
	for i, s := range h.Steps {
		kind, _, _ := strings.Cut(strings.TrimSuffix(s.Event, ", lags unknown"), " ")
		in[kind] = true
		in["two failed at once"] = in["two failed at once"] || len(without(before, s.Pods)) > 1
		in["all on the first pod"] = in["all on the first pod"] || i == 0 && len(s.Pods) == 1
		in["the last pod"] = in["the last pod"] || i > 0 && len(s.Pods) == 1
		s.each(func(_ Task, holders string) { in["warm-ups"] = in["warm-ups"] || len(holders) > 1+h.Standbys })
		before = s.Pods
	}
	for what, is := range in {
		if is {
			seen[what]++
		}
	}
}
