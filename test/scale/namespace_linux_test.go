// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import "syscall"

// ownNetwork returns the attributes of a process in a network namespace of its own. It ends with its parent.
func ownNetwork() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}
