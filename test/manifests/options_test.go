// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// byOptions is a part of the message of the policy about JVM options.
const byOptions = "needs the permission to update"

// debugPort is an option that lets a client on the network run code in the JVM.
const debugPort = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:5005"

// grantRule gives a user one permission in a namespace.
func grantRule(t *testing.T, namespace, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "rule-"}, Rules: []rbacv1.PolicyRule{rule}}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatalf("creating a role: %v", err)
	}
	bind(t, namespace, user, role.Name)
}

func writesStreamApps() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"streamweir.dev"}, Resources: []string{"streamapps"}, Verbs: []string{"create", "get", "update", "patch", "delete"},
	}
}

func updatesWorkload(resource, name string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{resource}, Verbs: []string{"update"}, ResourceNames: []string{name}}
}

func streamAppFor(namespace string, kind v1alpha1.WorkloadKind, jvm v1alpha1.JVMSpec) *v1alpha1.StreamApp {
	return &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders"},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: kind, Name: "orders"},
			JVM:       jvm,
		},
	}
}

// JVM options can start other programs in the pods, so that write access to StreamApps is not enough to set them.
func TestOnlyUsersWhoMayUpdateTheWorkloadSetJVMOptions(t *testing.T) {
	namespace := newNamespace(t)
	for _, user := range []string{"mallory", "developer", "deployer", "neighbor"} {
		grantRule(t, namespace, user, writesStreamApps())
	}
	grantRule(t, namespace, "developer", updatesWorkload("statefulsets", "orders"))
	grantRule(t, namespace, "deployer", updatesWorkload("deployments", "orders"))
	grantRule(t, namespace, "neighbor", updatesWorkload("statefulsets", "payments"))
	grantRule(t, newNamespace(t), "mallory", updatesWorkload("statefulsets", "orders"))

	const statefulSet, deployment = v1alpha1.KindStatefulSet, v1alpha1.KindDeployment
	options := v1alpha1.JVMSpec{OwnOptions: new(debugPort)}
	empty := v1alpha1.JVMSpec{OwnOptions: new("")}
	variable := v1alpha1.JVMSpec{OptionsVariable: v1alpha1.JavaToolOptions}
	for name, tc := range map[string]struct {
		user    string
		kind    v1alpha1.WorkloadKind
		jvm     v1alpha1.JVMSpec
		allowed bool
	}{
		"without JVM options":                     {"mallory", statefulSet, v1alpha1.JVMSpec{Version: 21}, true},
		"options without the workload":            {"mallory", statefulSet, options, false},
		"no options without the workload":         {"mallory", statefulSet, empty, false},
		"the variable without the workload":       {"mallory", statefulSet, variable, false},
		"options of another workload":             {"neighbor", statefulSet, options, false},
		"options of another kind":                 {"deployer", statefulSet, options, false},
		"options with the workload":               {"developer", statefulSet, options, true},
		"the variable with the workload":          {"developer", statefulSet, variable, true},
		"options with the Deployment":             {"deployer", deployment, options, true},
		"options of a Deployment, from the other": {"developer", deployment, options, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := as(t, tc.user)
			request := func() error { return c.Create(t.Context(), streamAppFor(namespace, tc.kind, tc.jvm), client.DryRunAll) }
			if tc.allowed {
				gomega.NewWithT(t).Eventually(request, eventually, polling).Should(gomega.Succeed())
				return
			}
			wantDenied(t, byOptions, request)
		})
	}
}

func TestJVMOptionsOfOthersStayOrGo(t *testing.T) {
	namespace := newNamespace(t)
	grantRule(t, namespace, "mallory", writesStreamApps())
	stored := streamAppFor(namespace, v1alpha1.KindStatefulSet, v1alpha1.JVMSpec{
		OptionsVariable: v1alpha1.JavaToolOptions, OwnOptions: new("-ea"),
	})
	if err := admin.Create(t.Context(), stored); err != nil {
		t.Fatalf("creating the StreamApp: %v", err)
	}
	mallory := as(t, "mallory")
	for name, tc := range map[string]struct {
		patch   string
		allowed bool
	}{
		"another field changes":             {`{"spec":{"memory":{"headroomPercent":20}}}`, true},
		"the options stay":                  {`{"spec":{"jvm":{"ownOptions":"-ea","version":21}}}`, true},
		"the options go":                    {`{"spec":{"jvm":{"ownOptions":null}}}`, true},
		"the variable goes":                 {`{"spec":{"jvm":{"optionsVariable":null}}}`, true},
		"both go":                           {`{"spec":{"jvm":null}}`, true},
		"the options change":                {`{"spec":{"jvm":{"ownOptions":"` + debugPort + `"}}}`, false},
		"the variable changes":              {`{"spec":{"jvm":{"optionsVariable":"JDK_JAVA_OPTIONS"}}}`, false},
		"the options move to a container":   {`{"spec":{"container":"sidecar"}}`, false},
		"the options go with the container": {`{"spec":{"container":"sidecar","jvm":null}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			request := func() error {
				return mallory.Patch(t.Context(), stored.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(tc.patch)), client.DryRunAll)
			}
			if tc.allowed {
				gomega.NewWithT(t).Eventually(request, eventually, polling).Should(gomega.Succeed())
				return
			}
			wantDenied(t, byOptions, request)
		})
	}
	t.Run("the options move to another workload", func(t *testing.T) {
		grantRule(t, namespace, "mallory", updatesWorkload("statefulsets", "orders"))
		if err := admin.Delete(t.Context(), stored.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		other := streamAppFor(namespace, v1alpha1.KindStatefulSet, stored.Spec.JVM)
		other.Spec.TargetRef.Name = "payments"
		wantDenied(t, byOptions, func() error { return mallory.Create(t.Context(), other.DeepCopy(), client.DryRunAll) })
	})
}
