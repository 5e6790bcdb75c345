// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"syscall"
	"time"
)

const (
	// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h.
	tcpUserTimeout = 18
	// unacknowledged is how long sent data may stay without an acknowledgement. It counts for keep-alive as well, where it takes the place
	// of the number of probes: at the first of 5, 7, 9 and 11 s that is past it the connection ends, so it lies between the last two.
	unacknowledged = keepIdle + keepCount*keepInterval - keepInterval/2
)

// setUserTimeout makes a connection end when what was sent is not acknowledged, for which keep-alive is no help (tcp(7)).
func setUserTimeout(_, _ string, c syscall.RawConn) error {
	var failure error
	err := c.Control(func(fd uintptr) {
		failure = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unacknowledged/time.Millisecond))
	})
	if err != nil {
		return err
	}
	return failure
}
