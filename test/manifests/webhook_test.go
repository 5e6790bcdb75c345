// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/envtestutil"
)

const (
	// secondWebhookLabel selects the pods for the second webhook.
	secondWebhookLabel = "example.com/second-webhook"

	// meshContainer is the sidecar that the second webhook inserts first.
	meshContainer = "mesh"
)

// startSecondWebhook starts a mutating webhook that changes pods after the policy, as a service mesh does: it inserts a sidecar
// before all containers, so that indexes shift, and removes the policy's annotation, so that the final pod has the annotation
// only if the policy was invoked again.
func startSecondWebhook(environment *envtestutil.Environment) (stop func(), err error) {
	options := environment.Webhooks
	server := webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})
	server.Register("/mutate", &admission.Webhook{Handler: admission.HandlerFunc(meddle)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the second webhook ended:", err)
		}
	}()
	stop = func() { cancel(); <-done }
	if err := admin.Create(ctx, secondWebhook(environment)); err != nil {
		stop()
		return nil, fmt.Errorf("registering the second webhook: %w", err)
	}
	return stop, nil
}

func secondWebhook(environment *envtestutil.Environment) *admissionregistrationv1.MutatingWebhookConfiguration {
	options := environment.Webhooks
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "second-webhook"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "second-webhook.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{secondWebhookLabel: "true"}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(fmt.Sprintf("https://%s:%d/mutate", options.LocalServingHost, options.LocalServingPort)),
				CABundle: options.LocalServingCAData,
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
}

// meddle makes the changes of startSecondWebhook.
func meddle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	delete(pod.Annotations, v1alpha1.PlanAnnotation)
	// With the resources of a Guaranteed pod, so that the QoS class of the pod stays the same.
	mesh := container(meshContainer, guaranteed("100Mi"), withEnv("JDK_JAVA_OPTIONS", "-Xmx64m"))
	pod.Spec.Containers = append([]corev1.Container{mesh}, pod.Spec.Containers...)
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}
