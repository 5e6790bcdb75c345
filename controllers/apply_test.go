// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// refusing is a reconciler whose patches of pods fail as said, by the pod's name; the others are noted in order.
func refusing(failures map[string]error, patched *[]string) *StreamAppReconciler {
	patch := func(pod client.Object) error {
		if err := failures[pod.GetName()]; err != nil {
			return err
		}
		*patched = append(*patched, pod.GetName())
		return nil
	}
	return &StreamAppReconciler{Client: interceptor.NewClient(nil, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, pod client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return patch(pod)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, pod client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			return patch(pod)
		},
	})}
}

func TestOnePodsErrorKeepsNoOtherFromBeingRaisedAndTold(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "orders-0", errors.New("it was changed"))
	broken := apierrors.NewInternalError(errors.New("failed calling webhook"))
	cases := map[string]struct {
		failures     map[string]error
		want         []string
		wantConflict bool
		wantError    string // of raising
	}{
		"all go through":                    {nil, []string{"orders-0", "orders-1", "orders-2"}, false, ""},
		"the first has changed":             {map[string]error{"orders-0": conflict}, []string{"orders-1", "orders-2"}, true, "it was changed"},
		"a webhook fails for one":           {map[string]error{"orders-1": broken}, []string{"orders-0", "orders-2"}, false, "pod orders-1"},
		"of several failures the first":     {map[string]error{"orders-1": broken, "orders-2": broken}, []string{"orders-0"}, false, "pod orders-1"},
		"a failure says more than a change": {map[string]error{"orders-0": broken, "orders-2": conflict}, []string{"orders-1"}, false, "pod orders-0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obs := observed(t, given{})
			want := &desired{generation: "g"}
			for i := range obs.pods {
				want.resizes = append(want.resizes, resizeWanted{pod: &obs.pods[i], from: 1, to: 2})
				want.touches = append(want.touches, obs.pods[i].name)
			}
			var raised, told []string
			raising := refusing(c.failures, &raised).applyResizes(t.Context(), obs, want, &applied{refused: map[string]refusal{}})
			telling := refusing(c.failures, &told).touch(t.Context(), obs, want)
			if diff := cmp.Diff(map[string][]string{"raised": c.want, "told": c.want}, map[string][]string{"raised": raised, "told": told}); diff != "" {
				t.Errorf("pods differ (-want +got):\n%s", diff)
			}
			if (raising == nil) != (c.wantError == "") || (telling == nil) != (c.wantError == "") {
				t.Fatalf("raising = %v, telling = %v, want an error each that says %q", raising, telling, c.wantError)
			}
			if raising != nil && (!strings.Contains(raising.Error(), c.wantError) || apierrors.IsConflict(raising) != c.wantConflict) {
				t.Errorf("raising = %v, want an error that says %q; a conflict: %v", raising, c.wantError, c.wantConflict)
			}
		})
	}
}
