// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
)

// policies is a client of a cluster with these policies and bindings.
type policies struct {
	policies []admissionregistrationv1.MutatingAdmissionPolicy
	bindings []admissionregistrationv1.MutatingAdmissionPolicyBinding
	err      error
}

func (p *policies) client() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			switch list := list.(type) {
			case *admissionregistrationv1.MutatingAdmissionPolicyList:
				list.Items = p.policies
			case *admissionregistrationv1.MutatingAdmissionPolicyBindingList:
				list.Items = p.bindings
			}
			return p.err
		},
	})
}

func policyFor(name, kind string) admissionregistrationv1.MutatingAdmissionPolicy {
	return admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ParamKind: &admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind},
		},
	}
}

func bindingOf(policy string) admissionregistrationv1.MutatingAdmissionPolicyBinding {
	return admissionregistrationv1.MutatingAdmissionPolicyBinding{
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy},
	}
}

func TestMissingInjection(t *testing.T) {
	ours := policyFor("acme-streamweir-injection", "PodInjection")
	foreign := policyFor("foreign", "StreamApp")
	withoutParameters := admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}}
	for name, tc := range map[string]struct {
		cluster policies
		want    string
	}{
		"an older cluster": {policies{err: noMatch}, decision.NoPolicyAPIText},
		"no policy":        {policies{}, decision.NoPolicyText},
		"foreign policies": {
			policies{
				policies: []admissionregistrationv1.MutatingAdmissionPolicy{foreign, withoutParameters},
				bindings: []admissionregistrationv1.MutatingAdmissionPolicyBinding{bindingOf("foreign"), bindingOf("plain")},
			},
			decision.NoPolicyText,
		},
		"no binding": {
			policies{
				policies: []admissionregistrationv1.MutatingAdmissionPolicy{foreign, ours},
				bindings: []admissionregistrationv1.MutatingAdmissionPolicyBinding{bindingOf("foreign")},
			},
			decision.NoBindingText,
		},
		"policy and binding, renamed": {
			policies{
				policies: []admissionregistrationv1.MutatingAdmissionPolicy{ours},
				bindings: []admissionregistrationv1.MutatingAdmissionPolicyBinding{bindingOf(ours.Name)},
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var check injectionCheck
			got, err := check.missing(t.Context(), tc.cluster.client(), time.Unix(0, 0))
			if err != nil || got != tc.want {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// An error is no result: nothing is decided without a first result, and a later error changes nothing.
func TestFailedChecksOfTheInjectionChangeNothing(t *testing.T) {
	cluster := policies{err: errors.New("refused")}
	var check injectionCheck
	now := time.Unix(0, 0)
	expect := func(want string, fails bool) {
		t.Helper()
		got, err := check.missing(t.Context(), cluster.client(), now)
		if got != want || (err != nil) != fails {
			t.Errorf("got %q (%v), want %q, with an error: %v", got, err, want, fails)
		}
	}
	expect("", true)
	cluster.err = nil
	expect(decision.NoPolicyText, false)
	cluster.policies = []admissionregistrationv1.MutatingAdmissionPolicy{policyFor("injection", "PodInjection")}
	expect(decision.NoPolicyText, false) // read a moment ago
	now = now.Add(injectionResultAge)
	expect(decision.NoBindingText, false)
	cluster.err = errors.New("refused")
	now = now.Add(injectionResultAge)
	expect(decision.NoBindingText, false)
}
