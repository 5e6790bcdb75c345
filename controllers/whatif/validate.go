// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/config/crd"
	"streamweir.dev/streamweir/internal/crdschema"
)

// streamAppSchema is the schema of the shipped definition.
var streamAppSchema = sync.OnceValues(func() (*crdschema.Schema, error) { return crdschema.Parse(crd.StreamApps) })

// ValidateManifest returns an error if an API server would refuse to create the StreamApp. It names each field with its value and the violated
// rule. Integers of the manifest must be int64.
func ValidateManifest(manifest map[string]any) error {
	name, _, err := unstructured.NestedString(manifest, "metadata", "name")
	if err != nil || name == "" {
		return errors.New("the StreamApp has no name: set `metadata.name`")
	}
	return validate(name, manifest)
}

// validateSpec validates the spec of a StreamApp. The name is not validated: if a StreamApp is made for a workload, it is that of the workload,
// which may be longer.
func validateSpec(app *v1alpha1.StreamApp) error {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&app.Spec)
	if err != nil {
		return fmt.Errorf("converting the spec of StreamApp %s: %w", app.Name, err)
	}
	return validate(app.Name, map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "StreamApp", "metadata": map[string]any{"name": "any"}, "spec": spec,
	})
}

func validate(name string, manifest map[string]any) error {
	schema, err := streamAppSchema()
	if err != nil {
		return fmt.Errorf("loading the schema of StreamApp: %w", err)
	}
	var texts []string
	for _, violation := range schema.Validate(manifest, nil) {
		texts = append(texts, violationText(violation, manifest))
	}
	if len(texts) > 0 {
		return fmt.Errorf("StreamApp %s is invalid: %s", name, strings.Join(texts, "; "))
	}
	return nil
}

// violationText describes a violation by its field, value and rule. The error of a rule for several fields has no value, so it is looked up,
// except for a property of the application: a refused property is a credential.
func violationText(violation *field.Error, manifest map[string]any) string {
	rule := strings.TrimPrefix(violation.Detail, violation.Field+" in body ")
	_, omitted := violation.BadValue.(field.OmitValueType)
	if omitted && !strings.HasPrefix(violation.Field, "spec.streams.configs") {
		if value, err := json.Marshal(valueAt(manifest, violation.Field)); err == nil {
			return fmt.Sprintf("%s: %s: %s: %s", violation.Field, violation.Type, value, rule)
		}
	}
	described := *violation
	described.Detail = rule
	return described.Error()
}

// valueAt returns the value at a path such as spec.streams.stores[0]; nil if there is none.
func valueAt(value any, path string) any {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}
