// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Streamweir is a Kubernetes operator that keeps Kafka Streams applications from being OOM-killed when their tasks move.
// This file is flags, manager, set-up and start; what it does is in the packages controllers, memplan and assignment.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"streamweir.dev/streamweir/agent"
	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers"
)

const (
	// leaseName is the Lease that the replicas compete for; config/rbac/leader_election_role.yaml permits this one.
	leaseName = "streamweir.dev"

	// reportingController is who sends the operator's events.
	reportingController = "streamweir.dev/operator"

	// syncedWithin bounds how long the readiness probe waits for the caches: below the probe's own timeout of a second
	// (the default of timeoutSeconds in core/v1, Probe).
	syncedWithin = 500 * time.Millisecond
)

// options are what the flags say.
type options struct {
	leaderElect           bool
	leaseNamespace        string
	probeAddress          string
	metricsAddress        string
	kafkaClusters         string
	allowBootstrapServers bool
	injectAgent           bool
}

func main() {
	ctx := ctrl.SetupSignalHandler()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "streamweir:", err)
		os.Exit(1)
	}
}

// run reads the flags and runs the operator until ctx is done.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("streamweir", flag.ContinueOnError)
	logging := textlogger.NewConfig()
	logging.AddFlags(flags)
	flags.Lookup("v").Usage = "How much is logged: 1 adds every write, larger numbers add what the libraries do."
	o := addFlags(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are taken, see --help", flags.Arg(0))
	}
	logger := textlogger.NewLogger(logging)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: run in a cluster, or set KUBECONFIG: %w", err)
	}
	return start(ctx, config, *o)
}

// addFlags defines the flags.
func addFlags(flags *flag.FlagSet) *options {
	o := &options{}
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"Of several replicas, only the holder of the Lease "+leaseName+" acts.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-namespace", "",
		"The namespace of the Lease; in a cluster, the operator's own unless set.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"The address for the probes /healthz and /readyz; 0 turns them off.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0",
		"The address for /metrics, over HTTPS and with authentication, for instance :8443; 0 turns it off.")
	flags.StringVar(&o.kafkaClusters, "kafka-clusters", "",
		"The file with the Kafka clusters that StreamApps may name. It is read at the start; if it does not exist, there are none.")
	flags.BoolVar(&o.allowBootstrapServers, "allow-bootstrap-servers", false,
		"StreamApps may also give bootstrap servers of their own; the operator then connects to whatever they say, without credentials.")
	flags.BoolVar(&o.injectAgent, "inject-agent", true,
		"Pods of StreamApps in mode Enforce get the agent, which bounds RocksDB and reports; without it they get limits and JVM options only.")
	return o
}

// start sets up the manager and runs it until ctx is done.
func start(ctx context.Context, config *rest.Config, o options) error {
	clusters, err := loadClusters(o.kafkaClusters)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, o)
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	// Only the leader polls Kafka: a Runnable waits for the Lease unless it says otherwise.
	monitor := assignment.NewMonitor(assignment.MonitorOptions{Clusters: clusters, Log: ctrl.Log.WithName("kafka")})
	if err := mgr.Add(monitor); err != nil {
		return fmt.Errorf("setting up the monitor of Kafka groups: %w", err)
	}
	reports := reportclient.New(reportclient.Options{Log: ctrl.Log.WithName("reports")})
	if err := mgr.Add(reports); err != nil {
		return fmt.Errorf("setting up the reports of pods: %w", err)
	}
	reconciler := &controllers.StreamAppReconciler{
		Client:                mgr.GetClient(),
		APIReader:             mgr.GetAPIReader(),
		Recorder:              mgr.GetEventRecorder(reportingController),
		Groups:                monitor,
		Reports:               reports,
		Clock:                 clock.RealClock{},
		AllowBootstrapServers: o.allowBootstrapServers,
	}
	if o.injectAgent {
		reconciler.AgentJar = agent.Jar
	}
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with its probes.
func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(),
		Metrics: metricsserver.Options{
			BindAddress:    o.metricsAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts:        []func(*tls.Config){withoutHTTP2},
		},
		HealthProbeBindAddress:  o.probeAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: o.leaseNamespace,
		// Safe, as the process ends right after the manager: the next leader need not wait for the Lease to run out.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", cachesSynced(mgr)),
	)
}

// withoutHTTP2 keeps the metrics server at HTTP/1.1: its clients need no more, and the rapid resets of HTTP/2
// (CVE-2023-44487) cannot be sent to it.
func withoutHTTP2(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }

// cachesSynced is ready when the caches are filled: on the leader, and on a standby that could take over.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), syncedWithin)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}

// loadClusters reads the operator's Kafka clusters. A file that does not exist is none: the shipped Deployment names one
// that is optional.
func loadClusters(path string) ([]assignment.ClusterConfig, error) {
	if path == "" {
		return nil, nil
	}
	clusters, err := assignment.LoadClusters(path)
	if errors.Is(err, fs.ErrNotExist) {
		ctrl.Log.Info("No Kafka clusters are configured", "file", path)
		return nil, nil
	}
	return clusters, err
}
