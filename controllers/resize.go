// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// refusalRetry is how long a resize that the API server refused is not asked for again. Quotas, LimitRanges and nodes change by people's
// hands, in minutes.
const refusalRetry = 5 * time.Minute

// refusal is a resize that the API server refused.
type refusal struct {
	pod     string
	limit   int64
	message string
	at      time.Time
}

// refusals remembers what was refused, so that a pass does not ask again at once. It need not outlive the process: after a restart each
// resize is asked for once more.
type refusals struct {
	mu    sync.Mutex
	byPod map[types.UID]refusal
}

// of gives the refusal of a pod's resize to this limit, if it is still fresh.
func (r *refusals) of(pod types.UID, limit int64, now time.Time) (refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.byPod[pod]
	return known, ok && known.limit == limit && now.Sub(known.at) < refusalRetry
}

func (r *refusals) remember(pod types.UID, refused refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPod == nil {
		r.byPod = map[types.UID]refusal{}
	}
	r.byPod[pod] = refused
	for uid, old := range r.byPod { // pods come and go: what is stale is of no use
		if refused.at.Sub(old.at) >= refusalRetry {
			delete(r.byPod, uid)
		}
	}
}

// applyResizes raises the limits of running pods. What the API server refuses is kept for the status and is no error: asking again would
// not help. A conflict is an error: the pod has changed since it was read, and the next pass looks again. One pod's error keeps no other
// pod from being raised.
func (r *StreamAppReconciler) applyResizes(ctx context.Context, obs *observation, want *desired, done *applied) error {
	var failure, conflict error
	for _, wanted := range want.resizes {
		if known, fresh := r.refusals.of(wanted.pod.uid, wanted.to, obs.now); fresh {
			done.refuse(known, obs.now)
			continue
		}
		limit, err := r.resize(ctx, obs, wanted)
		switch {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			refused := refusal{pod: wanted.pod.name, limit: wanted.to, message: refusedMessage(err), at: obs.now}
			r.refusals.remember(wanted.pod.uid, refused)
			done.refuse(refused, obs.now)
			resizesTotal.WithLabelValues("refused").Inc()
		case apierrors.IsConflict(err):
			conflict = err
		case err != nil:
			failure = cmp.Or(failure, fmt.Errorf("raising the limit of pod %s to %s: %w", wanted.pod.name, humanBytes(wanted.to), err))
		default:
			done.resized = append(done.resized, resizedMessage(wanted, limit))
			resizesTotal.WithLabelValues("accepted").Inc()
		}
	}
	return cmp.Or(failure, conflict)
}

func (a *applied) refuse(refused refusal, now time.Time) {
	a.refused[refused.pod] = refused
	a.recheck(refusalRetry - now.Sub(refused.at))
}

// recheck keeps the earliest of the times after which to look again.
func (a *applied) recheck(after time.Duration) {
	if a.recheckAfter == 0 || after < a.recheckAfter {
		a.recheckAfter = max(after, time.Second)
	}
}

// rememberRefusals shows what was refused before, in a pass that asks for nothing.
func (r *StreamAppReconciler) rememberRefusals(obs *observation, done *applied) {
	r.refusals.mu.Lock()
	defer r.refusals.mu.Unlock()
	for i := range obs.pods {
		if known, ok := r.refusals.byPod[obs.pods[i].uid]; ok && obs.now.Sub(known.at) < refusalRetry {
			done.refuse(known, obs.now)
		}
	}
}

// resize asks for a limit, for memory alone, of the pod as it was read. It returns the limit that the API server answered with.
func (r *StreamAppReconciler) resize(ctx context.Context, obs *observation, wanted resizeWanted) (int64, error) {
	log.FromContext(ctx).V(1).Info("Raising limit", "pod", wanted.pod.name, "from", humanBytes(wanted.from), "to", humanBytes(wanted.to))
	resources := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: quantity(wanted.to)}}
	if wanted.request > 0 {
		resources.Requests = corev1.ResourceList{corev1.ResourceMemory: quantity(wanted.request)}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": wanted.pod.resourceVersion},
		"spec":     map[string]any{"containers": []map[string]any{{"name": obs.container.name, "resources": resources}}},
	})
	if err != nil {
		return 0, fmt.Errorf("encoding the patch: %w", err)
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = obs.app.Namespace, wanted.pod.name
	if err := r.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return 0, err
	}
	answered := readPod(pod, obs.container.name, nil)
	if answered.limit == nil {
		return 0, nil
	}
	return answered.limit.Value(), nil
}

// resizedMessage compares what was asked for with the answer: a mutating webhook or a LimitRange's default may have changed it.
func resizedMessage(wanted resizeWanted, answered int64) string {
	message := fmt.Sprintf("pod %s from %s to %s", wanted.pod.name, humanBytes(wanted.from), humanBytes(wanted.to))
	if answered != wanted.to {
		message += fmt.Sprintf(", of which the API server made %s", humanBytes(answered))
	}
	return message
}

// refusedMessage is what the API server said, without the name of the pod at its beginning, so that several pods share one message.
func refusedMessage(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return err.Error()
	}
	details := status.Status().Details
	if details != nil && len(details.Causes) > 0 && details.Causes[0].Message != "" {
		return details.Causes[0].Message
	}
	message := status.Status().Message
	if _, why, named := strings.Cut(message, "is forbidden: "); named {
		return why
	}
	return message
}
