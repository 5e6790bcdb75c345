// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/assignment/kfakestreams"
	"streamweir.dev/streamweir/internal/envtestutil"
	"streamweir.dev/streamweir/internal/fakekubelet"
)

const (
	namespace         = "shop"
	name              = "orders"
	operatorNamespace = "streamweir-system"
	operatorAccount   = "system:serviceaccount:" + operatorNamespace + ":streamweir-controller-manager"
	replicas          = 3
	partitions        = 12
)

//go:embed orders.yaml
var manifests []byte

// startControlPlane starts kube-apiserver and etcd.
func (d *demo) startControlPlane(context.Context) error {
	environment, err := envtestutil.Start(false)
	if err != nil {
		return err
	}
	d.onStop(environment.Stop)
	if d.folder, err = os.MkdirTemp("", "streamweir-demo-"); err != nil {
		return fmt.Errorf("making a folder for files: %w", err)
	}
	d.onStop(func() error { return os.RemoveAll(d.folder) })
	d.config = environment.Config
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if d.client, err = client.New(d.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	d.kubeconfig, err = d.writeKubeconfig("kubeconfig", "")
	return err
}

// writeKubeconfig writes a kubeconfig file for the administrator of the control plane, or for the user actAs.
func (d *demo) writeKubeconfig(file, actAs string) (string, error) {
	user := &clientcmdapi.AuthInfo{
		ClientCertificateData: d.config.CertData, ClientKeyData: d.config.KeyData, Impersonate: actAs,
	}
	if actAs != "" {
		user.ImpersonateGroups = []string{
			"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + operatorNamespace,
		}
	}
	path := filepath.Join(d.folder, file)
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"demo": {
			Server: d.config.Host, CertificateAuthorityData: d.config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"demo": user},
		Contexts:       map[string]*clientcmdapi.Context{"demo": {Cluster: "demo", AuthInfo: "demo", Namespace: namespace}},
		CurrentContext: "demo",
	}, path)
	if err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return path, nil
}

// install applies config/default.
func (d *demo) install(ctx context.Context) error {
	objects, err := envtestutil.RenderFolder("config/default")
	if err != nil {
		return err
	}
	_, err = envtestutil.Apply(ctx, d.client, objects)
	return err
}

// startKafka starts the in-process Kafka cluster with the application's topics and its group, which has no members yet.
func (d *demo) startKafka(context.Context) error {
	kafka, err := kfakestreams.New()
	if err != nil {
		return err
	}
	d.onStop(func() error { kafka.Close(); return nil })
	d.kafka = kafka
	err = kafka.Add(kfakestreams.App{
		ID: name, Protocol: assignment.Classic, Threads: 2,
		Subtopologies: []kfakestreams.Subtopology{{
			Sources: []string{"orders"}, Partitions: partitions,
			Stores: []kfakestreams.Store{{Name: "orders-by-customer", Kind: assignment.KeyValue}},
		}},
	})
	if err != nil {
		return err
	}
	clusters := assignment.ClusterConfig{Name: "demo", BootstrapServers: kafka.ListenAddrs()}
	if d.group, err = assignment.NewCluster(clusters); err != nil {
		return err
	}
	d.onStop(func() error { d.group.Close(); return nil })
	file := fmt.Sprintf("clusters: [{name: demo, bootstrapServers: [%s], allowedNamespaces: [\"*\"]}]\n", strings.Join(clusters.BootstrapServers, ", "))
	return os.WriteFile(d.configFile(), []byte(file), 0o600)
}

func (d *demo) configFile() string { return filepath.Join(d.folder, "config.yaml") }

// startNodes starts three simulated nodes, with kubelets, scheduler and workload controllers.
func (d *demo) startNodes(ctx context.Context) error {
	clientset, err := kubernetes.NewForConfig(d.config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	options := fakekubelet.Options{Namespace: namespace}
	for i := range replicas {
		options.Nodes = append(options.Nodes, fakekubelet.Node{Name: nodeName(i), Memory: resource.MustParse("16Gi")})
	}
	d.nodes = fakekubelet.New(clientset, options)
	d.background(ctx, "the nodes", d.nodes.Start)
	return nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// background runs a component until the demo ends. The demo fails if the component ends earlier.
func (d *demo) background(ctx context.Context, component string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); ctx.Err() == nil {
			d.fail(fmt.Errorf("%s ended unexpectedly: %w", component, err))
		}
	}()
	d.onStop(func() error { cancel(); <-ended; return nil })
}

// startOperator runs the operator's binary with the service account and the permissions of config/default.
func (d *demo) startOperator(ctx context.Context) error {
	kubeconfig, err := d.writeKubeconfig("operator.kubeconfig", operatorAccount)
	if err != nil {
		return err
	}
	log := &tail{}
	d.background(ctx, "the operator", func(ctx context.Context) error {
		// Without the agent: there are no JVMs to run it in, and the group shows the task assignment.
		command := exec.CommandContext(ctx, d.operatorBinary,
			"--config="+d.configFile(), "--inject-agent=false", "--health-probe-bind-address=0", "-v=2")
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		command.Stdout, command.Stderr = log, log
		// A process group of its own: an interrupt at the terminal reaches only the demo, which stops the operator.
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
		command.WaitDelay = 10 * time.Second
		err := command.Run()
		return fmt.Errorf("%w; the last lines of its log:\n%s", err, log)
	})
	d.operatorLog = log
	return nil
}

// applyManifests creates the namespace and the objects of orders.yaml, and returns the text of the StreamApp.
func (d *demo) applyManifests(ctx context.Context) (string, error) {
	if err := d.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return "", fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("reading orders.yaml: %w", err)
		}
		if err := d.client.Create(ctx, object); err != nil {
			return "", fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	_, added, _ := strings.Cut(string(manifests), "# The user adds:\n")
	return added, nil
}

// scale sets the replicas of the StatefulSet.
func (d *demo) scale(ctx context.Context) error {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := d.client.Patch(ctx, set, patch); err != nil {
		return fmt.Errorf("scaling StatefulSet %s: %w", name, err)
	}
	return nil
}

// kubectl runs the real kubectl and returns its output.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	assets, err := envtestutil.Assets()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(assets, "kubectl"), append([]string{"--kubeconfig", d.kubeconfig}, args...)...)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// tail is a writer that keeps the last bytes.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// maxTail is the number of bytes of the operator's log that a failed demo prints.
const maxTail = 8 << 10

// Write appends p and drops the oldest bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(p), nil
}

// String returns the kept bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// demo contains the running components.
type demo struct {
	show

	operatorBinary string
	folder         string
	kubeconfig     string
	config         *rest.Config
	client         client.Client
	kafka          *kfakestreams.Cluster
	group          *assignment.Cluster
	nodes          *fakekubelet.Cluster
	operatorLog    *tail

	// before is the view before the node failure, lost the pod on the failed node.
	before *view
	lost   string

	fail  context.CancelCauseFunc
	stops []func() error
}

// onStop registers a function that stops a component.
func (d *demo) onStop(stop func() error) { d.stops = append(d.stops, stop) }

// stopAll stops all components, the last one first.
func (d *demo) stopAll() {
	for _, stop := range slices.Backward(d.stops) {
		if err := stop(); err != nil {
			d.printf("stopping a component: %v\n", err)
		}
	}
}
