// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package controlplane pins what hack/control-plane.sh builds: the API server, kubectl and etcd that the tests start.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
