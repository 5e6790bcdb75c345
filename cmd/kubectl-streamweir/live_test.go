// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/assignment/kfakestreams"
	"streamweir.dev/streamweir/internal/envtestutil"
)

// developer is a user without rights on nodes, quotas and PodInjections.
const developer = "developer"

func TestExplainInACluster(t *testing.T) {
	g := gomega.NewWithT(t)
	environment, err := envtestutil.Start(true)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { g.Expect(environment.Stop()).To(gomega.Succeed()) })
	admin := adminOf(t, environment.Config)
	for _, object := range objectsOf(t) {
		g.Expect(admin.Create(t.Context(), object)).To(gomega.Succeed())
	}
	pod := &corev1.Pod{}
	g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "orders-0"}, pod)).To(gomega.Succeed())
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}
	g.Expect(admin.Status().Update(t.Context(), pod)).To(gomega.Succeed())
	kubeconfig := writeKubeconfig(t, environment.Config, developer)
	brokers := brokersOf(t)

	for name, tc := range map[string]struct {
		line string
		code int
		want []string
	}{
		"tasks from the brokers": {
			"explain orders --bootstrap-servers " + brokers, exitDoesNotFit,
			[]string{"12 tasks", "orders-0  12     2Gi", "brokers                          3"},
		},
		"tasks from a description": {
			"explain statefulset/orders" + ordersTopology, exitDoesNotFit, []string{"24 tasks", "topology, line 12"},
		},
		"no tasks":          {"explain statefulset/orders", exitNoAnswer, []string{"the application's tasks are unknown"}},
		"no such StreamApp": {"explain payments", exitNoAnswer, []string{"for a workload without one: statefulset/payments", "not found"}},
		"no such workload":  {"explain deploy/payments" + ordersTopology, exitNoAnswer, []string{"Deployment payments, the target of StreamApp payments, does not exist"}},
		"an unknown kind":   {"explain job/payments", exitNoAnswer, []string{"it must be statefulset/NAME or deployment/NAME"}},
		"no such context":   {"explain orders --context x", exitNoAnswer, []string{"finding the cluster"}},
		"no such group":     {"explain statefulset/orders -n other --bootstrap-servers " + brokers, exitNoAnswer, []string{"orders"}},
		"another namespace": {"explain orders -n other", exitNoAnswer, []string{"not found"}},
		"differences of the tasks from the brokers": {
			"diff orders --mode Enforce --bootstrap-servers " + brokers, exitDiffers,
			[]string{"mode Enforce instead of Observe", "-XX:MaxRAM ", "Nothing was written."},
		},
		"differences of a namespace": {
			"diff -n default --mode Enforce", exitDiffers, []string{"StatefulSet default/orders (StreamApp orders)", "the bootstrap plan"},
		},
		"differences of all namespaces": {"diff -A", exitFits, []string{"default/orders", "mode Observe: no differences."}},
		"no StreamApps":                 {"diff -n other", exitFits, []string{"No StreamApps were found."}},
		"completion":                    {"__complete explain o", exitFits, []string{"orders"}},
		"no completion for files":       {"__complete explain -f x o", exitFits, []string{":4"}},
	} {
		t.Run(name, func(t *testing.T) { expectCall(t, kubeconfig, tc.line, tc.code, tc.want...) })
	}

	t.Run("a pod runs if its node is not readable", func(t *testing.T) {
		expectCall(t, kubeconfig, "explain statefulset/orders"+ordersTopology, exitDoesNotFit, "\norders-0 ")
	})
	t.Run("a pod on a deleted node does not run", func(t *testing.T) {
		g := gomega.NewWithT(t)
		out := expectCall(t, writeKubeconfig(t, environment.Config, ""), "explain statefulset/orders"+ordersTopology, exitDoesNotFit)
		g.Expect(out).NotTo(gomega.ContainSubstring("orders-0"))
	})
	t.Run("the answer in the status", func(t *testing.T) {
		g := gomega.NewWithT(t)
		var app v1alpha1.StreamApp
		g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "orders"}, &app)).To(gomega.Succeed())
		app.Status = statusOf(metav1.ConditionTrue)
		g.Expect(admin.Status().Update(t.Context(), &app)).To(gomega.Succeed())
		expectCall(t, kubeconfig, "explain orders", exitFits, "It fits: it tolerates 1 pod failure. A new pod gets 2Gi and requires 1900Mi", "12 tasks", "memtables  612Mi")
		app.Status = statusOf(metav1.ConditionFalse)
		g.Expect(admin.Status().Update(t.Context(), &app)).To(gomega.Succeed())
		expectCall(t, kubeconfig, "explain orders", exitDoesNotFit, "CascadeSafe is False (Tried): the reason")
		app.Status = statusOf(metav1.ConditionUnknown)
		g.Expect(admin.Status().Update(t.Context(), &app)).To(gomega.Succeed())
		expectCall(t, kubeconfig, "explain orders", exitNoAnswer, "It is not yet known whether it fits")
	})
}

// adminOf returns a client with all rights.
func adminOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	g := gomega.NewWithT(t)
	kinds := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(kinds)).To(gomega.Succeed())
	g.Expect(v1alpha1.AddToScheme(kinds)).To(gomega.Succeed())
	admin, err := client.New(config, client.Options{Scheme: kinds})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return admin
}

// expectCall runs a command line with a kubeconfig, and returns the output.
func expectCall(t *testing.T, kubeconfig, line string, code int, want ...string) string {
	t.Helper()
	g := gomega.NewWithT(t)
	t.Setenv("KUBECONFIG", kubeconfig)
	args := strings.Fields(strings.ReplaceAll(line, "orders.topology.txt", filepath.Join("testdata", "orders.topology.txt")))
	var stdout, stderr bytes.Buffer
	got := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	g.Expect(got).To(gomega.Equal(code), "%s%s", &stdout, &stderr)
	for _, text := range want {
		g.Expect(stdout.String() + stderr.String()).To(gomega.ContainSubstring(text))
	}
	return stdout.String() + stderr.String()
}

// objectsOf returns the objects of orders.yaml, one pod, and the rights of the developer.
func objectsOf(t *testing.T) []client.Object {
	t.Helper()
	parsed, err := parseManifests([]byte(read(t, "orders.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, object := range parsed {
		object.SetNamespace(corev1.NamespaceDefault)
		objects = append(objects, object)
	}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: developer, APIGroup: rbacv1.GroupName}}
	return append(objects,
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "orders-0", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "orders", UID: "u", Controller: new(true)},
			}},
			Spec: corev1.PodSpec{
				NodeName:   "node-1",
				Containers: []corev1.Container{{Name: "app", Image: "x", Resources: corev1.ResourceRequirements{Limits: memory}}},
			},
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: developer}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets", "deployments"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"streamapps"}, Verbs: []string{"get", "list"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: developer}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: developer},
		})
}

// statusOf returns a status as the operator writes it.
func statusOf(cascadeSafe metav1.ConditionStatus) v1alpha1.StreamAppStatus {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Tried", Message: "the reason", LastTransitionTime: metav1.Now()}
	}
	q := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	return v1alpha1.StreamAppStatus{
		Conditions: []metav1.Condition{condition(v1alpha1.ConditionFits, metav1.ConditionTrue), condition(v1alpha1.ConditionCascadeSafe, cascadeSafe)},
		Pods:       new(int32(3)), Tasks: new(int32(12)), PodFailuresTolerated: new(int32(1)), Limit: q("2Gi"), RequiredLimit: q("1900Mi"), Heap: q("512Mi"), Expected: q("1Gi"),
		Lines: []v1alpha1.Line{{Pool: v1alpha1.PoolNative, Name: "memtables", Bound: q("612Mi"), Expected: q("600Mi"), Source: v1alpha1.SourceDefault}},
	}
}

// brokersOf starts brokers with the group of the application, whose only process runs in the pod.
func brokersOf(t *testing.T) string {
	t.Helper()
	g := gomega.NewWithT(t)
	cluster, err := kfakestreams.New()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(cluster.Close)
	g.Expect(cluster.Add(kfakestreams.App{ID: "orders", Protocol: assignment.Classic, Threads: 1, Subtopologies: []kfakestreams.Subtopology{
		{Partitions: 12, Sources: []string{"orders"}, Stores: []kfakestreams.Store{{Name: "counts", Kind: assignment.KeyValue}}},
	}})).To(gomega.Succeed())
	g.Expect(cluster.Join("orders", "10.0.0.1")).To(gomega.Succeed())
	return strings.Join(cluster.ListenAddrs(), ",")
}

// writeKubeconfig writes a kubeconfig for the administrator, who impersonates a user unless it is empty.
func writeKubeconfig(t *testing.T, config *rest.Config, user string) string {
	t.Helper()
	admin := &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	if user != "" {
		admin.Impersonate = user
		admin.ImpersonateGroups = []string{"system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := clientcmdapi.NewConfig()
	content.Clusters["x"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["x"] = admin
	content.Contexts["default"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	content.CurrentContext = "default"
	if err := clientcmd.WriteToFile(*content, path); err != nil {
		t.Fatal(err)
	}
	return path
}
