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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/controllers/whatif"
)

// scheme has the kinds that an answer depends on.
var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
}

// offline reads the objects of an application from manifests.
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

// parseManifests parses documents of YAML or JSON. Other kinds than those of the scheme are skipped.
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

// parseDocument parses one object, or a List of them. An unknown field is an error: it may be a mistyped one.
func parseDocument(document []byte) (whatif.Objects, error) {
	asJSON, err := yaml.ToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("not valid YAML; render templates first, for instance with helm template: %w", err)
	}
	if text := string(bytes.TrimSpace(asJSON)); text == "null" || text == "" {
		return nil, nil
	}
	object, _, err := decoder.Decode(asJSON, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, checkSkipped(asJSON)
	}
	if err != nil {
		return nil, err
	}
	switch o := object.(type) {
	case *corev1.List:
		return parseItems(o)
	case *v1alpha1.StreamApp:
		return whatif.Objects{o}, validateStreamApp(asJSON)
	case *v1alpha1.PodInjection, *appsv1.StatefulSet, *appsv1.Deployment,
		*corev1.Pod, *corev1.Node, *corev1.ConfigMap, *corev1.LimitRange, *corev1.ResourceQuota:
		return whatif.Objects{o.(whatif.Object)}, nil
	}
	return nil, nil
}

func parseItems(list *corev1.List) (whatif.Objects, error) {
	var all whatif.Objects
	for i := range list.Items {
		found, err := parseDocument(list.Items[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// validateStreamApp validates the manifest as written: in the Go type, a zero value is the same as a missing field.
func validateStreamApp(asJSON []byte) error {
	var manifest map[string]any
	if err := json.Unmarshal(asJSON, &manifest); err != nil {
		return err
	}
	return whatif.ValidateManifest(manifest)
}

// checkSkipped returns an error for a workload of an API group version that Kubernetes no longer serves. Other kinds are skipped.
func checkSkipped(asJSON []byte) error {
	var object metav1.TypeMeta
	if err := json.Unmarshal(asJSON, &object); err != nil {
		return err
	}
	kind := object.GroupVersionKind()
	workload := kind.Kind == string(v1alpha1.KindStatefulSet) || kind.Kind == string(v1alpha1.KindDeployment)
	if workload && (kind.Group == appsv1.GroupName || kind.Group == "extensions") {
		return fmt.Errorf("%s of %s: Kubernetes serves it as apps/v1 only (since 1.16), so `apiVersion` must be apps/v1", kind.Kind, object.APIVersion)
	}
	return nil
}

// pick returns the application with this name, or the only one. A StreamApp takes precedence over a workload without one.
func (s *source) pick(objects whatif.Objects, name string) (*v1alpha1.StreamApp, error) {
	var apps, workloads []*v1alpha1.StreamApp
	for _, object := range objects {
		target := decision.Target{Name: object.GetName()}
		switch typed := object.(type) {
		case *v1alpha1.StreamApp:
			apps = append(apps, typed)
			continue
		case *appsv1.StatefulSet:
			target.Kind = v1alpha1.KindStatefulSet
		case *appsv1.Deployment:
			target.Kind = v1alpha1.KindDeployment
		default:
			continue
		}
		if target.Name == "" {
			return nil, fmt.Errorf("a %s has no name: set `metadata.name`", target.Kind)
		}
		workloads = append(workloads, appFor(target, object.GetNamespace()))
	}
	if strings.Contains(name, "/") {
		target, err := parseTarget(name)
		if err != nil {
			return nil, err
		}
		workloads = slices.DeleteFunc(workloads, func(a *v1alpha1.StreamApp) bool { return decision.TargetOf(a) != target })
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

// only returns the single element, or an error for none and several.
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
	return nil, fmt.Errorf("the files have several applications; name one of %s (with -n, or as statefulset/NAME, if names are equal)",
		strings.Join(names, ", "))
}
