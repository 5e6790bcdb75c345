// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/envtestutil"
)

const (
	// within bounds every wait for an expected change. It is far longer than any step takes, for busy machines.
	within = 60 * time.Second
	// quiet is the time for which an unexpected change is awaited after forced passes.
	quiet = 500 * time.Millisecond
	// polling is the interval of polling.
	polling = 50 * time.Millisecond

	operatorUser = "system:serviceaccount:streamweir-system:streamweir-controller-manager"
)

// The environment of the package, to which config/default is applied once. admin can do everything except for the writes that the policies
// reserve for the operator. operatorConfig acts as the operator, with the rights of its own role.
var (
	scheme         = runtime.NewScheme()
	admin          client.WithWatch
	adminSet       kubernetes.Interface
	operatorConfig *rest.Config
)

func TestMain(m *testing.M) {
	code, err := runWithControlPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithControlPlane(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard()) // the tests check the status
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return 1, err
	}
	environment, err := envtestutil.Start(false)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	if admin, err = client.NewWithWatch(environment.Config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	if adminSet, err = kubernetes.NewForConfig(environment.Config); err != nil {
		return 1, err
	}
	operatorConfig = rest.CopyConfig(environment.Config)
	operatorConfig.Impersonate = rest.ImpersonationConfig{
		UserName: operatorUser,
		Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:streamweir-system"},
	}
	if err := install(context.Background()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// install applies config/default and waits until the API server injects: policies take effect some time after they are written.
func install(ctx context.Context) error {
	objects, err := envtestutil.RenderFolder("config/default")
	if err != nil {
		return err
	}
	if _, err := envtestutil.Apply(ctx, admin, objects); err != nil {
		return err
	}
	operator, err := client.New(operatorConfig, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, polling, within, true, func(ctx context.Context) (bool, error) {
		injection := &v1alpha1.PodInjection{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"},
			Spec: v1alpha1.PodInjectionSpec{
				Owner: v1alpha1.WorkloadOwner{Kind: v1alpha1.KindStatefulSet, Name: "probe"}, Container: "app",
				OptionsVariable: v1alpha1.JDKJavaOptions, Options: v1alpha1.LauncherOptions,
				PlanConfigMap: "streamweir-plan-probe", PlanRevision: "probe",
			},
		}
		if err := operator.Create(ctx, injection); client.IgnoreAlreadyExists(err) != nil {
			return false, nil //nolint:nilerr // the operator's role takes effect some time later
		}
		pod, err := dryRunPod(ctx, "default", ownedPod("probe"))
		return err == nil && pod.Annotations[v1alpha1.PlanAnnotation] != "", nil
	})
}

// ownedPod returns a pod as the controller of a StatefulSet would create it.
func ownedPod(set string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: set + "-",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: "1", Controller: new(true),
			}},
		},
		Spec: template().Spec,
	}
}

// dryRunPod returns the pod that the API server would store.
func dryRunPod(ctx context.Context, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	pod.Namespace = namespace
	err := admin.Create(ctx, pod, client.DryRunAll)
	return pod, err
}
