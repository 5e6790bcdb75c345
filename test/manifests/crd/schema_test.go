// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd validates objects against the generated definitions, in process.
package crd

import (
	"maps"
	"os"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/internal/envtestutil"
)

// schema validates objects of one kind as the API server does: structure, lists and rules, from the generated definition.
type schema struct {
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

func loadSchema(t *testing.T, file string) schema {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	readYAML(t, manifest(t, "crd", "bases", file), definition)
	props := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil)
	if err != nil {
		t.Fatalf("converting the schema in %s: %v", file, err)
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatalf("the schema in %s is not structural: %v", file, err)
	}
	openAPI, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatalf("making a validator of %s: %v", file, err)
	}
	return schema{structural: structural, openAPI: openAPI, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// manifest returns the path of a file or folder in config.
func manifest(t *testing.T, elements ...string) string {
	t.Helper()
	path, err := envtestutil.Manifests(elements...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
}

// validate returns the errors of the API server for a create, or for an update if there is an old object.
func (s schema) validate(t *testing.T, object, old map[string]any) field.ErrorList {
	t.Helper()
	var errors field.ErrorList
	for _, unknown := range pruning.PruneWithOptions(cloneMap(t, object), s.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		errors = append(errors, field.Invalid(field.NewPath(unknown), nil, "unknown field"))
	}
	errors = append(errors, validation.ValidateCustomResource(nil, object, s.openAPI)...)
	errors = append(errors, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	// A typed nil would be an update of an empty object.
	var previous any
	if old != nil {
		previous = old
	}
	ruleErrors, _ := s.rules.Validate(t.Context(), nil, s.structural, object, previous, celconfig.RuntimeCELCostBudget)
	return append(errors, ruleErrors...)
}

func cloneMap(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(content))
}

func parse(t *testing.T, content string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(content), &object); err != nil {
		t.Fatalf("reading %s: %v", content, err)
	}
	return withIntegers(object).(map[string]any)
}

// withIntegers converts whole numbers to int64, as the API server does.
func withIntegers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = withIntegers(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = withIntegers(inner)
		}
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}

// messages collects the messages of all rules in a schema.
func messages(s *structuralschema.Structural, into map[string]bool) {
	if s == nil {
		return
	}
	for _, rule := range s.XValidations {
		into[rule.Message] = true
	}
	messages(s.Items, into)
	for _, property := range s.Properties {
		messages(&property, into)
	}
}

// schemaFields collects the paths of all fields under a schema; lists add nothing to a path.
func schemaFields(path string, s *structuralschema.Structural) map[string]bool {
	if s.Items != nil {
		return schemaFields(path, s.Items)
	}
	fields := map[string]bool{}
	for name, property := range s.Properties {
		fields[path+"."+name] = true
		maps.Copy(fields, schemaFields(path+"."+name, &property))
	}
	return fields
}

// fieldsOf collects the paths of all fields in a value, as schemaFields does.
func fieldsOf(value any) map[string]bool {
	fields := map[string]bool{}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			fields["."+name] = true
			for path := range fieldsOf(inner) {
				fields["."+name+path] = true
			}
		}
	case []any:
		for _, inner := range value {
			maps.Copy(fields, fieldsOf(inner))
		}
	}
	return fields
}
