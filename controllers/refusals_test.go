// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestRefusalsAreKeptForAWhile(t *testing.T) {
	var kept refusals
	if _, known := kept.of("a", 1, testNow); known {
		t.Error("a refusal is known before there was one")
	}
	kept.remember("a", refusal{pod: "orders-0", limit: 1, message: "quota", at: testNow})
	cases := map[string]struct {
		pod   types.UID
		limit int64
		after time.Duration
		want  bool
	}{
		"at once":              {"a", 1, 0, true},
		"just before":          {"a", 1, refusalRetry - time.Second, true},
		"in time to ask again": {"a", 1, refusalRetry, false},
		"for another limit":    {"a", 2, 0, false},
		"for another pod":      {"b", 1, 0, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, known := kept.of(c.pod, c.limit, testNow.Add(c.after)); known != c.want {
				t.Errorf("known = %v, want %v", known, c.want)
			}
		})
	}
	kept.remember("b", refusal{pod: "orders-1", limit: 1, at: testNow.Add(refusalRetry)})
	if len(kept.byPod) != 1 {
		t.Errorf("%d refusals are kept, want the fresh one alone", len(kept.byPod))
	}
}

func TestRefusedIsLookedAtAgain(t *testing.T) {
	done := &applied{refused: map[string]refusal{}}
	done.refuse(refusal{pod: "orders-0", at: testNow.Add(-time.Minute)}, testNow)
	done.refuse(refusal{pod: "orders-1", at: testNow}, testNow)
	if done.recheckAfter != refusalRetry-time.Minute || len(done.refused) != 2 {
		t.Errorf("looking again after %v, want %v: when the first may be asked for again", done.recheckAfter, refusalRetry-time.Minute)
	}
	done.recheck(-time.Hour)
	if done.recheckAfter != time.Second {
		t.Errorf("looking again after %v, want no sooner than a second", done.recheckAfter)
	}
}

// TestRefusedMessage: several pods share a message, so it must not name one.
func TestRefusedMessage(t *testing.T) {
	kind := schema.GroupKind{Kind: "Pod"}
	cause := field.Invalid(field.NewPath("spec"), "x", "Pod QOS Class may not change as a result of resizing")
	cases := map[string]struct {
		err  error
		want string
	}{
		"invalid":                 {apierrors.NewInvalid(kind, "orders-0", field.ErrorList{cause}), `Invalid value: "x": Pod QOS Class may not change as a result of resizing`},
		"a bad request":           {apierrors.NewBadRequest("no"), "no"},
		"not from the API server": {errors.New("no"), "no"},
		"forbidden":               {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "orders-0", errors.New("exceeded quota: team")), "exceeded quota: team"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refusedMessage(c.err); got != c.want {
				t.Errorf("message = %q, want %q", got, c.want)
			}
		})
	}
}

func TestResizedMessage(t *testing.T) {
	wanted := resizeWanted{pod: &podFacts{name: "orders-0"}, from: 1024 * mib, to: 1536 * mib}
	for answered, want := range map[int64]string{
		1536 * mib: "pod orders-0 from 1Gi to 1536Mi",
		1280 * mib: "pod orders-0 from 1Gi to 1536Mi, of which the API server made 1280Mi",
	} {
		if got := resizedMessage(wanted, answered); got != want {
			t.Errorf("message = %q, want %q", got, want)
		}
	}
}
