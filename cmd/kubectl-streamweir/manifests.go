// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/whatif"
)

// scheme knows the kinds that are read.
var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

// offline reads the manifests of the files, and picks the StreamApp that is asked about.
func (s *source) offline(in io.Reader, name string) (*v1alpha1.StreamApp, whatif.Objects, error) {
	var objects whatif.Objects
	for _, file := range s.files {
		content, err := readFile(in, file)
		if err != nil {
			return nil, nil, err
		}
		found, err := parseManifests(content)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	for _, object := range objects {
		if _, is := object.(*corev1.Node); !is && object.GetNamespace() == "" {
			object.SetNamespace(cmp.Or(s.namespace, corev1.NamespaceDefault))
		}
	}
	app, err := s.pick(objects, name)
	return app, objects, err
}

func readFile(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}

// parseManifests reads documents of YAML or JSON. Kinds that the planner does not look at are skipped.
func parseManifests(content []byte) (whatif.Objects, error) {
	var objects whatif.Objects
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		found, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		objects = append(objects, found...)
	}
}

var decoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

// parseDocument reads one object, or a List of them. A field that the kind does not have is an error: it may be a mistyped one.
func parseDocument(document []byte) (whatif.Objects, error) {
	asJSON, err := yaml.ToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("this is no YAML: render templates first, for instance with helm template: %w", err)
	}
	if text := string(bytes.TrimSpace(asJSON)); text == "null" || text == "" {
		return nil, nil
	}
	object, kind, err := decoder.Decode(asJSON, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch o := object.(type) {
	case *corev1.List:
		var all whatif.Objects
		for i := range o.Items {
			found, err := parseDocument(o.Items[i].Raw)
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
			all = append(all, found...)
		}
		return all, nil
	case *v1alpha1.StreamApp, *v1alpha1.PodInjection, *appsv1.StatefulSet, *appsv1.Deployment,
		*corev1.Pod, *corev1.Node, *corev1.ConfigMap, *corev1.LimitRange, *corev1.ResourceQuota:
		return whatif.Objects{o.(whatif.Object)}, nil
	}
	if kind.Kind == "StatefulSet" || kind.Kind == "Deployment" {
		return nil, fmt.Errorf("%s of %s: Kubernetes serves it as apps/v1 only (since 1.16), so `apiVersion` must be apps/v1", kind.Kind, kind.GroupVersion())
	}
	return nil, nil
}

// pick finds the StreamApp that is meant: of the name, or the only one, or one made for the workload of the name, or for the only one.
func (s *source) pick(objects whatif.Objects, name string) (*v1alpha1.StreamApp, error) {
	var apps, workloads []*v1alpha1.StreamApp
	for _, object := range objects {
		if app, is := object.(*v1alpha1.StreamApp); is {
			apps = append(apps, app)
		}
		for _, kind := range []string{"StatefulSet", "Deployment"} {
			if strings.HasSuffix(fmt.Sprintf("%T", object), "."+kind) {
				app, err := appFor(kind, object.GetName(), object.GetNamespace())
				if err != nil {
					return nil, fmt.Errorf("a %s without a name: set `metadata.name`", kind)
				}
				workloads = append(workloads, app)
			}
		}
	}
	if kind, workload, ok := strings.Cut(name, "/"); ok {
		wanted, err := appFor(kind, workload, "")
		if err != nil {
			return nil, err
		}
		workloads = slices.DeleteFunc(workloads, func(a *v1alpha1.StreamApp) bool { return a.Spec.TargetRef != wanted.Spec.TargetRef })
		return only(workloads, name)
	}
	for _, list := range [][]*v1alpha1.StreamApp{apps, workloads} {
		if name != "" {
			list = slices.DeleteFunc(list, func(a *v1alpha1.StreamApp) bool { return a.Name != name })
		}
		if len(list) > 0 {
			return only(list, name)
		}
	}
	return only(nil, name)
}

// only is the one that there is.
func only(apps []*v1alpha1.StreamApp, name string) (*v1alpha1.StreamApp, error) {
	switch len(apps) {
	case 1:
		return apps[0], nil
	case 0:
		if name != "" {
			return nil, fmt.Errorf("the files have no StreamApp, StatefulSet or Deployment %s", name)
		}
		return nil, errors.New("the files have no StreamApp, StatefulSet or Deployment")
	}
	var names []string
	for _, app := range apps {
		names = append(names, app.Namespace+"/"+app.Name)
	}
	return nil, fmt.Errorf("the files have several applications: name one of %s (with -n, or as statefulset/NAME, where names are the same)",
		strings.Join(names, ", "))
}
