// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtestutil starts a real kube-apiserver with its etcd for tests.
//
// The binaries come from the folder KUBEBUILDER_ASSETS; if it is not set, hack/control-plane.sh finds or builds them. No
// controllers and no kubelet run: nothing is garbage collected, namespaces never finish deleting, and aggregated ClusterRoles
// stay as written.
package envtestutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"streamweir.dev/streamweir/internal/checkout"
)

const (
	// assetsVariable is the folder with kube-apiserver, etcd and kubectl.
	assetsVariable = "KUBEBUILDER_ASSETS"

	// startTimeout is generous: on two cores shared with other tests a start took up to 40 s; alone it takes 3 to 5 s
	// (measured).
	startTimeout = 2 * time.Minute

	// buildTimeout is longer than hack/control-plane.sh needs where it has to build: 10 to 20 minutes on two cores.
	buildTimeout = time.Hour
)

// Environment is a running control plane.
type Environment struct {
	// Config connects as a user in the group system:masters.
	Config *rest.Config

	// Webhooks has the address and the certificate for a webhook server of the test.
	Webhooks envtest.WebhookInstallOptions

	environment *envtest.Environment
}

// Start starts a control plane. With installCRDs, the kinds in config/crd/bases are installed. Stop it with Stop.
func Start(installCRDs bool) (*Environment, error) { return start(installCRDs, nil) }

// start starts a control plane whose API server has additional flags.
func start(installCRDs bool, flags map[string]string) (*Environment, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	for name, value := range flags {
		environment.ControlPlane.GetAPIServer().Configure().Set(name, value)
	}
	if installCRDs {
		definitions, err := Manifests("crd", "bases")
		if err != nil {
			return nil, err
		}
		environment.CRDDirectoryPaths = []string{definitions}
		environment.ErrorIfCRDPathMissing = true
	}
	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane from %s: %w", assets, err), environment.Stop())
	}
	// The tests send many requests in a short time; client-go's default limit (5 per second) would only slow them down.
	config.QPS, config.Burst = 1000, 1000
	return &Environment{Config: config, Webhooks: environment.WebhookInstallOptions, environment: environment}, nil
}

// Stop ends the control plane and removes its data.
func (e *Environment) Stop() error {
	if err := e.environment.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}

// Assets returns the folder with the binaries of the control plane.
func Assets() (string, error) {
	if folder := os.Getenv(assetsVariable); folder != "" {
		return folder, nil
	}
	script, err := checkout.Path("hack", "control-plane.sh")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, script)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("hack/control-plane.sh found no control plane for the tests: %w\n%s"+
			"Run `make control-plane`, or set %s to a folder with kube-apiserver, etcd and kubectl", err, stderr.String(), assetsVariable)
	}
	return strings.TrimSpace(stdout.String()), nil
}
