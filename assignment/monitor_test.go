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

// fakeKafka is a cluster that answers what the test says. Its times are those of the test's bubble.
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

// group makes a group with one process that runs tasks 0 to n of subtopology 0.
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

// set changes what a group is.
func (k *fakeKafka) set(g assignment.Group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groups[g.ApplicationID] = assignment.Result{Group: g}
}

// fail makes all describing fail; nil ends that.
func (k *fakeKafka) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failure = err
}

// pollsBetween counts the polls in a time since the start.
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

// world is what a test of the monitor has.
type world struct {
	*testing.T
	*assignment.Monitor

	fakes map[string]*fakeKafka
}

// monitored runs a test in a bubble with a monitor of clusters by name.
func monitored(t *testing.T, clusters func() map[string]*fakeKafka, test func(world)) {
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
				return nil, errors.New("no such fake")
			}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- monitor.Start(ctx) }()
		test(world{t, monitor, fakes})
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the monitor ended with %v", err)
		}
	})
}

// one is a cluster prod with groups.
func one(groups ...string) func() map[string]*fakeKafka {
	return func() map[string]*fakeKafka { return map[string]*fakeKafka{"prod": newFakeKafka(groups...)} }
}

// in lets a time of the bubble pass.
func in(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// received gives the keys that wait in a monitor's changes, sorted.
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
	monitored(t, one("orders"), func(w world) {
		w.Track("shop/orders", ordersRef)
		in(time.Second)
		if n := w.fakes["prod"].pollsBetween(0, time.Second); n != 1 {
			w.Errorf("a group that is new should be polled once at once, was %d times", n)
		}
		in(10 * time.Minute)
		if n := w.fakes["prod"].pollsBetween(time.Second, time.Hour); n < 18 || n > 20 {
			w.Errorf("in ten minutes of 30 to 33 s it should be polled 18 to 20 times, was %d times", n)
		}
	})
}

func TestMonitorPollsQuicklyForAMinuteWhenHurried(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		w.Track("shop/orders", ordersRef)
		in(10 * time.Second)
		for range 20 { // Events come in bursts.
			w.Hurry("shop/orders")
			in(50 * time.Millisecond)
		}
		in(5 * time.Minute)
		k := w.fakes["prod"]
		if n := k.pollsBetween(10*time.Second, 12*time.Second); n != 1 {
			w.Errorf("a burst of events should be one poll at once, was %d", n)
		}
		if n := k.pollsBetween(10*time.Second, 71*time.Second); n < 30 || n > 31 {
			w.Errorf("in the minute there should be a poll every 2 s, were %d", n)
		}
		if n := k.pollsBetween(75*time.Second, 5*time.Minute); n > 8 {
			w.Errorf("after the minute polling should be slow again, were %d polls", n)
		}
	})
}

func TestMonitorDescribesAllGroupsOfAClusterInOneBatch(t *testing.T) {
	monitored(t, one("a", "b", "c"), func(w world) {
		synctest.Wait()
		for _, id := range []string{"c", "a", "b"} {
			w.Track("shop/"+id, assignment.Ref{Cluster: "prod", ApplicationID: id})
		}
		in(time.Second)
		k := w.fakes["prod"]
		if got := strings.Join(k.batches, ";"); strings.Count(got, ";") > 1 || !strings.Contains(got, "a,") && !strings.Contains(got, ",b") {
			w.Errorf("the batches are %q, should have several groups in one", got)
		}
	})
}

func TestMonitorTellsOfChangesOnly(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		w.Track("shop/orders", ordersRef)
		w.Track("shop/twin", ordersRef)
		k := w.fakes["prod"]
		steps := []struct {
			what string
			do   func()
			want []string
		}{
			{"the first description", func() {}, []string{"shop/orders", "shop/twin"}},
			{"nothing new", func() {}, nil},
			{"another assignment", func() { k.set(group("orders", "Stable", 1)) }, []string{"shop/orders", "shop/twin"}},
			{"another state", func() { k.set(group("orders", "PreparingRebalance", 0)) }, []string{"shop/orders", "shop/twin"}},
			{"stable again, as before", func() { k.set(group("orders", "Stable", 1)) }, []string{"shop/orders", "shop/twin"}},
			{"an error", func() { k.fail(&assignment.Error{Class: assignment.ClassTimeout}) }, []string{"shop/orders", "shop/twin"}},
			{"the same error", func() {}, nil},
			{"an error of another class", func() { k.fail(&assignment.Error{Class: assignment.ClassUnreachable}) },
				[]string{"shop/orders", "shop/twin"}},
			{"no error", func() { k.fail(nil) }, []string{"shop/orders", "shop/twin"}},
			{"one key less", func() { w.Forget("shop/twin"); k.set(group("orders", "Stable", 2)) }, []string{"shop/orders"}},
		}
		for _, s := range steps {
			s.do()
			in(5 * time.Minute)
			if diff := cmp.Diff(s.want, received(w.Monitor)); diff != "" {
				w.Errorf("%s: keys (-want +got):\n%s", s.what, diff)
			}
		}
	})
}

func TestMonitorKeepsTheLastAssignment(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		w.Track("shop/orders", ordersRef)
		if got := w.Latest("shop/orders"); !got.At.IsZero() || got.Group != nil || got.Err != nil {
			w.Errorf("before the first poll the observation is %+v, should be zero", got)
		}
		in(time.Second)
		first := w.Latest("shop/orders")
		if first.Group == nil || first.State != "Stable" || first.Err != nil || !first.GroupAt.Equal(first.At) {
			w.Fatalf("after the first poll the observation is %+v", first)
		}
		k := w.fakes["prod"]
		k.set(group("orders", "PreparingRebalance", 0))
		in(time.Minute)
		if got := w.Latest("shop/orders"); got.State != "PreparingRebalance" || got.Err != nil || got.Group != first.Group ||
			!got.At.After(first.At) {
			w.Errorf("while it rebalances the observation is %+v, should have the last group", got)
		}
		k.fail(&assignment.Error{Class: assignment.ClassTimeout})
		in(time.Minute)
		got := w.Latest("shop/orders")
		if !errors.Is(got.Err, assignment.ErrTimeout) || got.Group != first.Group || !got.GroupAt.Equal(first.GroupAt) ||
			got.State != "PreparingRebalance" {
			w.Errorf("with an error the observation is %+v, should have the last group", got)
		}
	})
}

func TestMonitorBacksOffFromAClusterThatFails(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		k := w.fakes["prod"]
		k.fail(&assignment.Error{Class: assignment.ClassUnreachable})
		w.Track("shop/orders", ordersRef)
		for range 600 { // Pods that die must not make it worse.
			w.Hurry("shop/orders")
			in(time.Second)
		}
		want := time.Duration(0)
		for i, pause := range []int{2, 4, 8, 16, 32, 64, 120} {
			want += time.Duration(pause) * time.Second
			if got := k.polls[i+1]; got < want || got > want+want/10+time.Second {
				w.Errorf("poll %d came after %v, should after %v and a tenth at most", i+1, got, want)
			}
		}
		k.fail(nil)
		in(3 * time.Minute)
		if got := w.Latest("shop/orders"); got.Err != nil || got.Group == nil {
			w.Errorf("once the cluster answers the observation is %+v", got)
		}
		recovered := time.Since(k.start)
		in(2 * time.Minute)
		if n := k.pollsBetween(recovered, recovered+2*time.Minute); n < 3 {
			w.Errorf("after that polling should be as before, were %d polls in two minutes", n)
		}
	})
}

func TestMonitorDoesNotBackOffForOneGroupsError(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		k := w.fakes["prod"]
		k.groups["nobody"] = assignment.Result{Err: &assignment.Error{Class: assignment.ClassUnknownGroup, Group: "nobody"}}
		w.Track("shop/orders", ordersRef)
		w.Track("shop/nobody", assignment.Ref{Cluster: "prod", ApplicationID: "nobody"})
		in(5 * time.Minute)
		if n := strings.Count(strings.Join(k.batches, ";"), "orders"); n < 9 {
			w.Errorf("in five minutes the good group was polled %d times only", n)
		}
	})
}

func TestMonitorPollsOtherClustersWhileOneIsSlow(t *testing.T) {
	clusters := func() map[string]*fakeKafka {
		slow := newFakeKafka("stuck")
		slow.slow = time.Hour
		return map[string]*fakeKafka{"prod": newFakeKafka("orders"), "slow": slow}
	}
	monitored(t, clusters, func(w world) {
		stuck := assignment.Ref{Cluster: "slow", ApplicationID: "stuck"}
		w.Track("shop/stuck", stuck)
		w.Track("shop/orders", ordersRef)
		in(time.Second)
		if got := w.Latest("shop/orders"); got.Group == nil {
			w.Errorf("the quick cluster's group is %+v", got)
		}
		in(10 * time.Second)
		if got := w.Latest("shop/stuck"); assignment.ClassOf(got.Err) != assignment.ClassTimeout {
			w.Errorf("after the timeout the slow cluster's group is %+v", got)
		}
	})
}

func TestMonitorForgets(t *testing.T) {
	monitored(t, one("orders", "payments"), func(w world) {
		k := w.fakes["prod"]
		payments := assignment.Ref{Cluster: "prod", ApplicationID: "payments"}
		w.Track("shop/app", ordersRef)
		in(time.Second)
		w.Track("shop/app", payments) // Another application: the first is nobody's any more.
		in(time.Second)
		w.Track("shop/again", ordersRef)
		if got := w.Latest("shop/again"); got.Group != nil {
			w.Errorf("the observation of a group without keys was kept: %+v", got)
		}
		w.Forget("shop/again")
		if got := w.Latest("shop/app"); got.Group == nil {
			w.Errorf("the other application is %+v", got)
		}
		w.Forget("shop/app")
		w.Forget("shop/never-there")
		w.Hurry("shop/app")
		in(time.Second)
		polls := len(k.polls)
		in(10 * time.Minute)
		if len(k.polls) != polls {
			w.Errorf("a cluster without groups was polled %d times more", len(k.polls)-polls)
		}
		w.Track("shop/app", ordersRef)
		in(time.Second)
		if got := w.Latest("shop/app"); got.Group == nil || k.closed == 0 {
			w.Errorf("tracked again it is %+v, with %d clients closed", got, k.closed)
		}
	})
}

func TestMonitorKnowsItsClusters(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		if c, ok := w.Cluster("prod"); !ok || c.Name != "prod" {
			w.Errorf("the cluster prod is %+v (%v)", c, ok)
		}
		if _, ok := w.Cluster("test"); ok {
			w.Error("there should be no cluster test")
		}
		unknown := assignment.Ref{Cluster: "test", ApplicationID: "orders"}
		w.Track("shop/orders", unknown)
		w.Hurry("shop/orders")
		if got := w.Latest("shop/orders"); !errors.Is(got.Err, assignment.ErrUnknownCluster) ||
			assignment.ClassOf(got.Err) != assignment.ClassUnknownCluster {
			w.Errorf("a group of an unknown cluster is %+v", got)
		}
		w.Forget("shop/orders")
	})
}

func TestMonitorTracksAClusterByItsServersAndReportsThatItCannotConnect(t *testing.T) {
	clusters := func() map[string]*fakeKafka { return map[string]*fakeKafka{"a:9092,b:9092": newFakeKafka("orders")} }
	monitored(t, clusters, func(w world) {
		ref := assignment.Ref{BootstrapServers: "a:9092,b:9092", ApplicationID: "orders"}
		w.Track("shop/orders", ref)
		other := assignment.Ref{BootstrapServers: "c:9092", ApplicationID: "orders"}
		w.Track("shop/other", other)
		in(time.Second)
		if got := w.Latest("shop/orders"); got.Group == nil || ref.String() != "a:9092,b:9092/orders" {
			w.Errorf("%s is %+v", ref, got)
		}
		if got := w.Latest("shop/other"); assignment.ClassOf(got.Err) != assignment.ClassUnreachable ||
			!strings.Contains(got.Err.Error(), "no such fake") {
			w.Errorf("%s is %+v, should have the error of connecting", other, got)
		}
	})
}

func TestMonitorStartsOnce(t *testing.T) {
	monitored(t, one("orders"), func(w world) {
		synctest.Wait()
		if err := w.Start(w.Context()); err == nil || !strings.Contains(err.Error(), "was already started") {
			w.Errorf("a second start gave %v", err)
		}
	})
}

func TestMonitorClosesItsClientsInTheEnd(t *testing.T) {
	var k *fakeKafka
	monitored(t, one("orders"), func(w world) {
		k = w.fakes["prod"]
		w.Track("shop/orders", ordersRef)
		in(time.Second)
	})
	if k.closed != 1 {
		t.Errorf("%d clients were closed, should be 1", k.closed)
	}
}

func TestMonitorTracksBeforeItStarts(t *testing.T) {
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
				t.Fatalf("%s was not seen; the last is %+v", what, m.Latest("shop/orders"))
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
