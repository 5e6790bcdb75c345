// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// NamespaceCap is the largest memory limit of the container that LimitRanges and quotas of the namespace permit.
type NamespaceCap struct {
	// Bytes is math.MaxInt64 without a cap.
	Bytes int64
	// SetBy is the kind and name of the object that sets the cap.
	SetBy string
}

// lower sets the cap if it is lower than the known one. Of equal caps the first by name counts, because lists of a cache have no order.
func (c *NamespaceCap) lower(bytes int64, by string) {
	bytes = max(1, bytes)
	first := bytes == c.Bytes && by < c.SetBy
	if bytes < c.Bytes || first {
		c.Bytes = bytes
		c.SetBy = by
	}
}

// usage is the memory of the target's pods against which the limits of a namespace are measured, in bytes.
type usage struct {
	request            int64 // of the container in one pod
	neighbours         NeighbourMemory
	held, heldRequests int64 // of the container in all existing pods
	created, replicas  int   // existing and desired pods
	requestFollows     bool  // the request rises with the limit
}

// namespaceCap derives the cap from the LimitRanges and quotas of the namespace. Both are checked after the admission policy has injected a
// limit (k8s.io/kubernetes pkg/kubeapiserver/options/plugins.go), so the creation of pods with a larger limit would fail. The free part of a
// quota, with the memory that the pods hold already, is divided by the replicas: all of them will be replaced in time.
func namespaceCap(ranges []corev1.LimitRange, quotas []corev1.ResourceQuota, now usage) NamespaceCap {
	result := NamespaceCap{Bytes: math.MaxInt64}
	for i := range ranges {
		for _, item := range ranges[i].Spec.Limits {
			limitRangeCap(&result, item, now, "LimitRange "+ranges[i].Name)
		}
	}
	for i := range quotas {
		quotaCap(&result, &quotas[i], now)
	}
	return result
}

func limitRangeCap(result *NamespaceCap, item corev1.LimitRangeItem, now usage, by string) {
	maximum, limited := item.Max[corev1.ResourceMemory]
	if limited && item.Type == corev1.LimitTypeContainer {
		result.lower(wholeBytes(maximum), by)
	}
	if limited && item.Type == corev1.LimitTypePod {
		result.lower(wholeBytes(maximum)-now.neighbours.Limits, by)
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
		result.lower(int64(most*float64(now.request+now.neighbours.Requests))-now.neighbours.Limits, by)
	}
}

// ignoresQuota returns whether a quota does not apply to the pods of a long-running workload with resources.
func ignoresQuota(quota *corev1.ResourceQuota) bool {
	return quota.Spec.ScopeSelector != nil || slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopeBestEffort) ||
		slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopeTerminating)
}

func quotaCap(result *NamespaceCap, quota *corev1.ResourceQuota, now usage) {
	if ignoresQuota(quota) {
		return
	}
	pods := int64(max(1, now.replicas, now.created))
	share := func(name corev1.ResourceName, held, neighbours int64) {
		hard, limited := quota.Status.Hard[name]
		if !limited {
			return
		}
		used := quota.Status.Used[name]
		free := max(0, wholeBytes(hard)-wholeBytes(used)) - neighbours*(pods-int64(now.created))
		result.lower((held+free)/pods, "ResourceQuota "+quota.Name)
	}
	share(corev1.ResourceLimitsMemory, now.held, now.neighbours.Limits)
	if now.requestFollows {
		share(corev1.ResourceRequestsMemory, now.heldRequests, now.neighbours.Requests)
		share(corev1.ResourceMemory, now.heldRequests, now.neighbours.Requests)
	}
}

// usageOf derives the memory of the target's pods.
func usageOf(c *Container, replicas int, requests v1alpha1.RequestsPolicy, pods []Pod) usage {
	now := usage{request: c.Limit.Value(), neighbours: c.Neighbours, replicas: replicas}
	followsLimit := requests == v1alpha1.RequestsFollowLimit && !c.CPUGuaranteed
	now.requestFollows = c.Guaranteed || followsLimit
	if c.Request != nil { // else the API server sets it to the limit
		now.request = c.Request.Value()
	}
	for i := range pods {
		p := &pods[i]
		if !p.usesMemory() || p.Limit == nil {
			continue
		}
		now.created++
		now.held += p.Limit.Value()
		now.heldRequests += cmp.Or(p.Request, p.Limit).Value()
	}
	return now
}
