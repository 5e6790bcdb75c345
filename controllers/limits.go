// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// envelope is the room in which the operator may set a memory limit, and who set its walls.
type envelope struct {
	// template is the limit in the workload's template.
	template int64
	// proven: the image was seen to run bounded, so that limits may go below the template's, down to minLimit.
	proven bool
	// minLimit and maxLimit are the user's range; zero where not set.
	minLimit, maxLimit int64
	// roof is the most that LimitRanges and quotas of the namespace let a pod have.
	roof roof
}

// managed tells whether the operator may change limits at all. Without a range the pod's own limit is the given envelope.
func (e envelope) managed() bool { return e.minLimit > 0 || e.maxLimit > 0 }

// floor is the least that a pod gets: the template's limit, as long as it is not proven that less is safe.
func (e envelope) floor() int64 {
	if e.proven && e.minLimit > 0 {
		return min(e.template, e.minLimit)
	}
	return e.template
}

// most is the largest limit that may be set; zero for any.
func (e envelope) most() int64 {
	switch {
	case e.maxLimit == 0:
		return e.roof.bytes
	case e.roof.bytes == 0:
		return e.maxLimit
	default:
		return min(e.maxLimit, e.roof.bytes)
	}
}

// clamp brings a need into the envelope and says which wall it met. A limit is never below the floor, and never above the larger of the
// floor and the most that may be set. A need that no limit meets asks for nothing.
func (e envelope) clamp(need int64) (limit int64, capped string) {
	if need >= neverFits {
		limit, _ = e.clamp(0)
		return limit, "no limit is large enough: the heap grows with it"
	}
	limit = max(need, e.minLimit, e.floor())
	most := e.most()
	if most == 0 || limit <= most {
		return limit, ""
	}
	limit = max(most, e.floor())
	if limit >= need {
		return limit, ""
	}
	if most == e.roof.bytes {
		return limit, fmt.Sprintf("%s allows at most %s", e.roof.setBy, humanBytes(most))
	}
	return limit, fmt.Sprintf("`maxLimit` is %s", humanBytes(e.maxLimit))
}

// placement is what the pods of the workload have now, against which the walls of a namespace are measured.
type placement struct {
	request               int64 // of the container in question, in one pod
	others, otherRequests int64 // the limits, and the requests, of the pod's other containers together
	held, heldRequests    int64 // what the pods that exist have for the container in question, all together
	created, replicas     int   // how many pods exist, and how many there should be
	requestFollows        bool  // the request rises with the limit
}

// roof is the largest memory limit of the container that something in the namespace allows.
type roof struct {
	bytes int64 // zero: no roof
	setBy string
}

func (r *roof) lower(bytes int64, by string) {
	if r.bytes == 0 || bytes < r.bytes {
		r.bytes, r.setBy = max(1, bytes), by
	}
}

// namespaceRoof is what the LimitRanges and quotas of the namespace leave. Both are checked after the admission policy has injected a
// limit (k8s.io/kubernetes pkg/kubeapiserver/options/plugins.go), so a limit above it would make the creation of pods fail. What a
// quota has left, with what the pods have already, is shared by all replicas in equal parts: all of them will be replaced in time.
func namespaceRoof(ranges []corev1.LimitRange, quotas []corev1.ResourceQuota, now placement) roof {
	var result roof
	for i := range ranges {
		by := "LimitRange " + ranges[i].Name
		for _, item := range ranges[i].Spec.Limits {
			rangeRoof(&result, item, now, by)
		}
	}
	for i := range quotas {
		quotaRoof(&result, &quotas[i], now)
	}
	return result
}

func rangeRoof(result *roof, item corev1.LimitRangeItem, now placement, by string) {
	maximum, limited := item.Max[corev1.ResourceMemory]
	if limited && item.Type == corev1.LimitTypeContainer {
		result.lower(maximum.Value(), by)
	}
	if limited && item.Type == corev1.LimitTypePod {
		result.lower(maximum.Value()-now.others, by)
	}
	ratio, limited := item.MaxLimitRequestRatio[corev1.ResourceMemory]
	if !limited || now.requestFollows || now.request == 0 {
		return
	}
	most := ratio.AsApproximateFloat64()
	if item.Type == corev1.LimitTypeContainer {
		result.lower(int64(most*float64(now.request)), by)
	}
	if item.Type == corev1.LimitTypePod {
		result.lower(int64(most*float64(now.request+now.otherRequests))-now.others, by)
	}
}

func quotaRoof(result *roof, quota *corev1.ResourceQuota, now placement) {
	if quota.Spec.ScopeSelector != nil || slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopeBestEffort) ||
		slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopeTerminating) {
		return
	}
	pods := int64(max(1, now.replicas, now.created))
	share := func(name corev1.ResourceName, held, others int64) {
		hard, limited := quota.Status.Hard[name]
		if !limited {
			return
		}
		used := quota.Status.Used[name]
		free := max(0, hard.Value()-used.Value()) - others*(pods-int64(now.created))
		result.lower((held+free)/pods, "ResourceQuota "+quota.Name)
	}
	share(corev1.ResourceLimitsMemory, now.held, now.others)
	if now.requestFollows {
		share(corev1.ResourceRequestsMemory, now.heldRequests, now.otherRequests)
		share(corev1.ResourceMemory, now.heldRequests, now.otherRequests)
	}
}

// quantity gives bytes as people write them: whole MiB in Mi, anything else in bytes.
func quantity(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }

func humanBytes(bytes int64) string {
	q := quantity(bytes)
	return q.String()
}

// envelopeOf collects the walls around the container's limit.
func envelopeOf(obs *observation) envelope {
	walls := envelope{template: obs.container.limit.Value(), roof: obs.roof}
	if q := obs.app.Spec.Memory.MinLimit; q != nil {
		walls.minLimit = q.Value()
	}
	if q := obs.app.Spec.Memory.MaxLimit; q != nil {
		walls.maxLimit = q.Value()
	}
	walls.proven = obs.proven()
	return walls
}

// placementOf is what the pods have now, for the walls of the namespace.
func placementOf(obs *observation) placement {
	c := obs.container
	now := placement{request: c.limit.Value(), replicas: obs.workload.replicas}
	now.requestFollows = c.guaranteed || obs.app.Spec.Memory.Requests == v1alpha1.RequestsFollowLimit && !c.cpuBound
	if c.request != nil { // else the API server sets it to the limit
		now.request = c.request.Value()
	}
	for i := range obs.workload.template.Spec.Containers {
		if other := &obs.workload.template.Spec.Containers[i]; other.Name != c.name {
			now.others += other.Resources.Limits.Memory().Value()
			now.otherRequests += other.Resources.Requests.Memory().Value()
		}
	}
	for i := range obs.pods {
		p := &obs.pods[i]
		if !p.exists() || p.limit == nil {
			continue
		}
		now.created++
		now.held += p.limit.Value()
		now.heldRequests += cmp.Or(p.request, p.limit).Value()
	}
	return now
}
