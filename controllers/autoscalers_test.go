// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"streamweir.dev/streamweir/controllers/decision"
)

// servedKinds is a mapper that knows the kinds of some groups, and fails for those of another group.
type servedKinds struct {
	meta.RESTMapper
	groups  []string
	failing string
}

func (m *servedKinds) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	switch {
	case kind.Group == m.failing:
		return nil, errors.New("the API server is not available")
	case slices.Contains(m.groups, kind.Group):
		return &meta.RESTMapping{}, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

// TestEachKindOfAutoscalerIsWatchedOnceItIsServed: CRDs are installed and discovery fails while the operator runs.
func TestEachKindOfAutoscalerIsWatchedOnceItIsServed(t *testing.T) {
	mapper := &servedKinds{groups: []string{"autoscaling"}}
	var watched []string
	all := &autoscalers{mapper: mapper, interval: time.Millisecond, watch: func(_ context.Context, object *unstructured.Unstructured) error {
		watched = append(watched, object.GetKind())
		return nil
	}}
	steps := []struct {
		change    func()
		want      []string
		all, fail bool
	}{
		{func() {}, []string{"HorizontalPodAutoscaler"}, false, false},
		{func() { mapper.groups = append(mapper.groups, "keda.sh") }, []string{"HorizontalPodAutoscaler", "ScaledObject"}, false, false},
		{func() { mapper.failing = "autoscaling.k8s.io" }, []string{"HorizontalPodAutoscaler", "ScaledObject"}, false, true},
	}
	for _, step := range steps {
		step.change()
		complete, err := all.watchServed(t.Context())
		if complete != step.all || (err != nil) != step.fail {
			t.Errorf("all kinds are watched: %v, error %v; want %v, %v", complete, err, step.all, step.fail)
		}
		wantNoDiff(t, "watched kinds", step.want, watched)
	}
	mapper.failing = ""
	mapper.groups = append(mapper.groups, "autoscaling.k8s.io")
	if err := all.Start(t.Context()); err != nil { // it ends because nothing is left to find
		t.Fatal(err)
	}
	if len(watched) != len(decision.AutoscalerKinds) || len(all.kinds()) != len(watched) {
		t.Errorf("watched kinds: %v", watched)
	}
}
