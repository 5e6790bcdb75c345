// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/internal/envtestutil"
)

// within bounds every wait. It is far longer than any step takes, for busy machines.
const within = time.Minute

// operator is the service account of the operator in config/default.
const operator = "system:serviceaccount:streamweir-system:streamweir-controller-manager"

func TestInvalidOptionsAreRefused(t *testing.T) {
	// No case connects to this server: all fail earlier.
	t.Setenv("KUBECONFIG", writeKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":                        {args: []string{"--metrics-secure=false"}, want: "not defined: -metrics-secure"},
		"argument":                            {args: []string{"start"}, want: `unexpected argument "start"`},
		"invalid address":                     {args: []string{"--health-probe-bind-address=:x"}, want: "setting up the manager"},
		"leader election without a namespace": {args: []string{"--leader-elect", "--health-probe-bind-address=0"}, want: "namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			gomega.NewWithT(t).Expect(run(t.Context(), tc.args)).To(gomega.MatchError(gomega.ContainSubstring(tc.want)))
		})
	}
	gomega.NewWithT(t).Expect(run(t.Context(), []string{"--help"})).To(gomega.Succeed())
}

func TestOperatorRunsWithItsOwnRoleAndReleasesTheLease(t *testing.T) {
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(within)
	environment, err := envtestutil.Start(false)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { g.Expect(environment.Stop()).To(gomega.Succeed()) })
	admin, err := client.New(environment.Config, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	manifests, err := envtestutil.RenderFolder("config/default")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = envtestutil.Apply(t.Context(), admin, manifests)
	g.Expect(err).NotTo(gomega.HaveOccurred())

	config := rest.CopyConfig(environment.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operator, Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:streamweir-system", "system:authenticated",
	}}
	faulty := filepath.Join(t.TempDir(), "config.yaml") // does not end the operator
	g.Expect(os.WriteFile(faulty, []byte("clusters: [{name: prod, bootstrapServer: [a:9092]}]"), 0o600)).To(gomega.Succeed())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	probes := freeAddress(t)
	metrics := freeAddress(t)
	ended := make(chan error, 1)
	go func() {
		ended <- start(ctx, config, options{
			leaderElect: true, leaseNamespace: "streamweir-system", probeAddress: probes, metricsAddress: metrics,
			configFile: faulty,
		})
	}()

	g.Eventually(holder).WithArguments(t.Context(), admin).ShouldNot(gomega.BeEmpty())
	g.Eventually(statusOf).WithArguments("http://" + probes + "/healthz").Should(gomega.Equal(http.StatusOK))
	g.Eventually(statusOf).WithArguments("http://" + probes + "/readyz").Should(gomega.Equal(http.StatusOK))
	g.Eventually(statusOf).WithArguments("https://" + metrics + "/metrics").Should(gomega.Equal(http.StatusUnauthorized))

	stop()
	g.Eventually(ended).Should(gomega.Receive(gomega.BeNil()))
	g.Expect(holder(t.Context(), admin)).To(gomega.BeEmpty())
}

// holder returns the holder of the operator's Lease; empty without one.
func holder(ctx context.Context, c client.Client) string {
	var lease coordinationv1.Lease
	if c.Get(ctx, client.ObjectKey{Namespace: "streamweir-system", Name: leaseName}, &lease) != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// statusOf returns the status code of a GET without credentials; 0 without a response.
func statusOf(url string) int {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0
	}
	response, err := (&http.Client{Transport: transport, Timeout: within}).Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// freeAddress returns an unused local address.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// writeKubeconfig writes a kubeconfig without credentials and returns its path.
func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x}}],
clusters: [{name: x, cluster: {server: %q}}]}`, config.Host)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
