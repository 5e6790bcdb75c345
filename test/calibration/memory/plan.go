// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/memplan"
)

// planned is a scenario's plan for the load that one instance has after the failures.
func planned(s *scenario) (memplan.Plan, error) {
	w, err := s.workload()
	if err != nil {
		return memplan.Plan{}, err
	}
	return planAtRequiredLimit(&w, memplan.ColdStart(w, s.Threads))
}

// planAtRequiredLimit plans a load under the smallest limit with which no config is lowered, so that the lines contain no unused memory.
func planAtRequiredLimit(w *memplan.Workload, load memplan.Load) (memplan.Plan, error) {
	policy := memplan.DefaultPolicy()
	required := memplan.PlanFor(*w, load, policy, 0).RequiredLimitAtDefaults
	plan := memplan.PlanFor(*w, load, policy, required)
	if !plan.Fits() {
		return plan, fmt.Errorf("the plan does not fit its own required limit of %v", required)
	}
	return plan, nil
}

// writePlan writes the files of a plan as the operator mounts them.
func writePlan(folder string, plan *memplan.Plan) error {
	file, err := decision.PlanFile(*plan)
	if err != nil {
		return err
	}
	for name, text := range planfile.WithToken(file.Files(), nil) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
