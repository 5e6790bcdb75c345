// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import "testing"

func TestBytesText(t *testing.T) {
	cases := map[int64]string{0: "0", 512 * mib: "512Mi", 1024 * mib: "1Gi", 1500 * mib: "1500Mi", 1001: "1001", 1536 * 1024: "1536Ki"}
	for bytes, want := range cases {
		if got := bytesText(bytes); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", bytes, got, want)
		}
	}
}
