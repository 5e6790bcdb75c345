// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package localkafka

import "syscall"

// attributes is not called: broker and instances need Linux.
func attributes(bool) *syscall.SysProcAttr { return nil }
