// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package reportclient

import "syscall"

// setUserTimeout does nothing: the operator runs on Linux.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
