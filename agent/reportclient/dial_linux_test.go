// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"net"
	"syscall"
	"testing"
)

func TestReportDialerSetsWhatFindsADeadMachineInElevenSeconds(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // It ends with the test.
	conn, err := newDialer().DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // As above.
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// TCP_KEEPIDLE, TCP_KEEPINTVL and TCP_KEEPCNT in seconds, TCP_USER_TIMEOUT in milliseconds.
	for option, want := range map[int]int{syscall.TCP_KEEPIDLE: 5, syscall.TCP_KEEPINTVL: 2, syscall.TCP_KEEPCNT: 3, tcpUserTimeout: 10_000} {
		var got int
		var failure error
		if err := raw.Control(func(fd uintptr) { got, failure = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option) }); err != nil {
			t.Fatal(err)
		}
		if failure != nil || got != want {
			t.Errorf("TCP option %d is %d (%v), should be %d", option, got, failure, want)
		}
	}
}
