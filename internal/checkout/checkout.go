// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkout finds the files of this checkout for tests and tools.
package checkout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Root returns the root of the module that contains the working directory: the working directory of a test is the folder of its package.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module's root: %w", err)
	}
	for from := folder; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no go.mod in %s or above it: run this inside the module", from)
		}
	}
}

// Path returns the path of a file or folder of the checkout.
func Path(elements ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{root}, elements...)...), nil
}
