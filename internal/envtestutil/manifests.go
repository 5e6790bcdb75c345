// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package envtestutil

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"streamweir.dev/streamweir/internal/checkout"
)

const (
	// ManifestsOwner is the field manager that applies manifests.
	ManifestsOwner = "manifests"

	// establishTimeout is the longest time from the definition of a kind until the API server serves it.
	establishTimeout = 30 * time.Second
)

// RenderFolder renders a kustomization of this checkout, such as "config/default", in the order of kubectl: namespaces and
// definitions of kinds come first.
func RenderFolder(folder string) ([]*unstructured.Unstructured, error) {
	path, err := checkout.Path(folder)
	if err != nil {
		return nil, err
	}
	return Render(filesys.MakeFsOnDisk(), path)
}

// Manifests returns the path of the folder config of this checkout, or of a file or folder in it.
func Manifests(elements ...string) (string, error) {
	return checkout.Path(append([]string{"config"}, elements...)...)
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

// Apply applies objects in their order, server-side. After a definition it waits until the API server serves the kind.
// It returns the objects as the API server returned them; the arguments are not changed.
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
