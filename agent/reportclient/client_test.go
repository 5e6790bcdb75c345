// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/report/reporttest"
	"streamweir.dev/streamweir/agent/reportclient"
)

func TestFirstReportsAreChanges(t *testing.T) {
	withFleet(t, 2, 0, func(f fleet) {
		if got := f.latest(0); got.Pod != "pod-0" || got.UID != "uid-0" || got.Report != nil || got.Err != nil {
			f.Errorf("before the first response: %+v", got)
		}
		in(time.Second)
		for i := range f.pods {
			got := f.latest(i)
			if diff := cmp.Diff(f.agents[i].report, got.Report); diff != "" || got.Err != nil || got.At.IsZero() || !got.Gone.IsZero() {
				f.Errorf("pod %d is %+v (-want +got):\n%s", i, got, diff)
			}
		}
		f.expectChange(true, "first reports")
		in(time.Second)
		f.expectChange(false, "no change")
	})
}

func TestSignificantChangesArriveSoon(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		in(time.Second)
		f.expectChange(true, "the first report")
		a := f.agents[0]
		seq := a.report.Seq
		steps := []struct {
			name   string
			report *report.Report
			wait   time.Duration
			want   bool
		}{
			{"another assignment", reporttest.New("uid-0", seq+1, 5, 1), 250 * time.Millisecond, true},
			{"the same report under another seq", reporttest.New("uid-0", seq+2, 5, 1), 250 * time.Millisecond, true},
			{"other figures", withFigures(reporttest.New("uid-0", seq+2, 5, 1)), 2 * time.Minute, false},
			{"a significant change under the same seq", withLimit(reporttest.New("uid-0", seq+2, 5, 1)), 2 * time.Minute, true},
			{"a restarted process with a smaller seq", reporttest.New("uid-0", seq-100, 1, 0), 250 * time.Millisecond, true},
		}
		for _, s := range steps {
			a.set(s.report)
			in(s.wait)
			f.expectChange(s.want, s.name)
			if diff := cmp.Diff(s.report, f.latest(0).Report); diff != "" {
				f.Errorf("%s (-want +got):\n%s", s.name, diff)
			}
		}
	})
}

func withFigures(r *report.Report) *report.Report {
	r.RocksDB.CacheUsage, r.RocksDB.Opened, r.JVM.HeapLive, r.Cgroup.Usage, r.Cgroup.Peak = 1, 2, 3, 4, 5
	r.Clients[0].Records.LargestSize, r.Clients[0].StateDir.Bytes, r.JVM.ThreadsPeak = 6, 7, 8
	return r
}

func withLimit(r *report.Report) *report.Report {
	r.Cgroup.Limit++
	return r
}

func TestTheWholeReportIsRequestedOnceAMinute(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		began := time.Now()
		in(10 * time.Minute)
		whole := 0
		all := f.agents[0].since(began)
		for _, q := range all {
			if q.query == "" {
				whole++
			} else if !strings.HasPrefix(q.query, fmt.Sprintf("after=%d&wait=", f.agents[0].report.Seq)) {
				f.Errorf("unexpected query %q", q.query)
			}
		}
		if whole < 10 || whole > 12 {
			f.Errorf("the whole report was requested %d times in ten minutes", whole)
		}
		if len(all) < 30 || len(all) > 55 {
			f.Errorf("%d requests in ten minutes", len(all))
		}
		if age := time.Since(f.latest(0).At); age > time.Minute+time.Second {
			f.Errorf("the figures are %v old", age)
		}
	})
}

func TestTheLastReportIsKeptWhileRequestsFail(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		in(time.Second)
		first := f.latest(0)
		f.expectChange(true, "the first report")
		f.network.setDown(f.pods[0].Address, syscall.ECONNREFUSED)
		in(10 * time.Millisecond)
		f.network.breakOff(f.pods[0].Address, syscall.ECONNRESET)
		in(5 * time.Minute)
		got := f.latest(0)
		if got.Err == nil || got.Err.Fault != report.Unreachable || got.Report != first.Report || !got.At.Equal(first.At) {
			f.Errorf("the state is %+v, should have the last report", got)
		}
		if age := time.Since(got.Since); age < 5*time.Minute-time.Second || age > 5*time.Minute || !got.Gone.IsZero() {
			f.Errorf("failures began at %v and Gone is %v; the end of a process must not set Gone", age, got.Gone)
		}
		f.expectChange(true, "the beginning of an error")
		in(5 * time.Minute)
		f.expectChange(false, "the same error")
		f.network.setDown(f.pods[0].Address, nil)
		in(time.Minute)
		f.expectChange(true, "the end of an error")
		if got := f.latest(0); got.Err != nil || !got.Since.IsZero() || !got.At.After(first.At) {
			f.Errorf("after a response the state is %+v", got)
		}
	})
}

func TestADeadNodeSetsGone(t *testing.T) {
	for _, failure := range []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		t.Run(failure.Error(), func(t *testing.T) {
			withFleet(t, 1, 0, func(f fleet) {
				in(time.Second)
				f.expectChange(true, "the first report")
				f.network.setDown(f.pods[0].Address, syscall.EHOSTUNREACH)
				f.network.breakOff(f.pods[0].Address, failure)
				at := time.Now()
				in(10 * time.Millisecond)
				f.expectChange(true, "the end of the connection")
				in(time.Minute)
				if got := f.latest(0); !got.Gone.Equal(at) || got.Err == nil || !got.Since.Equal(at) {
					f.Errorf("the state is %+v, Gone should be %v", got, at)
				}
				f.network.setDown(f.pods[0].Address, nil)
				in(time.Minute)
				if got := f.latest(0); !got.Gone.IsZero() || got.Err != nil {
					f.Errorf("after a response the state is %+v", got)
				}
			})
		})
	}
}

func TestFailuresBackOffAfterTheStartupWindow(t *testing.T) {
	withFleet(t, 2, 0, func(f fleet) {
		began := time.Now()
		f.pods[1].Started = began
		for _, e := range f.pods {
			f.network.setDown(e.Address, syscall.ECONNREFUSED)
		}
		f.Track("shop/orders", f.pods)
		in(4 * time.Minute)
		old := f.network.dials(f.pods[0].Address, began)
		for i, pause := range []int{1, 2, 4, 8, 16, 30, 30} {
			earliest := old[i] + time.Duration(pause)*time.Second
			if at := old[i+1]; at < earliest || at > earliest+time.Duration(pause)*time.Second/10 {
				f.Errorf("attempt %d came after %v, want %v or up to a tenth more", i+1, at, earliest)
			}
		}
		starting := f.network.dials(f.pods[1].Address, began)
		minutes := func(from, to time.Duration) (n int) {
			for _, at := range starting {
				if at >= from && at < to {
					n++
				}
			}
			return n
		}
		if a, b := minutes(0, 2*time.Minute), minutes(2*time.Minute, 4*time.Minute); a < 105 || a > 121 || b > 10 {
			f.Errorf("%d requests in the two minutes after the start, %d in the next two", a, b)
		}
		f.pods[0].Started = time.Now() // Its container has restarted.
		f.Track("shop/orders", f.pods)
		again := time.Now()
		in(10 * time.Second)
		if n := len(f.network.dials(f.pods[0].Address, again)); n < 9 || n > 11 {
			f.Errorf("%d requests in the ten seconds after a restart", n)
		}
	})
}

func TestTheRequestRateOfAPodIsBounded(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		in(time.Minute)
		began := time.Now()
		f.network.agents[f.pods[0].Address] = nil
		a := newFakeAgent(t, reporttest.New("uid-0", 1, 1, 0))
		f.network.agents[f.pods[0].Address] = a
		f.network.breakOff(f.pods[0].Address, syscall.ECONNRESET)
		stop := time.After(time.Minute)
		for seq := int64(2); ; seq++ {
			a.set(reporttest.New("uid-0", seq, 1, 0))
			in(10 * time.Millisecond)
			select {
			case <-stop:
				if n := len(a.since(began)); n < 55 || n > 66 {
					f.Errorf("%d requests in a minute", n)
				}
				return
			default:
			}
		}
	})
}

func TestTrackReplacesThePods(t *testing.T) {
	withFleet(t, 3, 0, func(f fleet) {
		in(time.Second)
		first := f.latest(0)
		f.expectChange(true, "the first reports")
		f.Track("shop/orders", []reportclient.Endpoint{f.pods[0], f.pods[0], {Name: "new", UID: "uid-new"}})
		began := time.Now()
		in(2 * time.Minute)
		latest := f.Latest("shop/orders")
		if len(latest) != 2 || latest["uid-0"].At.Equal(first.At) || latest["uid-new"].Report != nil || latest["uid-new"].Err != nil {
			f.Errorf("the state is %+v, should have pod 0 and a new one without an address", latest)
		}
		if n := len(f.agents[1].since(began)) + len(f.agents[2].since(began)); n > 0 {
			f.Errorf("%d requests to forgotten pods", n)
		}
		if n := len(f.agents[0].since(began)); n > 10 {
			f.Errorf("%d requests in two minutes to a pod in the list twice", n)
		}
		f.Track("shop/orders", []reportclient.Endpoint{f.pods[0], {Name: "pod-1", UID: "uid-1", Address: f.pods[1].Address, Token: f.pods[1].Token}})
		in(time.Second)
		if got := f.latest(1); got.Report == nil {
			f.Errorf("a pod that is tracked again is %+v", got)
		}
		f.Forget("shop/orders")
		f.Forget("shop/never-there")
		began = time.Now()
		in(10 * time.Minute)
		if n := len(f.agents[0].since(began)); n > 0 || len(f.Latest("shop/orders")) > 0 {
			f.Errorf("a forgotten key has %v, and %d requests were sent", f.Latest("shop/orders"), n)
		}
	})
}

func TestAPodWithANewAddressKeepsItsReport(t *testing.T) {
	withFleet(t, 2, 0, func(f fleet) {
		in(time.Second)
		kept := f.latest(0).Report
		f.changed()
		f.pods[0].Address = f.pods[1].Address // The address of another pod.
		f.Track("shop/orders", f.pods)
		in(time.Second)
		if got := f.latest(0); got.Err == nil || got.Err.Fault != report.WrongPod || got.Report != kept {
			f.Errorf("at another pod's address: %+v", got)
		}
		f.expectChange(true, "the wrong pod")
		f.pods[0].Address = "10.0.0.0:7907"
		f.Track("shop/orders", f.pods)
		if got := f.latest(0); got.Err != nil || got.Report != kept {
			f.Errorf("before a request to the right address: %+v", got)
		}
		in(time.Second)
		if got := f.latest(0); got.Err != nil || got.At.IsZero() {
			f.Errorf("at the right address: %+v", got)
		}
	})
}

func TestAnotherTokenIsTriedAtOnce(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		in(time.Second)
		kept := f.latest(0).Report
		f.changed()
		f.agents[0].setToken("token of another plan")
		in(5 * time.Minute)
		if got := f.latest(0); got.Err == nil || got.Err.Fault != report.Unauthorized || got.Report != kept {
			f.Errorf("with the wrong token: %+v", got)
		}
		f.expectChange(true, "the wrong token")
		f.pods[0].Token = "token of another plan"
		f.Track("shop/orders", f.pods)
		in(time.Second)
		if got := f.latest(0); got.Err != nil {
			f.Errorf("with the right token: %+v", got)
		}
		f.expectChange(true, "the right token")
		f.pods[0].Token = ""
		f.Track("shop/orders", f.pods)
		in(2 * time.Minute)
		if got := f.latest(0); got.Err == nil || got.Err.Fault != report.Unauthorized {
			f.Errorf("without a token: %+v", got)
		}
	})
}

func TestPodsBeyondTheLongPollsArePolledAtIntervals(t *testing.T) {
	withFleet(t, 50, 2, func(f fleet) {
		in(20 * time.Second)
		began := time.Now()
		in(2 * time.Minute)
		long := 0
		for i, a := range f.agents {
			if f.latest(i).Report == nil || f.latest(i).Err != nil {
				f.Errorf("pod %d is %+v", i, f.latest(i))
			}
			if a.waits() {
				long++
				continue
			}
			if n := len(a.since(began)); n < 10 || n > 13 {
				f.Errorf("%[2]d requests to pod %[1]d in two minutes", i, n)
			}
		}
		if long != 2 {
			f.Errorf("%d pods have a long poll, want 2", long)
		}
		f.changed()
		f.agents[0].set(reporttest.New("uid-0", 5, 1, 1))
		in(12 * time.Second)
		f.expectChange(true, "a change")
		f.Track("shop/orders", f.pods[:2])
		in(12 * time.Second)
		if !f.agents[0].waits() || !f.agents[1].waits() {
			f.Error("the long polls of forgotten pods were not reused")
		}
	})
}

func TestChangesOfSeveralPodsAreDeliveredTogether(t *testing.T) {
	withFleet(t, 3, 0, func(f fleet) {
		in(time.Second)
		f.changed()
		for i, a := range f.agents {
			a.set(reporttest.New(f.pods[i].UID, a.report.Seq+1, 5, 1))
			in(50 * time.Millisecond)
			f.expectChange(false, "a change while others follow")
		}
		in(60 * time.Millisecond)
		f.expectChange(true, "the changes of all pods")
		in(time.Second)
		f.expectChange(false, "the same changes")
	})
}

func TestPodsThatFailGiveTheirLongPollsBack(t *testing.T) {
	withFleet(t, 4, 2, func(f fleet) {
		in(20 * time.Second)
		var long []int
		for i, a := range f.agents {
			if a.waits() {
				long = append(long, i)
			}
		}
		if len(long) != 2 {
			f.Fatalf("pods %v have a long poll, want two", long)
		}
		for _, i := range long {
			f.network.setDown(f.pods[i].Address, syscall.EHOSTUNREACH)
			f.network.breakOff(f.pods[i].Address, syscall.ETIMEDOUT)
		}
		in(20 * time.Second)
		for i, a := range f.agents {
			if failed := slices.Contains(long, i); a.waits() == failed {
				f.Errorf("pod %d, which has failed: %v, has a long poll: %v", i, failed, a.waits())
			}
		}
	})
}

func TestPodsThatFailDoNotDelayOthers(t *testing.T) {
	withFleet(t, 300, 1, func(f fleet) {
		for i, e := range f.pods {
			if i >= 50 {
				f.network.hang(e.Address)
			}
		}
		in(5 * time.Minute)
		began := time.Now()
		in(2 * time.Minute)
		for i, a := range f.agents[:50] {
			if n := len(a.since(began)); n < 9 && !a.waits() {
				f.Errorf("%d requests to pod %d in two minutes", n, i)
			}
		}
		for i, e := range f.pods[50:] {
			if n := len(f.network.dials(e.Address, began)); n == 0 {
				f.Errorf("no request in two minutes to pod %d, which does not respond", i+50)
			}
		}
	})
}

func TestStartMayBeCalledOnce(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		synctest.Wait()
		if err := f.Start(f.Context()); err == nil || !strings.Contains(err.Error(), "was already started") {
			f.Errorf("the second start returned %v", err)
		}
	})
}

func TestTrackBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reportclient.New(reportclient.Options{})
		r.Track("shop/orders", []reportclient.Endpoint{{Name: "a", UID: "a", Address: "no address"}, {Name: "b", UID: "b"}})
		r.Track("shop/orders", []reportclient.Endpoint{{Name: "a", UID: "a", Address: "no address"}})
		in(time.Hour)
		if got := r.Latest("shop/orders"); len(got) != 1 || got["a"].Err != nil {
			t.Errorf("before the start: %+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		in(time.Second)
		if got := r.Latest("shop/orders")["a"]; got.Err == nil || got.Err.Fault != report.Unreachable {
			t.Errorf("a pod with a malformed address is %+v", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
