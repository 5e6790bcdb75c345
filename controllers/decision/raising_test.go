// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/internal/testobjects"
)

// TestPlanWaitsForLimitsThatAreBeingRaised, since it would be replaced right after the raise.
func TestPlanWaitsForLimitsThatAreBeingRaised(t *testing.T) {
	const published = 1 << 30
	raises := []Resize{{Pod: "orders-0", From: published, To: 2 * published}}
	cases := map[string]struct {
		limit    int64 // of the new plan
		resizes  []Resize
		raised   time.Duration // since when limits are being raised; 0 for no earlier pass
		tooSmall bool          // a pod does not hold its tasks
		waits    bool
		written  bool // the memory is written although the plan stays
		recheck  time.Duration
		wantZero bool // RaisingSince
	}{
		"nothing is raised":         {limit: published, wantZero: true},
		"nothing is raised anymore": {limit: published, raised: time.Second, wantZero: true},
		"raised now":                {limit: published, resizes: raises, waits: true, recheck: raisingGrace},
		"raised for 2 s":            {limit: published, resizes: raises, raised: 2 * time.Second, waits: true, recheck: raisingGrace - 2*time.Second},
		"raised for 5 s":            {limit: published, resizes: raises, raised: raisingGrace},
		"larger, raised again":      {limit: 2 * published, resizes: raises, waits: true, recheck: raisingGrace},
		"smaller":                   {limit: published / 2, resizes: raises},
		"too small, raised now":     {limit: published, resizes: raises, tooSmall: true, waits: true},
		"too small for 5 s":         {limit: published, resizes: raises, tooSmall: true, raised: raisingGrace, waits: true, written: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stored := planfile.Plan{Limit: published, Options: []string{"-XX:MaxRAM=1073741824"}}.Files()
			file := planfile.Plan{Limit: c.limit, Options: []string{"-XX:MaxRAM=1073741824", "-XX:+UseG1GC"}}
			d := &Decision{
				Facts: Facts{Now: testobjects.Now, PlanConfigMap: &corev1.ConfigMap{Data: stored}},
				Plan:  Plan{Published: ContainerPlan{Limit: c.limit, Fits: !c.tooSmall, File: file}}, Resizes: c.resizes,
			}
			if c.raised > 0 {
				d.Memory.RaisingSince = testobjects.Now.Add(-c.raised)
			}
			d.publish(false)
			if waits := d.Revision == stored[planfile.RevisionKey]; waits != c.waits {
				t.Errorf("the plan waits: %v, want %v", waits, c.waits)
			}
			if want := c.waits && !c.written; d.ReplacedSoon != want {
				t.Errorf("the memory waits for the plan: %v, want %v", d.ReplacedSoon, want)
			}
			if d.RecheckAfter != c.recheck || d.Memory.RaisingSince.IsZero() != c.wantZero {
				t.Errorf("rechecked after %v, want %v; RaisingSince is %v", d.RecheckAfter, c.recheck, d.Memory.RaisingSince)
			}
		})
	}
}
