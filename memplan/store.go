// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// minSegmentIntervalMs is the smallest segment interval that Kafka Streams chooses (Stores: max(retention/2, 60_000)).
const minSegmentIntervalMs = 60_000

// maxSegments is a number of live segments beyond any sensible setting.
const maxSegments = 1 << 20

// Instances returns the number of RocksDB instances that one task opens for the store.
func (s Store) Instances() Count {
	if s.InMemory {
		return 0
	}
	switch {
	case s.segmented():
		return s.segments()
	case s.Kind == Suppress:
		return 0
	default:
		return 1
	}
}

// segments returns the number of live segments of a segmented store: ceil(retention / interval) + 1 (AbstractSegments: ids from
// floor((t-R)/I) to floor(t/I)). It is 3 for a retention of 2 minutes or more, and for an unknown retention.
func (s Store) segments() Count {
	retention := s.RetentionMs.Value
	if retention <= 0 {
		return 3
	}
	interval := s.SegmentIntervalMs.Value
	if interval <= 0 {
		interval = max(retention/2, minSegmentIntervalMs)
	}
	segments := retention / interval
	if retention%interval > 0 {
		segments++
	}
	return Count(min(segments+1, maxSegments))
}

// opened returns the number of instances. A segmented store has one more for a moment: the new segment is opened before the expired one is
// closed (AbstractSegments). The new one is empty then, so that only its fixed cost counts.
func (s Store) opened() Count {
	n := s.Instances()
	if n > 0 && s.segmented() {
		n++
	}
	return n
}

// segmented reports whether each segment of the store is an instance.
func (s Store) segmented() bool {
	switch s.Kind {
	case Window, Session, JoinWindow, TimeOrderedWindow:
		return true
	default:
		return false
	}
}

// families returns the number of data column families of one instance. Timestamped stores, and so the windows of aggregations, open two;
// that of the old format stays empty unless an upgrade is in progress (RocksDBTimestampedStore).
func (s Store) families() Count {
	if s.Kind == TimestampedKeyValue || s.Kind == Window {
		return 2
	}
	return 1
}

// instances returns the number of RocksDB instances of a task.
func instances(s *Subtopology) Count {
	n := Count(0)
	for i := range s.Stores {
		n += s.Stores[i].Instances()
	}
	return n
}

// dataFamilies returns the number of data column families of a task.
func dataFamilies(s *Subtopology) Count {
	n := Count(0)
	for i := range s.Stores {
		n += s.Stores[i].Instances() * s.Stores[i].families()
	}
	return n
}
