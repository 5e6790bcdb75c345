// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"reflect"
	"slices"
)

// Changed returns whether a report differs significantly from the one before it: in more than figures, which vary all the time. Each may
// be nil. A missing report is not a change.
func Changed(before, now *Report) bool {
	if before == now || now == nil {
		return false
	}
	return before == nil || !reflect.DeepEqual(before.withoutFigures(), now.withoutFigures())
}

// withoutFigures returns a report without measurements. The number of OOM kills stays.
func (r *Report) withoutFigures() Report {
	stripped := *r
	rocksDB := &stripped.RocksDB
	zero(&rocksDB.CacheUsage, &rocksDB.CachePinned, &rocksDB.Opened, &rocksDB.Closed)
	stripped.Clients = slices.Clone(r.Clients)
	for i := range stripped.Clients {
		client := &stripped.Clients[i]
		client.Records = Records{}
		zero(&client.StateDir.Bytes)
		zero(&client.Brokers)
	}
	jvm := &stripped.JVM
	zero(&jvm.HeapUsed, &jvm.HeapLive, &jvm.Metaspace, &jvm.CodeCache, &jvm.Direct)
	zero(&jvm.Threads, &jvm.ThreadsPeak)
	cgroup := &stripped.Cgroup
	zero(&cgroup.Usage, &cgroup.Anon, &cgroup.File, &cgroup.Kernel, &cgroup.Peak)
	return stripped
}

func zero[T int | int64](figures ...*T) {
	for _, figure := range figures {
		*figure = 0
	}
}
