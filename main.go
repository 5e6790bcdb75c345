// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Streamweir is a Kubernetes operator that keeps Kafka Streams applications from being OOM-killed when their tasks migrate. This file parses the
// flags and starts the manager.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
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
	"streamweir.dev/streamweir/internal/operatorconfig"
)

const (
	// leaseName is the name of the Lease for leader election. config/rbac/leader_election_role.yaml permits access to it.
	leaseName = "streamweir.dev"

	// reportingController is the reporting controller of the operator's events.
	reportingController = "streamweir.dev/operator"

	// cacheSyncTimeout bounds the wait of the readiness probe for the caches. It is below the probe's own timeout of 1 s (the default of
	// timeoutSeconds in core/v1, Probe).
	cacheSyncTimeout = 500 * time.Millisecond
)

// options are the values of the flags.
type options struct {
	leaderElect           bool
	leaseNamespace        string
	probeAddress          string
	metricsAddress        string
	configFile            string
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

// run parses the flags and runs the operator until ctx is done.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("streamweir", flag.ContinueOnError)
	logging := textlogger.NewConfig()
	logging.AddFlags(flags)
	flags.Lookup("v").Usage = "The log level: 1 adds each write, higher levels add messages of the libraries."
	o := addFlags(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are accepted, see --help", flags.Arg(0))
	}
	logger := textlogger.NewLogger(logging)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server (run in a cluster, or set KUBECONFIG): %w", err)
	}
	return start(ctx, config, *o)
}

// addFlags defines the flags.
func addFlags(flags *flag.FlagSet) *options {
	o := &options{}
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"Let only the holder of the Lease "+leaseName+" act if there are several replicas.")
	flags.StringVar(&o.leaseNamespace, "leader-elect-namespace", "",
		"The namespace of the Lease. The default in a cluster is the operator's own namespace.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"The address of the probes /healthz and /readyz; 0 disables them.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0",
		"The address of /metrics, such as :8443, over HTTPS with authentication; 0 disables it.")
	flags.StringVar(&o.configFile, "config", "",
		"The file with the operator's configuration: Kafka clusters, and a hold of all applications. It is read again when it changes. "+
			"A missing file is an empty configuration, and a fault keeps the last good one.")
	flags.BoolVar(&o.allowBootstrapServers, "allow-bootstrap-servers", false,
		"Permit StreamApps to set bootstrap servers. The operator connects to any address in them, without credentials.")
	flags.BoolVar(&o.injectAgent, "inject-agent", true,
		"Inject the agent into pods of StreamApps in mode Enforce. It bounds RocksDB and reports. Without it pods only get limits and JVM options.")
	return o
}

// start sets up the manager and runs it until ctx is done.
func start(ctx context.Context, config *rest.Config, o options) error {
	mgr, err := newManager(config, o)
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	// Only the leader polls Kafka and the agents: by default the manager starts a Runnable once it holds the Lease.
	monitor := assignment.NewMonitor(assignment.MonitorOptions{Log: ctrl.Log.WithName("kafka")})
	configuration := operatorconfig.Open(operatorconfig.Options{
		Path: o.configFile, Apply: func(c operatorconfig.Config) { monitor.SetClusters(c.Clusters) },
		Report: controllers.RecordConfigReload, Log: ctrl.Log.WithName("config"),
	})
	if err := mgr.Add(configuration); err != nil {
		return fmt.Errorf("setting up the configuration: %w", err)
	}
	if err := mgr.Add(monitor); err != nil {
		return fmt.Errorf("setting up the monitor of Kafka groups: %w", err)
	}
	reports := reportclient.New(reportclient.Options{Log: ctrl.Log.WithName("reports")})
	if err := mgr.Add(reports); err != nil {
		return fmt.Errorf("setting up the client of the agents: %w", err)
	}
	reconciler := &controllers.StreamAppReconciler{
		Client:                mgr.GetClient(),
		APIReader:             mgr.GetAPIReader(),
		Recorder:              mgr.GetEventRecorder(reportingController),
		Groups:                monitor,
		Config:                configuration,
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
		Client: controllers.ClientOptions(),
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
		// The next leader need not wait for the Lease to expire. This is safe because the process ends right after the manager.
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

// withoutHTTP2 restricts the metrics server to HTTP/1.1. Its clients do not need HTTP/2, and rapid resets (CVE-2023-44487) are then
// impossible.
func withoutHTTP2(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }

// cachesSynced returns a check that passes once the caches are filled, on the leader and on standby replicas.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), cacheSyncTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
