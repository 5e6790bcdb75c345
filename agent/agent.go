// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent carries the part of Streamweir that runs inside an application's JVM: a jar, built from src/ by build.sh, which the
// operator puts into a ConfigMap for the pods to mount.
package agent

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
)

// Jar is the agent. It must not be changed.
//
//go:embed streamweir-agent.jar
var Jar []byte

// Digest is the SHA-256 of a jar in lower-case hex: it names the jar that is mounted.
func Digest(jar []byte) string {
	sum := sha256.Sum256(jar)
	return hex.EncodeToString(sum[:])
}
