// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Objects are objects of Kubernetes that are read as if from an API server, for instance those of some manifests.
type Objects []client.Object

var _ client.Reader = Objects{}

// Get gives the object of the type and the name, or an error that says that there is none. Manifests have no nodes as a rule, so each
// node counts as healthy where there is none at all.
func (o Objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	nodes := false
	for _, object := range o {
		if _, is := object.(*corev1.Node); is {
			nodes = true
		}
		if reflect.TypeOf(object) == reflect.TypeOf(into) && client.ObjectKeyFromObject(object) == key {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
			return nil
		}
	}
	if _, is := into.(*corev1.Node); is && !nodes {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// List gives the objects of the list's type in a namespace, or in all.
func (o Objects) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(pointer).Elem()
	for _, object := range o {
		value := reflect.ValueOf(object.DeepCopyObject()).Elem()
		if value.Type() == items.Type().Elem() && (asked.Namespace == "" || asked.Namespace == object.GetNamespace()) {
			items.Set(reflect.Append(items, value))
		}
	}
	return nil
}

// lenient reads for somebody who may have fewer rights than the operator, from a cluster in which the operator may not be installed. What
// an index of the operator's cache answers, it picks by itself. What may not be read counts as not there, and nodes as healthy.
type lenient struct{ client.Reader }

// Get reads one object.
func (l lenient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, into, options...)
	if !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
		return err
	}
	switch into.(type) {
	case *corev1.Node:
		return nil
	case *v1alpha1.PodInjection:
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
	}
	return err
}

// List reads all objects of a kind, and keeps those that have the value of an index.
func (l lenient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	fields := asked.FieldSelector
	asked.FieldSelector = nil
	err := l.Reader.List(ctx, list, &asked)
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		switch list.(type) {
		case *corev1.LimitRangeList, *corev1.ResourceQuotaList, *v1alpha1.StreamAppList:
			return nil
		}
	}
	if err != nil || fields == nil {
		return err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for _, required := range fields.Requirements() {
		for i := range all {
			if object, is := all[i].(client.Object); !is || !slices.Contains(indexed(object, required.Field), required.Value) {
				all[i] = nil
			}
		}
	}
	return meta.SetList(list, slices.DeleteFunc(all, func(o runtime.Object) bool { return o == nil }))
}

// indexed are the values that an index has for an object.
func indexed(object client.Object, field string) []string {
	for _, i := range indexes {
		if i.field == field && reflect.TypeOf(i.object) == reflect.TypeOf(object) {
			return i.values(object)
		}
	}
	return nil
}
