// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package localkafka

import "syscall"

// attributes make the kernel end the child when the thread that started it ends, and put it into a new network namespace if ownNetwork
// is set.
func attributes(ownNetwork bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if ownNetwork {
		attributes.Cloneflags = syscall.CLONE_NEWNET
	}
	return attributes
}
