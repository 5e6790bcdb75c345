// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"streamweir.dev/streamweir/internal/tracker"
)

// start starts a tracker. The returned function ends it and waits for its polls.
func start(t *testing.T, tracked *tracker.Tracker) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- tracked.Start(ctx) }()
	synctest.Wait()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned %v", err)
		}
	}
}

// recorder records the states of polls by name.
type recorder struct{ events []string }

func (r *recorder) poll(name string) func(context.Context) {
	return func(ctx context.Context) {
		r.events = append(r.events, name+" begins")
		<-ctx.Done()
		r.events = append(r.events, name+" ends")
	}
}

func (r *recorder) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(r.events, want) {
		t.Errorf("%s: the events are %q, should be %q", when, r.events, want)
	}
	r.events = nil
}

func TestPollsRunFromTheStartToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracked := tracker.New("the test")
		var polls recorder
		tracked.Run(polls.poll("early"))
		stopEarly := tracked.Run(polls.poll("stopped before the start"))
		stopEarly()
		polls.expect(t, "before the start")
		end := start(t, tracked)
		polls.expect(t, "after the start", "early begins")
		stop := tracked.Run(polls.poll("late"))
		polls.expect(t, "a poll that is added later", "late begins")
		stop()
		stop()
		polls.expect(t, "a stopped poll", "late ends")
		end()
		polls.expect(t, "at the end", "early ends")
		tracked.Run(polls.poll("too late"))
		polls.expect(t, "after the end")
	})
}

func TestStartMayBeCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracked := tracker.New("the test")
		end := start(t, tracked)
		if err := tracked.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the test was already started") {
			t.Errorf("the second start returned %v", err)
		}
		end()
	})
}

func TestChangesDeliversEachWaitingKeyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracked := tracker.New("the test")
		for _, key := range []string{"b", "a", "b", "a", "c"} {
			tracked.Changed(key)
		}
		end := start(t, tracked)
		defer end()
		var got []string
		for range 3 {
			got = append(got, <-tracked.Changes())
		}
		if want := []string{"b", "a", "c"}; !slices.Equal(got, want) {
			t.Errorf("the keys are %q, should be %q", got, want)
		}
		select {
		case key := <-tracked.Changes():
			t.Errorf("%q was delivered twice", key)
		case <-time.After(time.Minute):
		}
		tracked.Changed("a")
		if key := <-tracked.Changes(); key != "a" {
			t.Errorf("a key that changed again is %q", key)
		}
	})
}

func TestChangesOfAKeyGather(t *testing.T) {
	const pause = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		tracked := tracker.New("the test")
		defer start(t, tracked)()
		expectAfter := func(what string, want time.Duration) {
			t.Helper()
			began := time.Now()
			<-tracked.Changes()
			if after := time.Since(began); after != want {
				t.Errorf("%s: the key was delivered after %v, should be %v", what, after, want)
			}
			select {
			case <-tracked.Changes():
				t.Errorf("%s: the key was delivered twice", what)
			case <-time.After(time.Minute):
			}
		}
		tracked.ChangedSoon("a", pause)
		<-time.After(pause / 2)
		tracked.ChangedSoon("a", pause)
		expectAfter("two changes", pause/2)
		tracked.ChangedSoon("a", pause)
		tracked.Changed("a")
		expectAfter("an urgent change", 0)
		tracked.ChangedSoon("a", pause)
		expectAfter("a later change", pause)
	})
}

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	backoff := tracker.Backoff{Min: time.Second, Max: 30 * time.Second}
	cases := map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 5: 16 * time.Second,
		6: 30 * time.Second, 7: 30 * time.Second, 64: 30 * time.Second, 1 << 40: 30 * time.Second,
	}
	for failures, least := range cases {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			for range 100 {
				if pause := backoff.Pause(failures); pause < least || pause > least+least/10 {
					t.Fatalf("the pause is %v, should be %v or up to a tenth longer", pause, least)
				}
			}
		})
	}
	if pause := tracker.Jitter(0); pause != 0 {
		t.Errorf("the jitter of nothing is %v", pause)
	}
}
