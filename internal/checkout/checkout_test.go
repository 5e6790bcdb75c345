// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"os"
	"testing"
)

func TestPath(t *testing.T) {
	path, err := Path("internal", "checkout", "checkout.go")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("path of this package: %v", err)
	}
}

func TestRootOutsideAModule(t *testing.T) {
	t.Chdir(t.TempDir())
	if root, err := Root(); err == nil {
		t.Errorf("root = %s, want an error", root)
	}
}
