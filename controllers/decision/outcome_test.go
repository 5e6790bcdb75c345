// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"streamweir.dev/streamweir/internal/testobjects"
)

func TestOutcomeIsRecheckedWhenTheFirstRefusalExpires(t *testing.T) {
	o := &Outcome{}
	o.Refuse(RefusedResize{Pod: "orders-0", At: testobjects.Now.Add(-time.Minute)}, testobjects.Now)
	o.Refuse(RefusedResize{Pod: "orders-1", At: testobjects.Now}, testobjects.Now)
	if o.RecheckAfter != RefusalRetry-time.Minute || len(o.Refused) != 2 {
		t.Errorf("RecheckAfter = %v with %d refusals, want %v with 2", o.RecheckAfter, len(o.Refused), RefusalRetry-time.Minute)
	}
	o.Recheck(-time.Hour)
	if o.RecheckAfter != time.Second {
		t.Errorf("RecheckAfter = %v, want at least a second", o.RecheckAfter)
	}
}

func TestResizedText(t *testing.T) {
	resize := Resize{Pod: "orders-0", From: 1024 << 20, To: 1536 << 20}
	for answered, want := range map[int64]string{
		1536 << 20: "pod orders-0 from 1Gi to 1536Mi",
		1280 << 20: "pod orders-0 from 1Gi to 1536Mi (changed to 1280Mi by the API server)",
	} {
		if got := ResizedText(resize, answered); got != want {
			t.Errorf("ResizedText = %q, want %q", got, want)
		}
	}
}
