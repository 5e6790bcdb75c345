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

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/whatif"
)

// live reads the objects of an application from the cluster of the kubeconfig.
func (s *source) live(ctx context.Context, name string) (*v1alpha1.StreamApp, whatif.Objects, error) {
	if name == "" {
		return nil, nil, fmt.Errorf("name a StreamApp or a workload (statefulset/orders), or give manifests with -f")
	}
	cluster, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	var app *v1alpha1.StreamApp
	if kind, workload, ok := strings.Cut(name, "/"); ok {
		app, err = appFor(kind, workload, cluster.namespace)
	} else if app, err = cluster.streamApp(ctx, name); err != nil {
		err = fmt.Errorf("reading StreamApp %s in namespace %s (or name a workload: statefulset/%s): %w", name, cluster.namespace, name, err)
	}
	if err != nil {
		return nil, nil, err
	}
	objects, err := cluster.objects(ctx, app)
	return app, objects, err
}

// workloadKinds are the kinds as people write them.
var workloadKinds = map[string]v1alpha1.WorkloadKind{
	"statefulset": v1alpha1.KindStatefulSet, "statefulsets": v1alpha1.KindStatefulSet, "sts": v1alpha1.KindStatefulSet,
	"deployment": v1alpha1.KindDeployment, "deployments": v1alpha1.KindDeployment, "deploy": v1alpha1.KindDeployment,
}

// appFor returns a StreamApp for a workload without one: it has a target and nothing else.
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

// completeWithin bounds the time for which a shell waits for names.
const completeWithin = 3 * time.Second

// complete offers the StreamApps of the cluster.
func (s *source) complete(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || len(s.files) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cluster, err := s.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(command.Context(), completeWithin)
	defer cancel()
	names, err := cluster.streamAppNames(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
