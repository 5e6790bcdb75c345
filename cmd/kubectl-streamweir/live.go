// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/controllers/whatif"
)

// live reads the objects of an application from the cluster of the kubeconfig.
func (s *source) live(ctx context.Context, name string) (*v1alpha1.StreamApp, whatif.Objects, error) {
	if name == "" {
		return nil, nil, errors.New("an application is required: a StreamApp, a workload such as statefulset/orders, or manifests with -f")
	}
	cluster, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	app, err := cluster.app(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	objects, err := cluster.objects(ctx, app)
	return app, objects, err
}

// app returns the StreamApp with this name, or makes one for the workload KIND/NAME.
func (c *cluster) app(ctx context.Context, name string) (*v1alpha1.StreamApp, error) {
	if strings.Contains(name, "/") {
		target, err := parseTarget(name)
		if err != nil {
			return nil, err
		}
		return appFor(target, c.namespace), nil
	}
	app, err := c.streamApp(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading StreamApp %s in namespace %s (for a workload without one: statefulset/%s): %w", name, c.namespace, name, err)
	}
	return app, nil
}

// workloadKinds are the accepted names of kinds.
var workloadKinds = map[string]v1alpha1.WorkloadKind{
	"statefulset": v1alpha1.KindStatefulSet, "statefulsets": v1alpha1.KindStatefulSet, "sts": v1alpha1.KindStatefulSet,
	"deployment": v1alpha1.KindDeployment, "deployments": v1alpha1.KindDeployment, "deploy": v1alpha1.KindDeployment,
}

// parseTarget parses KIND/NAME.
func parseTarget(text string) (decision.Target, error) {
	kind, name, _ := strings.Cut(text, "/")
	known, ok := workloadKinds[strings.ToLower(kind)]
	if !ok || name == "" {
		return decision.Target{}, fmt.Errorf("%s: it must be statefulset/NAME or deployment/NAME", text)
	}
	return decision.Target{Kind: known, Name: name}, nil
}

// appFor returns a StreamApp for a workload without one. Only its target is set.
func appFor(target decision.Target, namespace string) *v1alpha1.StreamApp {
	return &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: target.Name},
		Spec:       v1alpha1.StreamAppSpec{TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: target.Kind, Name: target.Name}},
	}
}

// completeWithin bounds the time of a completion.
const completeWithin = 3 * time.Second

// complete returns the names of the StreamApps in the cluster.
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
