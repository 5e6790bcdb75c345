// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtestutil starts a real kube-apiserver with its etcd for tests.
//
// The binaries are those in the folder that KUBEBUILDER_ASSETS names; where it is not set, hack/control-plane.sh finds or
// builds them. No controllers and no kubelet run: nothing is garbage collected, namespaces never finish deleting, and
// aggregated ClusterRoles stay as they are written.
package envtestutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// assetsVariable names the folder with kube-apiserver, etcd and kubectl.
	assetsVariable = "KUBEBUILDER_ASSETS"

	// startTimeout is generous: with two cores and other tests at work, a start took up to 40 s; alone it takes 3 to 5 s
	// (measured).
	startTimeout = 2 * time.Minute

	// buildTimeout is longer than hack/control-plane.sh needs where it has to build: 10 to 20 minutes on two cores.
	buildTimeout = time.Hour
)

// Environment is a running control plane.
type Environment struct {
	// Config connects as a user in the group system:masters.
	Config *rest.Config

	// Webhooks says where a webhook server of the test has to listen, and which certificate it has to show.
	Webhooks envtest.WebhookInstallOptions

	environment *envtest.Environment
}

// Start starts a control plane. With installCRDs, the kinds in config/crd/bases are installed. Stop it with Stop.
func Start(installCRDs bool) (*Environment, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	assets, err := Assets(root)
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	if installCRDs {
		environment.CRDDirectoryPaths = []string{filepath.Join(root, "config", "crd", "bases")}
		environment.ErrorIfCRDPathMissing = true
	}
	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane from %s: %w", assets, err), environment.Stop())
	}
	// The tests ask a lot in a short time; client-go's own limit (5 a second) would only make them slow.
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

// Assets returns the folder with the control plane's binaries. The argument is the root of the module.
func Assets(root string) (string, error) {
	if folder := os.Getenv(assetsVariable); folder != "" {
		return folder, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(root, "hack", "control-plane.sh"))
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("hack/control-plane.sh found no control plane for the tests: %w\n%s"+
			"Run `make control-plane`, or set %s to a folder with kube-apiserver, etcd and kubectl", err, stderr.String(), assetsVariable)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Root returns the root of the module that the working directory is in: tests run in the folder of their package.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module's root: %w", err)
	}
	for from := folder; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no go.mod in %s or above it: run the tests inside the module", from)
		}
	}
}
