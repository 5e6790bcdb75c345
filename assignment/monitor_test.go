// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/assignment"
)

// fakeKafka is a cluster with groups set by the test. Its times are those of the bubble of the test.
type fakeKafka struct {
	mu      sync.Mutex
	start   time.Time
	groups  map[string]assignment.Result
	failure error
	slow    time.Duration
	polls   []time.Duration // Since the start.
	batches []string
	closed  int
}

func newFakeKafka(groups ...string) *fakeKafka {
	k := &fakeKafka{start: time.Now(), groups: map[string]assignment.Result{}}
	for _, g := range groups {
		k.groups[g] = assignment.Result{Group: group(g, "Stable", 0)}
	}
	return k
}

// group returns a group with one process that runs tasks 0 to n of subtopology 0.
func group(id, state string, n int32) assignment.Group {
	g := assignment.Group{ApplicationID: id, State: state, Stable: state == "Stable", Assigned: state == "Stable"}
	if g.Assigned {
		g.Processes = []assignment.Process{{ID: "p", Threads: 1}}
		for p := range n + 1 {
			g.Processes[0].Tasks.Active = append(g.Processes[0].Tasks.Active, assignment.Task{Subtopology: "0", Partition: p})
		}
	}
	return g
}

func (k *fakeKafka) Describe(ctx context.Context, groups []string) map[string]assignment.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.polls = append(k.polls, time.Since(k.start))
	k.batches = append(k.batches, strings.Join(groups, ","))
	results := map[string]assignment.Result{}
	failure := k.failure
	if k.slow > 0 {
		timer := time.NewTimer(k.slow)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			failure = &assignment.Error{Class: assignment.ClassTimeout, Err: ctx.Err()}
		case <-timer.C:
		}
	}
	for _, g := range groups {
		results[g] = k.groups[g]
		if failure != nil {
			results[g] = assignment.Result{Err: failure}
		}
	}
	return results
}

func (k *fakeKafka) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed++
}

// set replaces a group.
func (k *fakeKafka) set(g assignment.Group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups[g.ApplicationID] = assignment.Result{Group: g}
}

// fail makes all descriptions fail; nil ends that.
func (k *fakeKafka) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failure = err
}

// pollsBetween returns the number of polls in a period since the start.
func (k *fakeKafka) pollsBetween(from, to time.Duration) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	var n int
	for _, at := range k.polls {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// fixture is a monitor with fake clusters.
type fixture struct {
	*testing.T
	*assignment.Monitor

	fakes map[string]*fakeKafka
}

// monitored runs a test in a bubble with a monitor of clusters by name.
func monitored(t *testing.T, clusters func() map[string]*fakeKafka, test func(fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fakes := clusters()
		var configs []assignment.ClusterConfig
		for _, name := range slices.Sorted(maps.Keys(fakes)) {
			configs = append(configs, assignment.ClusterConfig{Name: name})
		}
		monitor := assignment.NewMonitor(assignment.MonitorOptions{Clusters: configs,
			Connect: func(c assignment.ClusterConfig) (assignment.Describer, error) {
				if fake := fakes[c.Name]; fake != nil {
					return fake, nil
				}
				return nil, errors.New("unknown fake")
			}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- monitor.Start(ctx) }()
		test(fixture{t, monitor, fakes})
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
}

// one returns a cluster prod with groups.
func one(groups ...string) func() map[string]*fakeKafka {
	return func() map[string]*fakeKafka { return map[string]*fakeKafka{"prod": newFakeKafka(groups...)} }
}

// in lets a time of the bubble pass.
func in(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// received returns the keys that wait to be received, sorted.
func received(m *assignment.Monitor) []string {
	var keys []string
	for {
		synctest.Wait()
		select {
		case key := <-m.Changes():
			keys = append(keys, key)
		default:
			slices.Sort(keys)
			return keys
		}
	}
}

var ordersRef = assignment.Ref{Cluster: "prod", ApplicationID: "orders"}

func TestMonitorPollsAtOnceAndThenSlowly(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		f.Track("shop/orders", ordersRef)
		in(time.Second)
		if n := f.fakes["prod"].pollsBetween(0, time.Second); n != 1 {
			f.Errorf("%d polls of a new group in the first second, want 1", n)
		}
		in(10 * time.Minute)
		if n := f.fakes["prod"].pollsBetween(time.Second, time.Hour); n < 18 || n > 20 {
			f.Errorf("%d polls in ten minutes with intervals of 30 to 33 s, want 18 to 20", n)
		}
	})
}

func TestMonitorPollsQuicklyForAMinuteWhenHurried(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		f.Track("shop/orders", ordersRef)
		in(10 * time.Second)
		for range 20 { // Events come in bursts.
			f.Hurry("shop/orders")
			in(50 * time.Millisecond)
		}
		in(5 * time.Minute)
		k := f.fakes["prod"]
		if n := k.pollsBetween(10*time.Second, 12*time.Second); n != 1 {
			f.Errorf("%d polls after a burst of events, want 1", n)
		}
		if n := k.pollsBetween(10*time.Second, 71*time.Second); n < 30 || n > 31 {
			f.Errorf("%d polls in the minute after an event, want one every 2 s", n)
		}
		if n := k.pollsBetween(75*time.Second, 5*time.Minute); n > 8 {
			f.Errorf("%d polls after the minute, polling should be slow again", n)
		}
	})
}

// TestMonitorPollsLargeGroupsLessOften: a rollout of 500 members does not request the metadata of all of them every 2 s.
func TestMonitorPollsLargeGroupsLessOften(t *testing.T) {
	for threads, want := range map[int]int{1: 30, 50: 30, 51: 15, 500: 3, 5000: 2} {
		monitored(t, one("orders"), func(f fixture) {
			large := group("orders", "Stable", 0)
			large.Processes = []assignment.Process{{ID: "a", Threads: threads}}
			f.fakes["prod"].set(large)
			f.Track("shop/orders", ordersRef)
			in(10 * time.Second)
			for range 60 { // a rollout causes events all the time
				f.Hurry("shop/orders")
				in(time.Second)
			}
			if n := f.fakes["prod"].pollsBetween(10*time.Second, 70*time.Second); n < want-1 || n > want+1 {
				f.Errorf("%d polls of a group with %d members in a minute, want about %d", n, threads, want)
			}
		})
	}
}

func TestMonitorDescribesAllGroupsOfAClusterInOneBatch(t *testing.T) {
	monitored(t, one("a", "b", "c"), func(f fixture) {
		synctest.Wait()
		for _, id := range []string{"c", "a", "b"} {
			f.Track("shop/"+id, assignment.Ref{Cluster: "prod", ApplicationID: id})
		}
		in(time.Second)
		k := f.fakes["prod"]
		if got := strings.Join(k.batches, ";"); strings.Count(got, ";") > 1 || (!strings.Contains(got, "a,") && !strings.Contains(got, ",b")) {
			f.Errorf("the batches are %q, want several groups in one", got)
		}
	})
}

func TestMonitorDeliversChangesOnly(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		f.Track("shop/orders", ordersRef)
		f.Track("shop/twin", ordersRef)
		k := f.fakes["prod"]
		steps := []struct {
			what string
			do   func()
			want []string
		}{
			{"the first description", func() {}, []string{"shop/orders", "shop/twin"}},
			{"no change", func() {}, nil},
			{"another assignment", func() { k.set(group("orders", "Stable", 1)) }, []string{"shop/orders", "shop/twin"}},
			{"another state", func() { k.set(group("orders", "PreparingRebalance", 0)) }, []string{"shop/orders", "shop/twin"}},
			{"stable again, as before", func() { k.set(group("orders", "Stable", 1)) }, []string{"shop/orders", "shop/twin"}},
			{"an error", func() { k.fail(&assignment.Error{Class: assignment.ClassTimeout}) }, []string{"shop/orders", "shop/twin"}},
			{"the same error", func() {}, nil},
			{"an error of another class", func() { k.fail(&assignment.Error{Class: assignment.ClassUnreachable}) },
				[]string{"shop/orders", "shop/twin"}},
			{"no error", func() { k.fail(nil) }, []string{"shop/orders", "shop/twin"}},
			{"one key fewer", func() { f.Forget("shop/twin"); k.set(group("orders", "Stable", 2)) }, []string{"shop/orders"}},
		}
		for _, s := range steps {
			s.do()
			in(5 * time.Minute)
			if diff := cmp.Diff(s.want, received(f.Monitor)); diff != "" {
				f.Errorf("%s: keys (-want +got):\n%s", s.what, diff)
			}
		}
	})
}

func TestMonitorKeepsTheLastAssignment(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		f.Track("shop/orders", ordersRef)
		if got := f.Latest("shop/orders"); !got.At.IsZero() || got.Group != nil || got.Err != nil {
			f.Errorf("before the first poll the observation is %+v, want zero", got)
		}
		in(time.Second)
		first := f.Latest("shop/orders")
		if first.Group == nil || first.State != "Stable" || first.Err != nil || !first.GroupAt.Equal(first.At) {
			f.Fatalf("after the first poll the observation is %+v", first)
		}
		k := f.fakes["prod"]
		k.set(group("orders", "PreparingRebalance", 0))
		in(time.Minute)
		if got := f.Latest("shop/orders"); got.State != "PreparingRebalance" || got.Err != nil || got.Group != first.Group ||
			!got.At.After(first.At) {
			f.Errorf("during a rebalance the observation is %+v, want the last group", got)
		}
		k.fail(&assignment.Error{Class: assignment.ClassTimeout})
		in(time.Minute)
		got := f.Latest("shop/orders")
		if !errors.Is(got.Err, assignment.ErrTimeout) || got.Group != first.Group || !got.GroupAt.Equal(first.GroupAt) ||
			got.State != "PreparingRebalance" {
			f.Errorf("with an error the observation is %+v, want the last group", got)
		}
	})
}

func TestMonitorBacksOffFromAFailingCluster(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		k := f.fakes["prod"]
		k.fail(&assignment.Error{Class: assignment.ClassUnreachable})
		f.Track("shop/orders", ordersRef)
		for range 600 { // Events of pods must not shorten the pauses.
			f.Hurry("shop/orders")
			in(time.Second)
		}
		want := time.Duration(0)
		for i, pause := range []int{2, 4, 8, 16, 32, 64, 120} {
			want += time.Duration(pause) * time.Second
			if got := k.polls[i+1]; got < want || got > want+want/10+time.Second {
				f.Errorf("poll %d came after %v, want %v or up to a tenth more", i+1, got, want)
			}
		}
		k.fail(nil)
		in(3 * time.Minute)
		if got := f.Latest("shop/orders"); got.Err != nil || got.Group == nil {
			f.Errorf("after a response of the cluster the observation is %+v", got)
		}
		recovered := time.Since(k.start)
		in(2 * time.Minute)
		if n := k.pollsBetween(recovered, recovered+2*time.Minute); n < 3 {
			f.Errorf("%d polls in the two minutes after the recovery, polling should be as before", n)
		}
	})
}

func TestMonitorDoesNotBackOffForOneGroupsError(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		k := f.fakes["prod"]
		k.groups["missing"] = assignment.Result{Err: &assignment.Error{Class: assignment.ClassUnknownGroup, Group: "missing"}}
		f.Track("shop/orders", ordersRef)
		f.Track("shop/missing", assignment.Ref{Cluster: "prod", ApplicationID: "missing"})
		in(5 * time.Minute)
		if n := strings.Count(strings.Join(k.batches, ";"), "orders"); n < 9 {
			f.Errorf("only %d polls of the other group in five minutes", n)
		}
	})
}

func TestASlowClusterDoesNotDelayOthers(t *testing.T) {
	clusters := func() map[string]*fakeKafka {
		slow := newFakeKafka("stuck")
		slow.slow = time.Hour
		return map[string]*fakeKafka{"prod": newFakeKafka("orders"), "slow": slow}
	}
	monitored(t, clusters, func(f fixture) {
		stuck := assignment.Ref{Cluster: "slow", ApplicationID: "stuck"}
		f.Track("shop/stuck", stuck)
		f.Track("shop/orders", ordersRef)
		in(time.Second)
		if got := f.Latest("shop/orders"); got.Group == nil {
			f.Errorf("the group of the fast cluster is %+v", got)
		}
		in(10 * time.Second)
		if got := f.Latest("shop/stuck"); assignment.ClassOf(got.Err) != assignment.ClassTimeout {
			f.Errorf("after the timeout the group of the slow cluster is %+v", got)
		}
	})
}

func TestMonitorDropsForgottenGroups(t *testing.T) {
	monitored(t, one("orders", "payments"), func(f fixture) {
		k := f.fakes["prod"]
		payments := assignment.Ref{Cluster: "prod", ApplicationID: "payments"}
		f.Track("shop/app", ordersRef)
		in(time.Second)
		f.Track("shop/app", payments) // Another application: the first has no key any more.
		in(time.Second)
		f.Track("shop/again", ordersRef)
		if got := f.Latest("shop/again"); got.Group != nil {
			f.Errorf("the observation of a group without keys was kept: %+v", got)
		}
		f.Forget("shop/again")
		if got := f.Latest("shop/app"); got.Group == nil {
			f.Errorf("the other application is %+v", got)
		}
		f.Forget("shop/app")
		f.Forget("shop/never-there")
		f.Hurry("shop/app")
		in(time.Second)
		polls := len(k.polls)
		in(10 * time.Minute)
		if len(k.polls) != polls {
			f.Errorf("%d polls of a cluster without groups", len(k.polls)-polls)
		}
		f.Track("shop/app", ordersRef)
		in(time.Second)
		if got := f.Latest("shop/app"); got.Group == nil || k.closed == 0 {
			f.Errorf("a group that is tracked again is %+v, %d clients were closed", got, k.closed)
		}
	})
}

func TestMonitorReportsUnknownClusters(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		if c, ok := f.Cluster("prod"); !ok || c.Name != "prod" {
			f.Errorf("the cluster prod is %+v (%v)", c, ok)
		}
		if _, ok := f.Cluster("test"); ok {
			f.Error("the cluster test exists")
		}
		unknown := assignment.Ref{Cluster: "test", ApplicationID: "orders"}
		f.Track("shop/orders", unknown)
		f.Hurry("shop/orders")
		if got := f.Latest("shop/orders"); !errors.Is(got.Err, assignment.ErrUnknownCluster) ||
			assignment.ClassOf(got.Err) != assignment.ClassUnknownCluster {
			f.Errorf("a group of an unknown cluster is %+v", got)
		}
		f.Forget("shop/orders")
	})
}

func TestMonitorTracksClustersByTheirServers(t *testing.T) {
	clusters := func() map[string]*fakeKafka { return map[string]*fakeKafka{"a:9092,b:9092": newFakeKafka("orders")} }
	monitored(t, clusters, func(f fixture) {
		ref := assignment.Ref{BootstrapServers: "a:9092,b:9092", ApplicationID: "orders"}
		f.Track("shop/orders", ref)
		other := assignment.Ref{BootstrapServers: "c:9092", ApplicationID: "orders"}
		f.Track("shop/other", other)
		in(time.Second)
		if got := f.Latest("shop/orders"); got.Group == nil || ref.String() != "a:9092,b:9092/orders" {
			f.Errorf("%s is %+v", ref, got)
		}
		if got := f.Latest("shop/other"); assignment.ClassOf(got.Err) != assignment.ClassUnreachable ||
			!strings.Contains(got.Err.Error(), "unknown fake") {
			f.Errorf("%s is %+v, want the error of connecting", other, got)
		}
	})
}

func TestMonitorMayBeStartedOnce(t *testing.T) {
	monitored(t, one("orders"), func(f fixture) {
		synctest.Wait()
		if err := f.Start(f.Context()); err == nil || !strings.Contains(err.Error(), "was already started") {
			f.Errorf("the second start returned %v", err)
		}
	})
}

func TestMonitorClosesItsClientsAtTheEnd(t *testing.T) {
	var k *fakeKafka
	monitored(t, one("orders"), func(f fixture) {
		k = f.fakes["prod"]
		f.Track("shop/orders", ordersRef)
		in(time.Second)
	})
	if k.closed != 1 {
		t.Errorf("%d clients were closed, want 1", k.closed)
	}
}

func TestMonitorTracksBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka("orders")
		m := assignment.NewMonitor(assignment.MonitorOptions{Clusters: []assignment.ClusterConfig{{Name: "prod"}},
			Connect: func(assignment.ClusterConfig) (assignment.Describer, error) { return k, nil }})
		m.Track("shop/orders", ordersRef)
		in(time.Hour)
		if len(k.polls) > 0 {
			t.Errorf("before the start there were %d polls", len(k.polls))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Start(ctx) }()
		in(time.Second)
		if got := m.Latest("shop/orders"); got.Group == nil {
			t.Errorf("after the start the group is %+v", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestMonitorFollowsChangedClusters: a changed cluster is connected again, keeps its observations, and does not affect others.
func TestMonitorFollowsChangedClusters(t *testing.T) {
	clusters := func() map[string]*fakeKafka {
		return map[string]*fakeKafka{"prod": newFakeKafka("orders"), "test": newFakeKafka("orders")}
	}
	monitored(t, clusters, func(f fixture) {
		f.Track("shop/orders", ordersRef)
		f.Track("shop/test", assignment.Ref{Cluster: "test", ApplicationID: "orders"})
		in(time.Second)
		received(f.Monitor)
		known := f.Latest("shop/orders").Group
		prod, test := f.fakes["prod"], f.fakes["test"]
		delete(f.fakes, "prod") // the new address is wrong

		f.SetClusters([]assignment.ClusterConfig{{Name: "prod", BootstrapServers: []string{"b:1"}}, {Name: "test"}})
		in(time.Second)
		if got := f.Latest("shop/orders"); got.Group != known || got.Err == nil {
			t.Errorf("with a wrong address the observation is %+v, want the last group and an error", got)
		}
		if prod.closed != 1 || test.closed != 0 {
			t.Errorf("%d clients of the changed cluster and %d of the other were closed, want 1 and 0", prod.closed, test.closed)
		}
		if got := slices.Compact(received(f.Monitor)); !slices.Equal(got, []string{"shop/orders"}) {
			t.Errorf("changed keys: %v", got)
		}

		f.fakes["prod"] = newFakeKafka("orders")
		f.SetClusters([]assignment.ClusterConfig{{Name: "prod", BootstrapServers: []string{"c:1"}}, {Name: "test"}})
		in(time.Second)
		if got := f.Latest("shop/orders"); got.Group == nil || got.Err != nil {
			t.Errorf("with the right address the observation is %+v", got)
		}
		f.SetClusters(nil)
		in(time.Second)
		if _, found := f.Cluster("prod"); found || assignment.ClassOf(f.Latest("shop/orders").Err) != assignment.ClassUnknownCluster {
			t.Errorf("a removed cluster: %+v", f.Latest("shop/orders"))
		}
		f.SetClusters([]assignment.ClusterConfig{{Name: "prod"}})
		in(time.Second)
		if got := f.Latest("shop/orders"); got.Group == nil {
			t.Errorf("a cluster that was added again: %+v", got)
		}
	})
}

func TestMonitorFollowsALossInARealCluster(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Classic))
	intervals := assignment.DefaultIntervals()
	intervals.Slow, intervals.Fast = 20*time.Millisecond, 5*time.Millisecond
	m := assignment.NewMonitor(assignment.MonitorOptions{Intervals: intervals,
		Clusters: []assignment.ClusterConfig{{Name: "prod", BootstrapServers: kafka.ListenAddrs()}}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Start(ctx) }()
	m.Track("shop/orders", ordersRef)
	until := func(what string, ok func(assignment.Observation) bool) {
		t.Helper()
		for deadline := time.After(20 * time.Second); ; {
			select {
			case <-m.Changes():
			case <-deadline:
				t.Fatalf("%s did not arrive; the latest observation is %+v", what, m.Latest("shop/orders"))
			}
			if ok(m.Latest("shop/orders")) {
				return
			}
		}
	}
	until("the group", func(o assignment.Observation) bool { return o.Group != nil && len(o.Group.Processes) == 3 })
	if err := kafka.Lose("orders", "10.0.0.3"); err != nil {
		t.Fatal(err)
	}
	until("the rebalance", func(o assignment.Observation) bool {
		return o.State == "PreparingRebalance" && len(o.Group.Processes) == 3
	})
	if err := kafka.Settle("orders"); err != nil {
		t.Fatal(err)
	}
	until("the new assignment", func(o assignment.Observation) bool { return o.State == "Stable" && len(o.Group.Processes) == 2 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
