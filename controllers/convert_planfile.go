// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/memplan"
)

// PlanFile converts a plan of the planner into the plan that pods mount.
func PlanFile(plan memplan.Plan) (planfile.Plan, error) {
	file := planfile.Plan{Limit: int64(plan.Limit), Heap: int64(plan.Heap)}
	var errs []error
	for _, config := range plan.Configs {
		switch config.Kind {
		case memplan.JVMOption:
			option := config.Name
			if config.Value != "" {
				option += "=" + config.Value
			}
			file.Options = append(file.Options, option)
		case memplan.Property:
			errs = append(errs, file.SetProperty(config.Name, config.Value))
		}
	}
	return file, errors.Join(errs...)
}
