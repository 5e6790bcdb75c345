// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a version of kafka-streams.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads "4.4.0", "3.9", or a version with a suffix such as "4.3.0-SNAPSHOT".
func ParseVersion(text string) (Version, error) {
	digits, _, _ := strings.Cut(text, "-")
	parts := strings.Split(digits, ".")
	if len(parts) < 2 {
		return Version{}, fmt.Errorf("version %q: must be major.minor or major.minor.patch, such as 4.4.0", text)
	}
	var v Version
	for i, at := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if i >= len(parts) {
			break
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return Version{}, fmt.Errorf("version %q: part %q is not a number; must be a version such as 4.4.0", text, parts[i])
		}
		*at = n
	}
	return v, nil
}

// String returns the version as Kafka writes it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Before reports whether v is older than major.minor.patch.
func (v Version) Before(major, minor, patch int) bool {
	if v.Major != major {
		return v.Major < major
	}
	if v.Minor != minor {
		return v.Minor < minor
	}
	return v.Patch < patch
}
