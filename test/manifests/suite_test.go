// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests tests the effects of the manifests in config on a real API server.
package manifests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/envtestutil"
)

const (
	// eventually is the timeout for the API server to use new objects, polling the interval between two checks.
	eventually = 10 * time.Second
	polling    = 20 * time.Millisecond

	systemNamespace = "streamweir-system"
	operatorUser    = "system:serviceaccount:streamweir-system:streamweir-controller-manager"
)

var (
	environment *envtestutil.Environment
	admin       client.Client
)

// TestMain applies config/default once, with the failure policy Fail for the injection policy, so that an error in an
// expression is visible. The tests TestShipped... use the unchanged manifests.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code, err := runWithControlPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithControlPlane(m *testing.M) (code int, err error) {
	environment, err = envtestutil.Start(false)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	if admin, err = newClient(environment.Config); err != nil {
		return 1, err
	}
	objects, err := envtestutil.RenderFolder("config/default")
	if err != nil {
		return 1, err
	}
	if err := setFailurePolicy(objects, admissionregistrationv1.Fail); err != nil {
		return 1, err
	}
	if _, err := envtestutil.Apply(context.Background(), admin, objects); err != nil {
		return 1, err
	}
	if err := waitForPolicies(); err != nil {
		return 1, err
	}
	stop, err := startSecondWebhook(environment)
	if err != nil {
		return 1, err
	}
	defer stop()
	return m.Run(), nil
}

// waitForPolicies waits until the injection policy injects. Before that, the API server does not use the policy yet, and then
// refuses pods until it has read the PodInjections.
func waitForPolicies() error {
	ctx := context.Background()
	operator, err := newClientAs(operatorUser)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	if err := admin.Create(ctx, namespace); err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	injection := anInjection()
	injection.Namespace = namespace.Name
	if err := operator.Create(ctx, &injection); err != nil {
		return fmt.Errorf("creating a PodInjection: %w", err)
	}
	injects := func(ctx context.Context) (bool, error) {
		pod := aPod()
		pod.Namespace = namespace.Name
		err := admin.Create(ctx, pod, client.DryRunAll)
		return err == nil && pod.Annotations[v1alpha1.PlanAnnotation] != "", nil
	}
	if err := wait.PollUntilContextTimeout(ctx, polling, eventually, true, injects); err != nil {
		return fmt.Errorf("waiting until the injection policy injects: %w", err)
	}
	return nil
}

// newClient returns a client for the kinds of the tests.
func newClient(config *rest.Config) (client.Client, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: known})
}

// as returns a client that impersonates another user.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	c, err := newClientAs(user)
	if err != nil {
		t.Fatalf("making a client for %s: %v", user, err)
	}
	return c
}

// newClientAs returns a client that impersonates another user. Service accounts also get their groups.
func newClientAs(user string) (client.Client, error) { return newClientOf(environment, user) }

func newClientOf(environment *envtestutil.Environment, user string) (client.Client, error) {
	config := rest.CopyConfig(environment.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	if account, isAccount := strings.CutPrefix(user, "system:serviceaccount:"); isAccount {
		namespace, _, _ := strings.Cut(account, ":")
		config.Impersonate.Groups = append(config.Impersonate.Groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return newClient(config)
}

func setFailurePolicy(objects []*unstructured.Unstructured, policy admissionregistrationv1.FailurePolicyType) error {
	for _, object := range objects {
		if object.GetKind() == "MutatingAdmissionPolicy" {
			return unstructured.SetNestedField(object.Object, string(policy), "spec", "failurePolicy")
		}
	}
	return errors.New("config/default holds no MutatingAdmissionPolicy")
}

// newNamespace creates a namespace for a test. It is not deleted: in envtest no controller finishes the deletion.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return namespace.Name
}

func fromUnstructured(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		t.Fatalf("reading %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}
