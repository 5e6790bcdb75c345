// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package envtestutil

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	// ManifestsOwner is the field manager that applies manifests.
	ManifestsOwner = "manifests"

	// establishTimeout is how long a kind may take from its definition to its being served.
	establishTimeout = 30 * time.Second
)

// RenderFolder renders a kustomization of this checkout, such as "config/default", as kubectl would: namespaces and
// definitions of kinds come first.
func RenderFolder(folder string) ([]*unstructured.Unstructured, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return Render(filesys.MakeFsOnDisk(), filepath.Join(root, folder))
}

// Manifests returns the path of the folder config of this checkout, or of a file or folder in it.
func Manifests(elements ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{root, "config"}, elements...)...), nil
}

// Render renders the kustomization in a folder of a file system.
func Render(files filesys.FileSystem, folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	resources, err := krusty.MakeKustomizer(options).Run(files, folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	objects := make([]*unstructured.Unstructured, 0, resources.Size())
	for _, resource := range resources.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("rendering %s of %s: %w", resource.CurId(), folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", resource.CurId(), folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Apply applies objects in their order, server-side, and waits for each definition of a kind until the kind is served.
// The objects are not changed; what the API server answered is returned.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	applied := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		answer := object.DeepCopy()
		configuration := client.ApplyConfigurationFromUnstructured(answer)
		if err := c.Apply(ctx, configuration, client.FieldOwner(ManifestsOwner)); err != nil {
			return nil, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			if err := waitEstablished(ctx, c, answer); err != nil {
				return nil, err
			}
		}
		applied = append(applied, answer)
	}
	return applied, nil
}

func waitEstablished(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	established := func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, establishTimeout, true, established); err != nil {
		return fmt.Errorf("waiting until %s is served: %w", object.GetName(), err)
	}
	return nil
}
