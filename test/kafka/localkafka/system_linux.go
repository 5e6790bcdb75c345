// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"os"
	"syscall"
)

// attributes makes the kernel end the child when the thread that started it ends, and gives it a network namespace of
// its own if wanted.
func attributes(ownNetwork bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if ownNetwork {
		attributes.Cloneflags = syscall.CLONE_NEWNET
	}
	return attributes
}

// tryLock fails at once if another process holds the lock.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
