// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/envtestutil"
)

// applyShipped applies the unchanged config/default until the test ends.
func applyShipped(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	t.Cleanup(func() { applyFailing(t) })
	applied, err := envtestutil.Apply(t.Context(), admin, render(t, "config/default"))
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// applyFailing applies config/default as TestMain does. It may be called after the end of a test.
func applyFailing(t *testing.T) {
	t.Helper()
	objects := render(t, "config/default")
	if err := setFailurePolicy(objects, admissionregistrationv1.Fail); err != nil {
		t.Fatal(err)
	}
	if _, err := envtestutil.Apply(context.WithoutCancel(t.Context()), admin, objects); err != nil {
		t.Fatal(err)
	}
}

func render(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := envtestutil.RenderFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// configFolder returns the path of the folder with the manifests.
func configFolder(t *testing.T) string {
	t.Helper()
	folder, err := envtestutil.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestShippedManifestsAreStable(t *testing.T) {
	for _, object := range applyShipped(t) {
		first := object.DeepCopy()
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(first), first); err != nil {
			t.Fatalf("reading %s %s back: %v", first.GetKind(), first.GetName(), err)
		}
		second := first.DeepCopy()
		for _, again := range render(t, "config/default") {
			if again.GetKind() != first.GetKind() || again.GetName() != first.GetName() {
				continue
			}
			answers, err := envtestutil.Apply(t.Context(), admin, []*unstructured.Unstructured{again})
			if err != nil {
				t.Fatal(err)
			}
			second = answers[0]
		}
		if first.GetResourceVersion() != second.GetResourceVersion() {
			t.Errorf("a second apply changed %s %s:\n%s", first.GetKind(), first.GetName(), cmp.Diff(first.Object, second.Object))
		}
	}
}

func TestShippedPolicyInjects(t *testing.T) {
	applyShipped(t)
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "streamweir-injection"}, policy); err != nil {
		t.Fatal(err)
	}
	if got := policy.Spec.FailurePolicy; got == nil || *got != admissionregistrationv1.Ignore {
		t.Errorf("the failure policy is %v, want Ignore: a pod without a plan is better than no pod", got)
	}
	namespace := newNamespace(t)
	injection := anInjection(withAgent, injectMemory("1Gi", "1536Mi", ""))
	createInjections(t, namespace, []v1alpha1.PodInjection{injection})
	checkInjected(t, create(t, namespace, aPod(app(withEnv("JDK_JAVA_OPTIONS", "-ea")))), injected{
		env: []string{"JDK_JAVA_OPTIONS=" + agentOption + " " + options + " -ea", noArenas, podUID}, memory: "512Mi/1536Mi",
	}, &injection.Spec)
}

func TestSystemPodsAreNotInjected(t *testing.T) {
	injection := anInjection()
	injection.Namespace = "kube-system"
	if err := as(t, operatorUser).Create(t.Context(), &injection); err != nil {
		t.Fatal(err)
	}
	if got := create(t, "kube-system", aPod()); got.Annotations[v1alpha1.PlanAnnotation] != "" || len(got.Spec.Volumes) != 0 {
		t.Error("a pod in kube-system was injected")
	}
}

// Deleting the binding turns injection off, without the operator.
func TestDeletingTheBindingStopsInjection(t *testing.T) {
	namespace := newNamespace(t)
	createInjections(t, namespace, []v1alpha1.PodInjection{anInjection()})
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "streamweir-injection"}}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { applyFailing(t) })
	gomega.NewWithT(t).Eventually(func() string {
		return create(t, namespace, aPod()).Annotations[v1alpha1.PlanAnnotation]
	}, eventually, polling).Should(gomega.BeEmpty())
}

func TestManagerRunsRestricted(t *testing.T) {
	deployment := &appsv1.Deployment{}
	name := client.ObjectKey{Namespace: systemNamespace, Name: "streamweir-controller-manager"}
	if err := admin.Get(t.Context(), name, deployment); err != nil {
		t.Fatal(err)
	}
	if got := *deployment.Spec.Replicas; got != 2 {
		t.Errorf("%d replicas, want 2", got)
	}
	spec := deployment.Spec.Template.Spec
	if security := spec.SecurityContext; security.RunAsUser != nil || security.RunAsGroup != nil || security.FSGroup != nil {
		t.Error("the pod has fixed IDs, which OpenShift refuses: it assigns them from the range of the namespace")
	}
	for _, c := range spec.Containers {
		if c.SecurityContext.RunAsUser != nil || c.SecurityContext.RunAsGroup != nil {
			t.Errorf("container %s has fixed IDs", c.Name)
		}
		if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("container %s can write its root file system", c.Name)
		}
		if c.LivenessProbe == nil || c.ReadinessProbe == nil {
			t.Errorf("container %s lacks a probe", c.Name)
		}
	}
	// The namespace enforces the standard, so the API server checks the template.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "manager"},
		Spec:       spec,
	}
	if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("creating a pod of the operator: %v", err)
	}
}

// installation is an overlay of config/default.
type installation struct{ namespace, prefix, suffix string }

func (i installation) account() string {
	return "system:serviceaccount:" + i.namespace + ":" + i.prefix + "streamweir-controller-manager" + i.suffix
}

// render renders config/default with the namespace and the names of the installation.
func (i installation) render(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files := filesys.MakeFsInMemory()
	if err := copyManifests(files, configFolder(t)); err != nil {
		t.Fatal(err)
	}
	overlay := map[string]any{
		"resources": []string{"../config/default"}, "namespace": i.namespace, "namePrefix": i.prefix, "nameSuffix": i.suffix,
	}
	content, err := yaml.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteFile("/overlay/kustomization.yaml", content); err != nil {
		t.Fatal(err)
	}
	objects, err := envtestutil.Render(files, "/overlay")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func copyManifests(files filesys.FileSystem, folder string) error {
	manifests := os.DirFS(folder)
	return fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := fs.ReadFile(manifests, path)
		if err != nil {
			return err
		}
		return files.WriteFile("/config/"+path, content)
	})
}

// The policies recognize the operator by its permissions, not by its name. The other tests of this package use the namespace
// streamweir-system.
func TestGuardsInEveryNamespaceAndUnderEveryName(t *testing.T) {
	for name, installed := range map[string]installation{
		"another namespace":          {namespace: "memory"},
		"another namespace and name": {namespace: "platform", prefix: "acme-", suffix: "-blue"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := installed.render(t)
			for _, object := range objects {
				content, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(content), systemNamespace) {
					t.Errorf("%s %s still contains %s", object.GetKind(), object.GetName(), systemNamespace)
				}
			}
			checkGuards(t, objects, installed)
		})
	}
}

// checkGuards applies the manifests of an installation to a separate control plane. Its operator must have its permissions and no
// others, and an operator of the default name must have none.
func checkGuards(t *testing.T, objects []*unstructured.Unstructured, installed installation) {
	t.Helper()
	other, err := envtestutil.Start(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	root, err := newClient(other.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtestutil.Apply(t.Context(), root, objects); err != nil {
		t.Fatal(err)
	}
	operator, err := newClientOf(other, installed.account())
	if err != nil {
		t.Fatal(err)
	}
	former, err := newClientOf(other, operatorUser)
	if err != nil {
		t.Fatal(err)
	}
	create := func(c client.Client, name string) func() error {
		return func() error { return c.Create(t.Context(), planMap("default", name), client.DryRunAll) }
	}
	wantDenied(t, byOwnObjects, create(root, planName))
	wantDenied(t, byConfigMaps, create(operator, "orders"))
	wantAllowed(t, create(operator, planName)())
	wantAllowed(t, create(root, "orders")())
	wantDenied(t, byRBAC, create(former, planName))

	plain := aPod()
	plain.Namespace, plain.Name = "default", "plain"
	if err := root.Create(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	raise := client.RawPatch("application/strategic-merge-patch+json",
		[]byte(`{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"2Gi"}}}]}}`))
	wantDenied(t, byInjected, func() error {
		return operator.SubResource("resize").Patch(t.Context(), plain.DeepCopy(), raise, client.DryRunAll)
	})

	injection := anInjection()
	injection.Namespace = "default"
	if err := operator.Create(t.Context(), &injection); err != nil {
		t.Fatalf("creating a PodInjection as the operator: %v", err)
	}
	injected := aPod()
	injected.Namespace = "default"
	gomega.NewWithT(t).Eventually(func() (string, error) {
		pod := injected.DeepCopy()
		err := root.Create(t.Context(), pod, client.DryRunAll)
		return pod.Annotations[v1alpha1.PlanAnnotation], err
	}, eventually, polling).Should(gomega.Equal(revision))
	if err := root.Create(t.Context(), injected); err != nil {
		t.Fatal(err)
	}
	wantAllowed(t, operator.SubResource("resize").Patch(t.Context(), injected, raise))
}

func TestSamples(t *testing.T) {
	namespace := newNamespace(t)
	samples := render(t, "config/samples")
	if len(samples) != 4 {
		t.Errorf("config/samples holds %d objects, want 4: is one missing in its kustomization.yaml?", len(samples))
	}
	for _, sample := range samples {
		t.Run(sample.GetName(), func(t *testing.T) {
			sample.SetNamespace(namespace)
			want := sample.DeepCopy()
			validated := client.WithFieldValidation(admin, metav1.FieldValidationStrict)
			if err := validated.Create(t.Context(), sample); err != nil {
				t.Fatal(err)
			}
			// The definition has no defaults, so the API server stores the spec unchanged.
			if diff := cmp.Diff(want.Object["spec"], sample.Object["spec"]); diff != "" {
				t.Errorf("stored (-written +stored):\n%s", diff)
			}
		})
	}
}

// Folders that are not part of config/default are only rendered: a plain API server does not have all their kinds.
func TestEveryKustomizationRenders(t *testing.T) {
	folders := 0
	err := fs.WalkDir(os.DirFS(configFolder(t)), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "kustomization.yaml" || strings.HasPrefix(path, "admission") {
			return err
		}
		folders++
		if objects := render(t, filepath.Join("config", filepath.Dir(path))); len(objects) == 0 {
			t.Errorf("%s renders nothing", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if folders < 8 {
		t.Errorf("%d kustomizations, want at least 8", folders)
	}
}

// Every file must be listed in the kustomization of its folder.
func TestEveryManifestIsUsed(t *testing.T) {
	manifests := os.DirFS(configFolder(t))
	err := fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" || name == "kustomization.yaml" {
			return err
		}
		folder, listed := filepath.Dir(path), name
		if filepath.Base(folder) == "bases" {
			folder, listed = filepath.Dir(folder), "bases/"+name
		}
		content, err := fs.ReadFile(manifests, filepath.Join(folder, "kustomization.yaml"))
		if err != nil {
			return err
		}
		if !strings.Contains(string(content), listed) {
			t.Errorf("%s is not listed in its kustomization.yaml", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
