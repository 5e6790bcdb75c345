// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdschema validates objects against custom resource definitions in process, with the code of the API server.
package crdschema

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Schema is the schema of one kind: its structure, list types and CEL rules.
type Schema struct {
	// Structural is the tree of fields.
	Structural *structuralschema.Structural

	openAPI validation.SchemaValidator
	rules   *cel.Validator
}

// Parse returns the schema of the first version in a definition, which is YAML.
func Parse(definition []byte) (*Schema, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &crd); err != nil {
		return nil, fmt.Errorf("decoding the definition: %w", err)
	}
	if len(crd.Spec.Versions) == 0 || crd.Spec.Versions[0].Schema == nil {
		return nil, fmt.Errorf("definition %s has no schema", crd.Name)
	}
	var props apiextensions.JSONSchemaProps
	v1Props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1Props, &props, nil); err != nil {
		return nil, fmt.Errorf("converting the schema of %s: %w", crd.Name, err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s is not structural: %w", crd.Name, err)
	}
	openAPI, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema of %s: %w", crd.Name, err)
	}
	return &Schema{Structural: structural, openAPI: openAPI, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Validate returns the errors with which an API server refuses to create an object, or, with an old object, to update it. Integers of the
// objects must be int64. The cost budget of the rules bounds the time. The errors are sorted by field, since the validator visits the fields of
// an object in random order.
func (s *Schema) Validate(object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), s.Structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), nil, "unknown field"))
	}
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.openAPI)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.Structural, object)...)
	var previous any // a typed nil would be an update of an empty object
	if old != nil {
		previous = old
	}
	ruleErrors, _ := s.rules.Validate(context.Background(), nil, s.Structural, object, previous, celconfig.RuntimeCELCostBudget)
	errs = append(errs, ruleErrors...)
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Error(), b.Error()))
	})
	return errs
}
