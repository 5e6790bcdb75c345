// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent embeds the part of Streamweir that runs inside an application's JVM: a jar, built from src/ by build.sh. The operator writes it
// to a ConfigMap, and pods mount it.
package agent

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
)

// Jar is the agent. Callers must not modify it.
//
//go:embed streamweir-agent.jar
var Jar []byte

// Digest returns the SHA-256 of a jar in lower-case hex. It identifies the mounted jar.
func Digest(jar []byte) string {
	sum := sha256.Sum256(jar)
	return hex.EncodeToString(sum[:])
}
