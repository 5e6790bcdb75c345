// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"streamweir.dev/streamweir/memplan"
)

// planned is a scenario's plan for the load that one instance has after the losses.
func planned(s *scenario) (memplan.Plan, error) {
	w, err := s.workload()
	if err != nil {
		return memplan.Plan{}, err
	}
	return planAtNeed(&w, memplan.ColdStart(w, s.Threads))
}

// planAtNeed plans a load under the smallest limit with which no config is lowered, so that the lines contain no unused memory.
func planAtNeed(w *memplan.Workload, load memplan.Load) (memplan.Plan, error) {
	policy := memplan.DefaultPolicy()
	need := memplan.PlanFor(*w, load, policy, 0).NeedAtDefaults
	plan := memplan.PlanFor(*w, load, policy, need)
	if !plan.Fits() {
		return plan, fmt.Errorf("the plan does not fit its own need of %v", need)
	}
	return plan, nil
}

// writePlan writes the files of a plan as the operator mounts them.
func writePlan(folder string, plan *memplan.Plan) error {
	options, properties := planFiles(plan)
	generation := fmt.Sprintf("%x", sha256.Sum256([]byte(options+properties)))[:16]
	for name, text := range map[string]string{"jvm.options": options, "plan.v1.properties": properties, "generation": generation} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// planFiles are the JVM's options, one a line, and the properties that the agent reads.
func planFiles(plan *memplan.Plan) (options, properties string) {
	var flags, values strings.Builder
	fmt.Fprintf(&values, "limit.bytes=%d\nheap.bytes=%d\n", int64(plan.Limit), int64(plan.Heap))
	for _, c := range plan.Configs {
		line := strings.TrimSuffix(c.Name+"="+c.Value, "=") + "\n"
		if c.Kind == memplan.JVMOption {
			flags.WriteString(line)
		} else {
			values.WriteString(line)
		}
	}
	return flags.String(), values.String()
}
