// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// applyResizes raises the limits of running pods, those with the largest deficit first. A refusal of the API server is kept for the status and
// is not an error: a retry would not help. A conflict is an error: the pod has changed since it was read, and the next pass looks again. An
// error of one pod does not affect the others.
func (r *StreamAppReconciler) applyResizes(ctx context.Context, d *decision.Decision, outcome *decision.Outcome) error {
	order := byDeficit(d.Resizes)
	limits := make([]int64, len(d.Resizes))
	results := make([]error, len(d.Resizes))
	written := make([]bool, len(d.Resizes))
	leftErr := r.eachPod(ctx, len(order), func(i int) {
		k := order[i]
		limits[k], results[k] = r.resize(ctx, d, d.Resizes[k])
		written[k] = true
	})
	var errs []error
	for k, resize := range d.Resizes {
		err := results[k]
		switch {
		case !written[k], apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			refused := decision.RefusedResize{Pod: resize.Pod, Limit: resize.To, Message: refusalMessage(err), At: d.Facts.Now}
			outcome.Refuse(refused, d.Facts.Now)
			rememberRefusal(d, resize.UID, refused)
			resizesTotal.WithLabelValues("refused").Inc()
		case err != nil:
			errs = append(errs, fmt.Errorf("raising the limit of pod %s to %s: %w", resize.Pod, quantity(resize.To), err))
		default:
			outcome.Resized = append(outcome.Resized, decision.ResizedText(resize, limits[k]))
			resizesTotal.WithLabelValues("accepted").Inc()
		}
	}
	return utilerrors.NewAggregate(append(errs, leftErr))
}

// byDeficit returns the indexes of resizes, those with the largest deficit first.
func byDeficit(resizes []decision.Resize) []int {
	order := make([]int, len(resizes))
	for i := range order {
		order[i] = i
	}
	deficit := func(i int) int64 { return resizes[i].To - resizes[i].From }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(deficit(b), deficit(a)) })
	return order
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
