// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// Parts of the messages of the policies.
const (
	byOwnObjects = "only Streamweir may write PodInjections"
	byConfigMaps = "Streamweir may only write ConfigMaps named"
	byRBAC       = "cannot"
)

// wantDenied checks that a request is forbidden, with a part of the message. The request must be a dry run: it is repeated
// until the API server uses the policies that were just applied.
func wantDenied(t *testing.T, by string, request func() error) {
	t.Helper()
	answer := func() string {
		err := request()
		if err == nil {
			return "allowed"
		}
		return fmt.Sprintf("%s: %v", apierrors.ReasonForError(err), err)
	}
	gomega.NewWithT(t).Eventually(answer, eventually, polling).Should(gomega.SatisfyAll(
		gomega.HavePrefix(string(metav1.StatusReasonForbidden)), gomega.ContainSubstring(by)))
}

func wantAllowed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("got the error %v, want the request to succeed", err)
	}
}

func planMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "orders", UID: "1"}},
		},
		Data: map[string]string{planfile.OptionsKey: "-XX:MaxRAMPercentage=50"},
	}
}

// createOwnObjects creates a plan and a PodInjection as the operator does.
func createOwnObjects(t *testing.T, namespace string) (*corev1.ConfigMap, *v1alpha1.PodInjection) {
	t.Helper()
	operator := as(t, operatorUser)
	plan, injection := planMap(namespace, planName), anInjection()
	injection.Namespace = namespace
	for _, object := range []client.Object{plan, &injection} {
		if err := operator.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T as the operator: %v", object, err)
		}
	}
	return plan, &injection
}

// grant binds a ClusterRole to a user in a namespace, with the ClusterRoles that are aggregated into it. In envtest no
// controller aggregates, so each part is bound separately.
func grant(t *testing.T, namespace, user, role string) {
	t.Helper()
	var parts rbacv1.ClusterRoleList
	label := client.MatchingLabels{"rbac.authorization.k8s.io/aggregate-to-" + role: "true"}
	if err := admin.List(t.Context(), &parts, label); err != nil {
		t.Fatalf("listing the roles that are aggregated into %s: %v", role, err)
	}
	names := []string{role}
	for _, part := range parts.Items {
		names = append(names, part.Name)
	}
	for _, name := range names {
		bind(t, namespace, user, name)
	}
}

// bind binds one ClusterRole to a user in a namespace.
func bind(t *testing.T, namespace, user, role string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "grant-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatalf("granting %s: %v", role, err)
	}
}

func TestUsersWithTheEditRole(t *testing.T) {
	namespace := newNamespace(t)
	plan, injection := createOwnObjects(t, namespace)
	const user = "jane"
	for _, role := range []string{"view", "edit"} {
		grant(t, namespace, user, role)
	}
	jane := as(t, user)

	t.Run("may write StreamApps and other ConfigMaps", func(t *testing.T) {
		streamApp := &v1alpha1.StreamApp{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"},
			Spec:       v1alpha1.StreamAppSpec{TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: "orders"}},
		}
		gomega.NewWithT(t).Eventually(func() error { return jane.Create(t.Context(), streamApp, client.DryRunAll) }, eventually, polling).
			Should(gomega.Succeed())
		wantAllowed(t, jane.Create(t.Context(), planMap(namespace, "settings")))
		wantAllowed(t, jane.Delete(t.Context(), planMap(namespace, "settings")))
	})
	t.Run("may read plans and PodInjections", func(t *testing.T) {
		wantAllowed(t, jane.Get(t.Context(), client.ObjectKeyFromObject(plan), &corev1.ConfigMap{}))
		wantAllowed(t, jane.Get(t.Context(), client.ObjectKeyFromObject(injection), &v1alpha1.PodInjection{}))
	})
	t.Run("may not write the operator's objects", func(t *testing.T) {
		checkCannotWrite(t, jane, plan, byOwnObjects)
		checkCannotWrite(t, jane, injection, byRBAC)
	})
	t.Run("may not create a plan with a generated name", func(t *testing.T) {
		planted := planMap(namespace, "")
		planted.GenerateName = v1alpha1.PlanConfigMapPrefix
		wantDenied(t, byOwnObjects, func() error { return jane.Create(t.Context(), planted.DeepCopy(), client.DryRunAll) })
	})
	t.Run("may not create an agent", func(t *testing.T) {
		planted := planMap(namespace, "streamweir-agent-0123456789abcdef")
		planted.Data, planted.BinaryData, planted.Immutable = nil, map[string][]byte{"agent.jar": []byte("x")}, new(true)
		wantDenied(t, byOwnObjects, func() error { return jane.Create(t.Context(), planted.DeepCopy(), client.DryRunAll) })
	})
	t.Run("may not write status", func(t *testing.T) {
		streamApp := &v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"mode":"Enforce"}}`))
		wantDenied(t, byRBAC, func() error { return jane.Status().Patch(t.Context(), streamApp, patch, client.DryRunAll) })
	})
}

func TestAdministratorsDeleteOwnObjectsButCannotWriteThem(t *testing.T) {
	namespace := newNamespace(t)
	plan, injection := createOwnObjects(t, namespace)
	const owner = "owner-of-the-namespace"
	grant(t, namespace, owner, "cluster-admin")
	for name, administrator := range map[string]client.Client{"of the cluster": admin, "of the namespace": as(t, owner)} {
		for _, object := range []client.Object{plan, injection} {
			t.Run(fmt.Sprintf("%s: %T", name, object), func(t *testing.T) {
				gomega.NewWithT(t).Eventually(func() error {
					return administrator.Delete(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
				}, eventually, polling).Should(gomega.Succeed())
				checkCannotChange(t, administrator, object, byOwnObjects)
			})
		}
	}
}

// The role streamweir-plan-deleter is for users who may delete the operator's objects.
func TestUsersWithTheVerbDeletePlansDeleteOwnObjects(t *testing.T) {
	namespace, elsewhere := newNamespace(t), newNamespace(t)
	plan, injection := createOwnObjects(t, namespace)
	other, _ := createOwnObjects(t, elsewhere)
	const user = "olga"
	for _, place := range []string{namespace, elsewhere} {
		grant(t, place, user, "edit")
	}
	olga := as(t, user)
	wantDenied(t, byOwnObjects, func() error { return olga.Delete(t.Context(), plan.DeepCopy(), client.DryRunAll) })
	bind(t, namespace, user, "streamweir-plan-deleter")
	for _, object := range []client.Object{plan, injection} {
		gomega.NewWithT(t).Eventually(func() error {
			return olga.Delete(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
		}, eventually, polling).Should(gomega.Succeed())
	}
	checkCannotChange(t, olga, plan, byOwnObjects)
	checkCannotChange(t, olga, injection, byRBAC)
	wantDenied(t, byOwnObjects, func() error { return olga.Delete(t.Context(), other.DeepCopy(), client.DryRunAll) })
}

// Other ConfigMaps of Streamweir's users, such as dashboards, may have similar names.
func TestOnlyTheNamesOfPlansAndAgentsAreClosed(t *testing.T) {
	namespace := newNamespace(t)
	const user = "dora"
	grant(t, namespace, user, "edit")
	dora := as(t, user)
	for _, name := range []string{"streamweir-dashboard", "streamweir-plans", "my-streamweir-plan-orders", "streamweir-agents"} {
		gomega.NewWithT(t).Eventually(func() error {
			return dora.Create(t.Context(), planMap(namespace, name), client.DryRunAll)
		}, eventually, polling).Should(gomega.Succeed())
	}
}

func TestServiceAccountOfTheSameNameElsewhereCannotWriteOwnObjects(t *testing.T) {
	namespace := newNamespace(t)
	plan, _ := createOwnObjects(t, namespace)
	impostor := "system:serviceaccount:" + namespace + ":streamweir-controller-manager"
	grant(t, namespace, impostor, "edit")
	checkCannotWrite(t, as(t, impostor), plan, byOwnObjects)
}

// checkCannotWrite tries every way to write an existing object.
func checkCannotWrite(t *testing.T, c client.Client, existing client.Object, by string) {
	t.Helper()
	checkCannotChange(t, c, existing, by)
	copyOf := func() client.Object { return existing.DeepCopyObject().(client.Object) }
	wantDenied(t, by, func() error { return c.Delete(t.Context(), copyOf(), client.DryRunAll) })
	wantDenied(t, by, func() error {
		return c.DeleteAllOf(t.Context(), copyOf(), client.InNamespace(existing.GetNamespace()), client.DryRunAll)
	})
}

// checkCannotChange tries every way to write an existing object, except its deletion.
func checkCannotChange(t *testing.T, c client.Client, existing client.Object, by string) {
	t.Helper()
	copyOf := func() client.Object { return existing.DeepCopyObject().(client.Object) }
	ctx := t.Context()
	wantDenied(t, by, func() error {
		planted := copyOf()
		planted.SetResourceVersion("")
		planted.SetUID("")
		planted.SetName(v1alpha1.PlanConfigMapPrefix + "planted")
		return c.Create(ctx, planted, client.DryRunAll)
	})
	wantDenied(t, by, func() error {
		changed := copyOf()
		changed.SetLabels(map[string]string{"changed": "true"})
		return c.Update(ctx, changed, client.DryRunAll)
	})
	wantDenied(t, by, func() error {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null}}`))
		return c.Patch(ctx, copyOf(), patch, client.DryRunAll)
	})
}

func TestGarbageCollection(t *testing.T) {
	namespace := newNamespace(t)
	plan, injection := createOwnObjects(t, namespace)
	for name, user := range map[string]string{
		"the garbage collector":              "system:serviceaccount:kube-system:generic-garbage-collector",
		"the namespace controller":           "system:serviceaccount:kube-system:namespace-controller",
		"a controller manager with one user": "system:kube-controller-manager",
	} {
		t.Run(name, func(t *testing.T) {
			// The cluster's own roles grant different permissions; this test is only about the policies.
			grant(t, namespace, user, "cluster-admin")
			collector := as(t, user)
			orphaned := plan.DeepCopy()
			orphaned.OwnerReferences = nil
			update := func() error { return collector.Update(t.Context(), orphaned.DeepCopy(), client.DryRunAll) }
			gomega.NewWithT(t).Eventually(update, eventually, polling).Should(gomega.Succeed())
			wantAllowed(t, collector.Delete(t.Context(), plan.DeepCopy(), client.DryRunAll))
			wantAllowed(t, collector.Delete(t.Context(), injection.DeepCopy(), client.DryRunAll))
			wantDenied(t, byOwnObjects, func() error {
				changed := plan.DeepCopy()
				changed.Data[planfile.OptionsKey] = "-XX:OnOutOfMemoryError=id"
				return collector.Update(t.Context(), changed, client.DryRunAll)
			})
			wantDenied(t, byOwnObjects, func() error {
				changed := plan.DeepCopy()
				changed.BinaryData = map[string][]byte{"agent.jar": []byte("x")}
				return collector.Update(t.Context(), changed, client.DryRunAll)
			})
			wantDenied(t, byOwnObjects, func() error {
				changed := injection.DeepCopy()
				changed.Spec.PlanRevision = "mine"
				return collector.Update(t.Context(), changed, client.DryRunAll)
			})
			wantDenied(t, byOwnObjects, func() error {
				return collector.Create(t.Context(), planMap(namespace, "streamweir-plan-planted"), client.DryRunAll)
			})
		})
	}
}

func TestOperatorMayWriteOwnObjectsInEveryNamespace(t *testing.T) {
	for range 2 {
		namespace := newNamespace(t)
		plan, injection := createOwnObjects(t, namespace)
		operator := as(t, operatorUser)
		for _, object := range []client.Object{plan, injection} {
			wantAllowed(t, operator.Patch(t.Context(), object,
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
			wantAllowed(t, operator.Delete(t.Context(), object))
		}
	}
}

func TestOperatorWritesNoOtherConfigMaps(t *testing.T) {
	operator := as(t, operatorUser)
	for _, namespace := range []string{newNamespace(t), newNamespace(t), "kube-system", systemNamespace} {
		foreign := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": "x"},
		}
		if err := admin.Create(t.Context(), foreign); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating %s: %v", foreign.Name, err)
		}
		for how, request := range map[string]func() error{
			"create": func() error { return operator.Create(t.Context(), planMap(namespace, "orders"), client.DryRunAll) },
			"create with our prefix in the middle of the name": func() error {
				return operator.Create(t.Context(), planMap(namespace, "my-streamweir-plan-orders"), client.DryRunAll)
			},
			"create with a part of our prefix": func() error {
				return operator.Create(t.Context(), planMap(namespace, "streamweir-dashboard"), client.DryRunAll)
			},
			"patch": func() error {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"ca.crt":"y"}}`))
				return operator.Patch(t.Context(), foreign.DeepCopy(), patch, client.DryRunAll)
			},
			"delete": func() error { return operator.Delete(t.Context(), foreign.DeepCopy(), client.DryRunAll) },
		} {
			t.Run(strings.Join([]string{how, namespace}, " in "), func(t *testing.T) { wantDenied(t, byConfigMaps, request) })
		}
	}
}
