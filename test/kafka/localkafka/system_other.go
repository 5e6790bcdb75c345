// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kafkatest

import (
	"errors"
	"os"
	"syscall"
)

// Elsewhere than on Linux require ends the test before any of these is called.

func attributes(bool) *syscall.SysProcAttr { return nil }

func tryLock(*os.File) error { return errors.ErrUnsupported }
