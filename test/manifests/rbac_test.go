// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"testing"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"streamweir.dev/streamweir/internal/envtestutil"
)

// connect requests a connection to a pod as the operator.
func connect(t *testing.T, pod *corev1.Pod, subresource string) error {
	t.Helper()
	config := rest.CopyConfig(environment.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return clients.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		SubResource(subresource).Param("command", "id").Do(t.Context()).Error()
}

// grantUpdateOfResize permits the operator to update pods/resize and not only to patch it, so that tests can send whole pods.
func grantUpdateOfResize(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "resize-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"update"}}},
	}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatalf("creating a role: %v", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: operatorUser}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatalf("binding a role: %v", err)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		return allowed(t, operatorUser, authorizationv1.ResourceAttributes{Verb: "update", Resource: "pods", Subresource: "resize"})
	}, eventually, polling).Should(gomega.BeTrue())
	t.Cleanup(func() {
		if err := admin.Delete(t.Context(), binding); err != nil {
			t.Logf("removing the role: %v", err)
		}
	})
}

// allowed returns the answer of the API server to an access review of a user.
func allowed(t *testing.T, user string, attributes authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes}}
	if err := admin.Create(t.Context(), review); err != nil {
		t.Fatalf("access review of %s: %v", user, err)
	}
	return review.Status.Allowed
}

func TestOperatorsRole(t *testing.T) {
	for name, tc := range map[string]struct {
		attributes authorizationv1.ResourceAttributes
		want       bool
	}{
		"reads pods": {authorizationv1.ResourceAttributes{Verb: "watch", Resource: "pods"}, true},
		"resizes pods": {
			authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Subresource: "resize"},
			true,
		},
		"reads workloads": {
			authorizationv1.ResourceAttributes{Verb: "watch", Group: "apps", Resource: "statefulsets"},
			true,
		},
		"reads autoscalers": {
			authorizationv1.ResourceAttributes{Verb: "watch", Group: "autoscaling.k8s.io", Resource: "verticalpodautoscalers"},
			true,
		},
		"writes autoscalers": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "autoscaling", Resource: "horizontalpodautoscalers"},
			false,
		},
		"writes status": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "streamweir.dev", Resource: "streamapps", Subresource: "status"},
			true,
		},
		"writes PodInjections": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "streamweir.dev", Resource: "podinjections"},
			true,
		},
		"updates its lease": {
			authorizationv1.ResourceAttributes{
				Verb: "update", Namespace: systemNamespace, Group: "coordination.k8s.io", Resource: "leases", Name: "streamweir.dev",
			},
			true,
		},
		"updates another lease": {
			authorizationv1.ResourceAttributes{
				Verb: "update", Namespace: systemNamespace, Group: "coordination.k8s.io", Resource: "leases", Name: "other",
			},
			false,
		},
		"updates a lease of another namespace": {
			authorizationv1.ResourceAttributes{Verb: "create", Namespace: "default", Group: "coordination.k8s.io", Resource: "leases"},
			false,
		},
		"reads Secrets": {
			authorizationv1.ResourceAttributes{Verb: "get", Namespace: systemNamespace, Resource: "secrets"},
			false,
		},
		"creates pods": {authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods"}, false},
		"deletes pods": {authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods"}, false},
		"evicts pods": {
			authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction"},
			false,
		},
		"runs commands in pods": {
			authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec"},
			false,
		},
		"writes pods' status": {
			authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Subresource: "status"},
			false,
		},
		"patches StatefulSets": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "statefulsets"},
			false,
		},
		"patches Deployments": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "deployments"},
			false,
		},
		"scales StatefulSets": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "statefulsets", Subresource: "scale"},
			false,
		},
		"writes StreamApps": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "streamweir.dev", Resource: "streamapps"},
			false,
		},
		"writes nodes": {authorizationv1.ResourceAttributes{Verb: "patch", Resource: "nodes"}, false},
		"writes roles": {
			authorizationv1.ResourceAttributes{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
			false,
		},
		"binds roles": {
			authorizationv1.ResourceAttributes{Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings"},
			false,
		},
		"acts as others": {authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"}, false},
		"makes tokens": {
			authorizationv1.ResourceAttributes{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
			false,
		},
		"lists injection policies": {
			authorizationv1.ResourceAttributes{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
			true,
		},
		"changes injection policies": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
			false,
		},
		"is unconfined": {
			authorizationv1.ResourceAttributes{Verb: "unconfined", Group: "streamweir.dev", Resource: "podinjections"},
			false,
		},
		"changes admission policies": {
			authorizationv1.ResourceAttributes{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allowed(t, operatorUser, tc.attributes); got != tc.want {
				t.Errorf("allowed is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNoRoleUsesWildcards(t *testing.T) {
	objects, err := envtestutil.RenderFolder("config/default")
	if err != nil {
		t.Fatal(err)
	}
	roles := 0
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		roles++
		role := &rbacv1.ClusterRole{}
		fromUnstructured(t, object, role)
		for _, rule := range role.Rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
				if slices.Contains(list, "*") {
					t.Errorf("%s %s uses a wildcard: %v", object.GetKind(), object.GetName(), rule)
				}
			}
		}
	}
	if roles == 0 {
		t.Error("config/default holds no roles")
	}
}

func TestUserRoles(t *testing.T) {
	namespace := newNamespace(t)
	for _, role := range []string{"view", "edit", "admin"} {
		grant(t, namespace, "has-"+role, role)
	}
	create := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: "streamweir.dev", Resource: "streamapps"}
	gomega.NewWithT(t).Eventually(func() bool { return allowed(t, "has-admin", create) }, eventually, polling).Should(gomega.BeTrue())
	for role, wantWrite := range map[string]bool{"view": false, "edit": true, "admin": true} {
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			app := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: "streamweir.dev", Resource: "streamapps"}
			if got := allowed(t, "has-"+role, app); got != wantWrite {
				t.Errorf("%s of StreamApps with the role %s: allowed is %v, want %v", verb, role, got, wantWrite)
			}
			app.Resource = "podinjections"
			if allowed(t, "has-"+role, app) {
				t.Errorf("%s of PodInjections with the role %s is allowed, want it forbidden", verb, role)
			}
		}
	}
}
