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
	// unacknowledged is the longest time between sending and acknowledgement. It also replaces the number of keep-alive probes: the
	// connection ends at the first of 5, 7, 9 and 11 s after it, so it lies between the last two.
	unacknowledged = keepAliveIdle + keepAliveCount*keepAliveInterval - keepAliveInterval/2
)

// setUserTimeout ends a connection whose sent data is not acknowledged. Keep-alive does not cover that case (tcp(7)).
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
