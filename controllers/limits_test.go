// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"testing/quick"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
)

const mib = int64(1) << 20

func TestClamp(t *testing.T) {
	cases := map[string]struct {
		walls      envelope
		need       int64
		wantLimit  int64
		wantCapped string
	}{
		"the need, where it is above everything": {
			envelope{template: 512 * mib, minLimit: 256 * mib, maxLimit: 2048 * mib}, 700 * mib, 700 * mib, "",
		},
		"never below the template": {
			envelope{template: 512 * mib, minLimit: 256 * mib, maxLimit: 2048 * mib}, 300 * mib, 512 * mib, "",
		},
		"never below minLimit": {
			envelope{template: 512 * mib, minLimit: 768 * mib}, 300 * mib, 768 * mib, "",
		},
		"never above maxLimit": {
			envelope{template: 512 * mib, maxLimit: 1024 * mib}, 1025 * mib, 1024 * mib, "`maxLimit` is 1Gi",
		},
		"exactly maxLimit is not capped": {
			envelope{template: 512 * mib, maxLimit: 1024 * mib}, 1024 * mib, 1024 * mib, "",
		},
		"a roof below maxLimit counts": {
			envelope{template: 512 * mib, maxLimit: 2048 * mib, roof: roof{1024 * mib, "LimitRange small"}}, 1500 * mib, 1024 * mib, "LimitRange small allows at most 1Gi",
		},
		"a roof without maxLimit counts": {
			envelope{template: 512 * mib, minLimit: 512 * mib, roof: roof{600 * mib, "ResourceQuota team"}}, 700 * mib, 600 * mib, "ResourceQuota team allows at most 600Mi",
		},
		"maxLimit below the template: the template is not touched": {
			envelope{template: 1024 * mib, maxLimit: 512 * mib}, 600 * mib, 1024 * mib, "",
		},
		"maxLimit below the template, and a need above it": {
			envelope{template: 1024 * mib, maxLimit: 512 * mib}, 2048 * mib, 1024 * mib, "`maxLimit` is 512Mi",
		},
		"a roof below minLimit is no trouble while the need is met": {
			envelope{template: 512 * mib, minLimit: 1024 * mib, roof: roof{800 * mib, "LimitRange small"}}, 700 * mib, 800 * mib, "",
		},
		"a need that no limit meets asks for nothing": {
			envelope{template: 512 * mib, minLimit: 600 * mib}, neverFits, 600 * mib, "no limit is large enough: the heap grows with it",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limit, capped := c.walls.clamp(c.need)
			if limit != c.wantLimit || capped != c.wantCapped {
				t.Errorf("clamp(%s) = %s, %q; want %s, %q", humanBytes(c.need), humanBytes(limit), capped, humanBytes(c.wantLimit), c.wantCapped)
			}
		})
	}
}

// TestClampHoldsItsWalls checks, for any walls and needs, what clamp promises.
func TestClampHoldsItsWalls(t *testing.T) {
	holds := func(template, minLimit, maxLimit, roofBytes, need uint32) bool {
		walls := envelope{template: int64(template) + 1, minLimit: int64(minLimit), maxLimit: int64(maxLimit), roof: roof{bytes: int64(roofBytes), setBy: "x"}}
		limit, capped := walls.clamp(int64(need))
		most := walls.most()
		switch {
		case limit < walls.template: // never below the template's
			return false
		case most > 0 && limit > max(most, walls.template): // never above the walls, unless the template is
			return false
		case (capped == "") != (limit >= int64(need)): // it says so exactly when the need is not met
			return false
		}
		larger, _ := walls.clamp(int64(need) + mib)
		return larger >= limit
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

func TestManaged(t *testing.T) {
	cases := map[string]struct {
		walls envelope
		want  bool
	}{
		"no range: the pod's own limit is the envelope": {envelope{template: mib, roof: roof{bytes: mib}}, false},
		"minLimit alone": {envelope{minLimit: mib}, true},
		"maxLimit alone": {envelope{maxLimit: mib}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.walls.managed(); got != c.want {
				t.Errorf("managed() = %v, want %v", got, c.want)
			}
		})
	}
}

func limitRange(items ...corev1.LimitRangeItem) []corev1.LimitRange {
	return []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: items}}}
}

func memoryList(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: *memory(text)}
}

func TestRoofOfLimitRanges(t *testing.T) {
	now := placement{request: 256 * mib, others: 100 * mib, replicas: 3}
	following := now
	following.requestFollows = true
	cases := map[string]struct {
		ranges []corev1.LimitRange
		now    placement
		want   int64
	}{
		"none": {nil, now, 0},
		"the most of a container": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: memoryList("1Gi")}), now, 1024 * mib,
		},
		"the most of a pod, less what its other containers have": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: memoryList("1Gi")}), now, 924 * mib,
		},
		"other containers that have all: a roof that nothing fits under": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: memoryList("50Mi")}), now, 1,
		},
		"a claim is no memory": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: memoryList("1Mi")}), now, 0,
		},
		"the least is no roof": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: memoryList("1Gi")}), now, 0,
		},
		"a ratio to the request": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("3")}), now, 768 * mib,
		},
		"a ratio in tenths": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("1500m")}), now, 384 * mib,
		},
		"a ratio of a whole pod": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod, MaxLimitRequestRatio: memoryList("3")}), now, 668 * mib,
		},
		"a ratio is kept by a request that follows": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("3")}), following, 0,
		},
		"the lowest of several": {
			limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: memoryList("2Gi")},
				corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: memoryList("700Mi")}), now, 700 * mib,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := namespaceRoof(c.ranges, nil, c.now); got.bytes != c.want || c.want > 0 && got.setBy != "LimitRange small" {
				t.Errorf("roof = %s by %q, want %s by LimitRange small", humanBytes(got.bytes), got.setBy, humanBytes(c.want))
			}
		})
	}
}

func TestRoofOfQuotas(t *testing.T) {
	quota := func(hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuota {
		return corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
			Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used},
		}
	}
	list := func(name corev1.ResourceName, text string) corev1.ResourceList {
		return corev1.ResourceList{name: *memory(text)}
	}
	now := placement{request: 512 * mib, held: 3 * 512 * mib, heldRequests: 3 * 512 * mib, created: 3, replicas: 3}
	following, starting := now, placement{request: 512 * mib, replicas: 3}
	following.requestFollows = true
	sidecars := starting
	sidecars.others = 128 * mib
	cases := map[string]struct {
		quota corev1.ResourceQuota
		now   placement
		want  int64
	}{
		"each replica gets an equal part of what is left": {
			quota(list(corev1.ResourceLimitsMemory, "3Gi"), list(corev1.ResourceLimitsMemory, "1536Mi")), now, 1024 * mib,
		},
		"nothing left: what it has": {
			quota(list(corev1.ResourceLimitsMemory, "1536Mi"), list(corev1.ResourceLimitsMemory, "1536Mi")), now, 512 * mib,
		},
		"used above hard: what it has": {
			quota(list(corev1.ResourceLimitsMemory, "1Gi"), list(corev1.ResourceLimitsMemory, "1536Mi")), now, 512 * mib,
		},
		"before the first pod all have to fit into what is left": {
			quota(list(corev1.ResourceLimitsMemory, "3Gi"), nil), starting, 1024 * mib,
		},
		"before the first pod sidecars take their part": {
			quota(list(corev1.ResourceLimitsMemory, "3Gi"), nil), sidecars, 896 * mib,
		},
		"a quota on requests does not bind a limit": {
			quota(list(corev1.ResourceRequestsMemory, "1536Mi"), list(corev1.ResourceRequestsMemory, "1536Mi")), now, 0,
		},
		"a quota on requests binds where they follow the limit": {
			quota(list(corev1.ResourceRequestsMemory, "3Gi"), list(corev1.ResourceRequestsMemory, "1536Mi")), following, 1024 * mib,
		},
		"the old name of requests counts too": {
			quota(list(corev1.ResourceMemory, "3Gi"), list(corev1.ResourceMemory, "1536Mi")), following, 1024 * mib,
		},
		"a quota for BestEffort pods is not ours": {
			quota(list(corev1.ResourceLimitsMemory, "1Mi"), nil, corev1.ResourceQuotaScopeBestEffort), now, 0,
		},
		"a quota for pods with a deadline is not ours": {
			quota(list(corev1.ResourceLimitsMemory, "1Mi"), nil, corev1.ResourceQuotaScopeTerminating), now, 0,
		},
		"a quota for pods without a deadline is": {
			quota(list(corev1.ResourceLimitsMemory, "3Gi"), list(corev1.ResourceLimitsMemory, "1536Mi"), corev1.ResourceQuotaScopeNotTerminating), now, 1024 * mib,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := namespaceRoof(nil, []corev1.ResourceQuota{c.quota}, c.now)
			if got.bytes != c.want || c.want > 0 && got.setBy != "ResourceQuota team" {
				t.Errorf("roof = %s by %q, want %s by ResourceQuota team", humanBytes(got.bytes), got.setBy, humanBytes(c.want))
			}
		})
	}
}

func TestPlacement(t *testing.T) {
	sidecar := func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "proxy", Resources: memoryResources("64Mi", "128Mi")})
	}
	raised := runningPod(0, "768Mi")
	gone := runningPod(1, "2Gi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	obs := observed(t, given{
		app:      streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = testContainer }),
		workload: statefulSet(3, podTemplate("512Mi", sidecar)), pods: []*corev1.Pod{raised, gone},
	})
	now := placementOf(obs)
	if now.request != 512*mib || now.others != 128*mib || now.replicas != 3 || now.requestFollows {
		t.Errorf("placement = %+v, want the template's request and the sidecar's limit", now)
	}
	if now.held != 768*mib || now.created != 1 {
		t.Errorf("held %s by %d pods, want 768Mi by the one that exists", humanBytes(now.held), now.created)
	}
}

func TestHumanBytes(t *testing.T) {
	cases := map[int64]string{0: "0", 512 * mib: "512Mi", 1024 * mib: "1Gi", 1500 * mib: "1500Mi", 1001: "1001", 1536 * 1024: "1536Ki"}
	for bytes, want := range cases {
		if got := humanBytes(bytes); got != want || strings.Contains(got, "e") {
			t.Errorf("humanBytes(%d) = %q, want %q", bytes, got, want)
		}
	}
}
