// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Pool is one of the two pools of memory.
type Pool uint8

// The pools.
const (
	// Heap is the Java heap.
	Heap Pool = iota
	// Native is all other memory that the cgroup counts.
	Native
)

// String returns the pool in lower case.
func (p Pool) String() string {
	if p == Heap {
		return "heap"
	}
	return "native"
}

// Line is one itemised use of memory.
type Line struct {
	Region Region
	Pool   Pool
	// Name is the label of the region.
	Name string
	// Bound is never exceeded; limits are made of it. Expected is the expected peak; requests are made of it.
	Bound, Expected Bytes
	// Count and Unit are the factors of Bound. Count is 0 where Bound is no product.
	Count Count
	Unit  Bytes
	From  Provenance
	// Why is the formula in words.
	Why string
	// Client is the application id of another client of the process. It is empty for the planned application and the process itself.
	Client string
}

// labelled returns the line with another label than that of its region.
func (l Line) labelled(label string) Line {
	l.Name = label
	return l
}

// expecting returns the line with another expected peak than its bound.
func (l Line) expecting(expected Bytes) Line {
	l.Expected = expected
	return l
}

// bounded returns the line with a bound that is no product.
func (l Line) bounded(bound Bytes, why string) Line {
	l.Count = 0
	l.Unit = 0
	l.Bound = bound
	l.Why = why
	return l
}

// term returns the term of the split that the line belongs to. The heap of another client belongs to no thread of the planned
// application.
func (l Line) term() term {
	if l.Client != "" && l.Pool == Heap {
		return termProcess
	}
	return regions[l.Region].term
}
