// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scale

import "syscall"

// ownNetwork returns no attributes: only Linux has network namespaces.
func ownNetwork() *syscall.SysProcAttr { return nil }
