// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"slices"
)

// client is a KafkaStreams client with its load.
type client struct {
	workload *Workload
	load     Load
	// version is the version of the workload, or the newest known version.
	version Version
	// stores are the RocksDB instances that the load may open.
	stores storeTotals
	// shares is scratch space of worst.
	shares []share
}

// newClient returns a client with a valid load.
func newClient(w *Workload, load Load) *client {
	c := &client{load: validLoad(load, len(w.Subtopologies)), version: effectiveVersion(w.Version)}
	c.workload = w.asIn(c.version)
	c.shares = make([]share, 0, len(w.Subtopologies))
	c.stores = c.storeTotals()
	return c
}

// with returns the client with another workload, which differs in tunable settings only.
func (c *client) with(w *Workload) *client {
	changed := *c
	changed.workload = w
	return &changed
}

// startingCold returns the client with all tasks of the application.
func (c *client) startingCold() *client {
	return newClient(c.workload, ColdStart(*c.workload, c.load.Threads))
}

// has reports whether the version of the client has a feature.
func (c *client) has(f feature) bool { return hasFeature(c.version, f) }

// streamThreads returns the number of stream threads.
func (c *client) streamThreads() Count { return Count(c.load.Threads) }

// amount is the type of a sum over tasks.
type amount interface{ Bytes | Count }

// share is the amount that one task of a subtopology adds, and the number of its tasks that the load permits.
type share struct {
	each  int64
	tasks int
}

// worstActive returns the largest sum over the active tasks that the load permits.
func worstActive[T amount](c *client, each func(*Subtopology) T) T {
	return worst(c, each, c.load.Active, func(bound Cap) int { return bound.Active })
}

// worstTotal returns the largest sum over the tasks of any role that the load permits.
func worstTotal[T amount](c *client, each func(*Subtopology) T) T {
	return worst(c, each, c.load.Total, func(bound Cap) int { return bound.Total })
}

// worst picks the costliest tasks within the caps of the load. Tasks of one subtopology cost the same, so this order is exact.
func worst[T amount](c *client, each func(*Subtopology) T, tasks int, capOf func(Cap) int) T {
	shares := c.shares[:0]
	for i := range c.workload.Subtopologies {
		if cost := each(&c.workload.Subtopologies[i]); cost > 0 {
			shares = append(shares, share{each: int64(cost), tasks: capOf(c.load.Caps[i])})
		}
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(b.each, a.each) })
	sum := Bytes(0)
	for _, s := range shares {
		taken := min(s.tasks, tasks)
		sum = sum.Add(Bytes(s.each).Mul(Count(taken)))
		tasks -= taken
	}
	return T(sum)
}

// worstStores returns the largest sum over the stores of the tasks, and of the global stores.
func (c *client) worstStores(cost func(*Store) Bytes) Bytes {
	sum := worstTotal(c, func(s *Subtopology) Bytes { return sumOf(s.Stores, cost) })
	return sum.Add(sumOf(c.workload.GlobalStores, cost))
}

// sumOf sums a cost over stores.
func sumOf(stores []Store, cost func(*Store) Bytes) Bytes {
	sum := Bytes(0)
	for i := range stores {
		sum = sum.Add(cost(&stores[i]))
	}
	return sum
}

// validLoad moves the numbers of a load into their ranges, and gives it a cap for each subtopology.
func validLoad(load Load, subtopologies int) Load {
	caps := load.Caps
	load.Threads = max(clampCount(load.Threads), 1)
	load.Active = clampCount(load.Active)
	load.Total = max(clampCount(load.Total), load.Active)
	load.Caps = make([]Cap, subtopologies)
	for i := range load.Caps {
		if i < len(caps) {
			load.Caps[i] = Cap{Active: clampCount(caps[i].Active), Total: clampCount(max(caps[i].Total, caps[i].Active))}
		}
	}
	return load
}
