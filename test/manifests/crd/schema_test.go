// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd validates objects against the generated definitions, in process.
package crd

import (
	"maps"
	"os"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/internal/crdschema"
	"streamweir.dev/streamweir/internal/envtestutil"
)

func loadSchema(t *testing.T, definition []byte) *crdschema.Schema {
	t.Helper()
	schema, err := crdschema.Parse(definition)
	if err != nil {
		t.Fatal(err)
	}
	return schema
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

// parse returns an object whose whole numbers are int64, as the API server decodes them.
func parse(t *testing.T, content string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatalf("reading %s: %v", content, err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(asJSON, &object); err != nil {
		t.Fatalf("reading %s: %v", content, err)
	}
	return object
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
