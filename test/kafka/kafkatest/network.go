// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ipTimeout bounds one call of iproute2, which takes milliseconds.
const ipTimeout = 10 * time.Second

// network is a bridge in 10.231.N.0/24 of this machine, with the broker at .1 and the instances from .2 on.
type network struct {
	number byte
	next   byte
}

// newNetwork takes the first number N that no other test process uses.
//
// A lock on a file reserves the number. The kernel releases it when the process ends, so the next owner may remove the bridge
// of a killed process.
func newNetwork(tb testing.TB) *network {
	tb.Helper()
	for number := range 256 {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("streamweir-kafkatest-%d.lock", number))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			tb.Fatalf("lock of network 10.231.%d.0/24: %v", number, err)
		}
		if err := tryLock(file); err != nil {
			_ = file.Close()
			continue
		}
		tb.Cleanup(func() { _ = file.Close() })
		n := &network{number: byte(number), next: 2}
		n.create(tb)
		return n
	}
	tb.Fatal("all 256 networks 10.231.N.0/24 are in use by other test processes")
	return nil
}

func (n *network) create(tb testing.TB) {
	tb.Helper()
	_, _ = ip("link", "delete", n.bridge())
	if out, err := ip("link", "add", n.bridge(), "type", "bridge"); err != nil {
		Unavailable(tb, fmt.Sprintf("the permission to create a network bridge (CAP_NET_ADMIN): %v: %s", err, out))
	}
	tb.Cleanup(func() {
		if out, err := ip("link", "delete", n.bridge()); err != nil {
			tb.Errorf("remove the bridge %s: %v: %s", n.bridge(), err, out)
		}
	})
	mustIP(tb, "address", "add", n.prefix(1), "dev", n.bridge())
	mustIP(tb, "link", "set", n.bridge(), "up")
}

// attach adds an interface eth0 on the bridge to the network namespace of the process, which must be empty. It returns the
// address for the interface; the process sets it.
func (n *network) attach(tb testing.TB, pid int) netip.Addr {
	tb.Helper()
	host := n.next
	if host == 255 {
		tb.Fatalf("network 10.231.%d.0/24 is full", n.number)
	}
	n.next++
	outer := fmt.Sprintf("swv%dn%d", n.number, host)
	_, _ = ip("link", "delete", outer) // the kernel removes the namespace of an ended process with a delay
	mustIP(tb, "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(pid))
	mustIP(tb, "link", "set", outer, "master", n.bridge(), "up")
	tb.Cleanup(func() { _, _ = ip("link", "delete", outer) })
	return n.address(host)
}

func (n *network) bridge() string { return fmt.Sprintf("swb%d", n.number) }

func (n *network) address(host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 231, n.number, host})
}

func (n *network) prefix(host byte) string { return n.address(host).String() + "/24" }

// ip runs iproute2. It has a context of its own, since clean-ups run after the end of the test's context.
func ip(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ipTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustIP(tb testing.TB, args ...string) {
	tb.Helper()
	if out, err := ip(args...); err != nil {
		tb.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
