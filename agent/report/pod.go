// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "time"

// PodReport is the latest knowledge of one pod's report.
type PodReport struct {
	// Pod is the pod's name, UID its UID.
	Pod, UID string
	// Report is the newest report that could be read, nil before the first. It is kept while requests fail. It is shared and must not be
	// changed.
	Report *Report
	// At is the time at which Report was read. Without failures, figures are at most a minute old; all other changes arrive at once.
	At time.Time
	// Err is the error of the last request; nil after a success and before the first request has ended.
	Err *Error
	// Since is the time of the first in the present row of failures, of any kind; zero while Err is nil.
	Since time.Time
	// Gone is the time at which an open connection to the pod died: its node, or the network to it, has acknowledged nothing for about
	// 11 s. It is zero again after the next response. A connection closed by the process, as at its end, does not count: the kubelet
	// reports that at once.
	Gone time.Time
}
