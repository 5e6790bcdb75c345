// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// live reads from the cluster of the kubeconfig.
func (s *source) live(ctx context.Context, name string) (*v1alpha1.StreamApp, client.Reader, error) {
	if name == "" {
		return nil, nil, fmt.Errorf("name a StreamApp or a workload (statefulset/orders), or give manifests with -f")
	}
	reader, namespace, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	if kind, workload, ok := strings.Cut(name, "/"); ok {
		app, err := appFor(kind, workload, namespace)
		return app, reader, err
	}
	var app v1alpha1.StreamApp
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &app); err != nil {
		return nil, nil, fmt.Errorf("reading StreamApp %s in namespace %s (or name a workload: statefulset/%s): %w", name, namespace, name, err)
	}
	return &app, reader, nil
}

// connect makes a client for the cluster of the kubeconfig, and says which namespace is meant.
func (s *source) connect() (client.Reader, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.context}
	overrides.Context.Namespace = s.namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cluster (or give manifests with -f): %w", err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cluster (or give manifests with -f): %w", err)
	}
	reader, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the cluster: %w", err)
	}
	return reader, namespace, nil
}

// workloadKinds are the kinds as people write them.
var workloadKinds = map[string]v1alpha1.WorkloadKind{
	"statefulset": v1alpha1.KindStatefulSet, "statefulsets": v1alpha1.KindStatefulSet, "sts": v1alpha1.KindStatefulSet,
	"deployment": v1alpha1.KindDeployment, "deployments": v1alpha1.KindDeployment, "deploy": v1alpha1.KindDeployment,
}

// appFor is a StreamApp for a workload that has none: nothing is said but its target.
func appFor(kind, name, namespace string) (*v1alpha1.StreamApp, error) {
	known, ok := workloadKinds[strings.ToLower(kind)]
	if !ok || name == "" {
		return nil, fmt.Errorf("%s/%s: it must be statefulset/NAME or deployment/NAME", kind, name)
	}
	return &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.StreamAppSpec{TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: known, Name: name}},
	}, nil
}

// completeWithin bounds how long a shell waits for names.
const completeWithin = 3 * time.Second

// complete offers the StreamApps of the cluster.
func (s *source) complete(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || len(s.files) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	reader, namespace, err := s.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(command.Context(), completeWithin)
	defer cancel()
	var apps v1alpha1.StreamAppList
	if err := reader.List(ctx, &apps, client.InNamespace(namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range apps.Items {
		names = append(names, apps.Items[i].Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
