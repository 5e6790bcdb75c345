// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"streamweir.dev/streamweir/controllers/decision"
)

// applyResizes raises the limits of running pods. A refusal of the API server is kept for the status and is not an error: a retry would not
// help. A conflict is an error: the pod has changed since it was read, and the next pass looks again. An error of one pod does not affect the
// others.
func (r *StreamAppReconciler) applyResizes(ctx context.Context, d *decision.Decision, outcome *decision.Outcome) error {
	var errs []error
	for _, resize := range d.Resizes {
		limit, err := r.resize(ctx, d, resize)
		switch {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			refused := decision.RefusedResize{Pod: resize.Pod, Limit: resize.To, Message: refusalMessage(err), At: d.Facts.Now}
			outcome.Refuse(refused, d.Facts.Now)
			rememberRefusal(d, resize.UID, refused)
			resizesTotal.WithLabelValues("refused").Inc()
		case err != nil:
			errs = append(errs, fmt.Errorf("raising the limit of pod %s to %s: %w", resize.Pod, quantity(resize.To), err))
		default:
			outcome.Resized = append(outcome.Resized, decision.ResizedText(resize, limit))
			resizesTotal.WithLabelValues("accepted").Inc()
		}
	}
	return utilerrors.NewAggregate(errs)
}

// rememberRefusal adds a refusal to the memory of the next pass.
func rememberRefusal(d *decision.Decision, pod types.UID, refused decision.RefusedResize) {
	remembered := maps.Clone(d.Memory.RefusedResizes)
	if remembered == nil {
		remembered = map[types.UID]decision.RefusedResize{}
	}
	remembered[pod] = refused
	d.Memory.RefusedResizes = remembered
}

// resize requests a limit, for memory alone, for the pod as it was read. It returns the limit in the API server's response.
func (r *StreamAppReconciler) resize(ctx context.Context, d *decision.Decision, resize decision.Resize) (int64, error) {
	log.FromContext(ctx).V(1).Info("Raising limit", "pod", resize.Pod, "from", quantity(resize.From), "to", quantity(resize.To))
	resources := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: *quantity(resize.To)}}
	if resize.Request > 0 {
		resources.Requests = corev1.ResourceList{corev1.ResourceMemory: *quantity(resize.Request)}
	}
	container := d.Facts.Container.Name
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resize.ResourceVersion},
		"spec":     map[string]any{"containers": []map[string]any{{"name": container, "resources": resources}}},
	})
	if err != nil {
		return 0, fmt.Errorf("encoding the patch: %w", err)
	}
	pod := &corev1.Pod{}
	pod.Namespace = d.Facts.App.Namespace
	pod.Name = resize.Pod
	if err := r.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return 0, err
	}
	answered := decision.PodOf(pod, container, nil)
	if answered.Limit == nil {
		return 0, nil
	}
	return answered.Limit.Value(), nil
}

// quantity returns bytes in the format of Kubernetes.
func quantity(bytes int64) *resource.Quantity { return resource.NewQuantity(bytes, resource.BinarySI) }

// refusalMessage returns the API server's message without the name of the pod, so that several pods have the same message.
func refusalMessage(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	details := status.Status().Details
	if details != nil && len(details.Causes) > 0 && details.Causes[0].Message != "" {
		return details.Causes[0].Message
	}
	message := status.Status().Message
	if _, reason, named := strings.Cut(message, "is forbidden: "); named {
		return reason
	}
	return message
}
