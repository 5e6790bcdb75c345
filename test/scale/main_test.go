// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures the operator with many applications: writes, passes, times and memory.
//
// Real are the operator (the binary of main.go as a process of its own, with the flags and permissions of config/default and a token of its
// ServiceAccount), the API server with etcd, and the TCP connections to the agents. Pods are created through the API, so the injection policy
// runs for each. Simulated are the workload controllers, the scheduler, the kubelets and the agents. Requests are counted in the API
// server's audit log.
package scale

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/internal/checkout"
	"streamweir.dev/streamweir/internal/envtestutil"
)

// Environment variables of the test process in the network namespace.
const (
	namespaceVariable = "STREAMWEIR_SCALE_NAMESPACE" // set inside of the namespace
	operatorVariable  = "STREAMWEIR_SCALE_OPERATOR"  // the path of the operator's binary
	assetsVariable    = "KUBEBUILDER_ASSETS"
)

// TestMain runs the tests in a network namespace of their own: the agents listen at the port of the agent on all addresses of the loopback
// network, one for each pod.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // errors of the operator are in its own log
	if os.Getenv(namespaceVariable) != "" {
		os.Exit(runInNamespace(m))
	}
	if err := rerun(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runInNamespace runs the tests after the loopback interface is up. The API server advertises the address of the interface with the default
// route, which must not be in the loopback network.
func runInNamespace(m *testing.M) int {
	for _, arguments := range []string{"link set lo up", "address add 192.0.2.10/32 dev lo", "route add default dev lo"} {
		out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput() //nolint:noctx // it takes milliseconds
		if err != nil {
			fmt.Fprintf(os.Stderr, "ip %s: %v: %s\n", arguments, err, out)
			return 1
		}
	}
	return m.Run()
}

// rerun builds the operator and runs this test binary again in a new network namespace. Both the binary and the control plane may have to be
// downloaded or built first, and the namespace has no network.
func rerun() error {
	assets, err := envtestutil.Assets()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "streamweir-scale-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is in the folder for temporary files
	operator := filepath.Join(folder, "streamweir")
	if err := buildOperator(operator); err != nil {
		return err
	}
	command := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:noctx // the tests have their own timeout
	command.Env = append(os.Environ(), namespaceVariable+"=1", operatorVariable+"="+operator, assetsVariable+"="+assets)
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	command.SysProcAttr = ownNetwork()
	err = command.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return errors.New("the tests in the network namespace failed")
	}
	if err != nil {
		return fmt.Errorf("running in a network namespace, which needs Linux and root: %w", err)
	}
	return nil
}

// buildOperator builds the operator of this checkout.
func buildOperator(path string) error {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", path, ".") //nolint:noctx // the tests have their own timeout
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the operator: %w\n%s", err, out)
	}
	return nil
}
