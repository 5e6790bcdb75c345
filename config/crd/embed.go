// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the generated custom resource definitions.
package crd

import _ "embed"

// StreamApps is the definition of StreamApp, in YAML.
//
//go:embed bases/streamweir.dev_streamapps.yaml
var StreamApps []byte

// PodInjections is the definition of PodInjection, in YAML.
//
//go:embed bases/streamweir.dev_podinjections.yaml
var PodInjections []byte
