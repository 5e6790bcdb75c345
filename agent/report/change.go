// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"
	"slices"
)

// Changed returns whether more than figures, which change all the time, differs between two reports. Each may be nil.
func Changed(before, now *Report) bool {
	if before == now || now == nil {
		return false
	}
	return before == nil || !reflect.DeepEqual(before.withoutFigures(), now.withoutFigures())
}

// withoutFigures gives a report without what is measured. What the kernel has killed stays.
func (r *Report) withoutFigures() Report {
	w := *r
	w.RocksDB.CacheUsage, w.RocksDB.CachePinned, w.RocksDB.Opened, w.RocksDB.Closed = 0, 0, 0, 0
	w.Clients = slices.Clone(r.Clients)
	for i := range w.Clients {
		w.Clients[i].Records, w.Clients[i].StateDir.Bytes, w.Clients[i].Brokers = Records{}, 0, 0
	}
	j := &w.JVM
	j.HeapUsed, j.HeapLive, j.Metaspace, j.CodeCache, j.Direct, j.Threads, j.ThreadsPeak = 0, 0, 0, 0, 0, 0, 0
	c := &w.Cgroup
	c.Usage, c.Anon, c.File, c.Kernel, c.Peak = 0, 0, 0, 0, 0
	return w
}
