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
func StartShipped() (*Environment, error) {
	environment, err := Start(false)
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
