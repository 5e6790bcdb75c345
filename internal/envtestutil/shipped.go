// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package envtestutil

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operatorUser is the service account of the operator in config/default.
const operatorUser = "system:serviceaccount:streamweir-system:streamweir-controller-manager"

// StartShipped starts a control plane and applies config/default to it, so that kinds, permissions and admission policies are those of
// an installation.
func StartShipped() (*Environment, error) { return startShipped(nil) }

// StartShippedWithAudit starts a control plane as StartShipped does. The API server writes its audit log to a file, by the policy in
// another file.
func StartShippedWithAudit(policy, log string) (*Environment, error) {
	return startShipped(map[string]string{
		"audit-policy-file": policy, "audit-log-path": log,
		"audit-log-maxsize": "4096", // MiB: one file for everything
	})
}

func startShipped(flags map[string]string) (*Environment, error) {
	environment, err := start(false, flags)
	if err != nil {
		return nil, err
	}
	if err := environment.ship(); err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	return environment, nil
}

func (e *Environment) ship() error {
	admin, err := client.New(e.Config, client.Options{})
	if err != nil {
		return err
	}
	objects, err := RenderFolder("config/default")
	if err != nil {
		return err
	}
	_, err = Apply(context.Background(), admin, objects)
	return err
}

// Operator returns a configuration that connects as the operator of config/default.
func (e *Environment) Operator() *rest.Config {
	limited := rest.CopyConfig(e.Config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return limited
}
