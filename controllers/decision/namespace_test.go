// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
	"streamweir.dev/streamweir/memplan"
)

const mib = int64(1) << 20

func memoryList(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: *testobjects.Memory(text)}
}

func TestCapOfLimitRanges(t *testing.T) {
	now := usage{request: 256 * mib, neighbours: NeighbourMemory{Limits: 100 * mib}, replicas: 3}
	requestFollows := now
	requestFollows.requestFollows = true
	const noCap = math.MaxInt64
	cases := map[string]struct {
		items []corev1.LimitRangeItem
		now   usage
		want  int64
	}{
		"no item": {nil, now, noCap},
		"maximum of a container": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: memoryList("1Gi")}}, now, 1024 * mib,
		},
		"maximum of a pod: less the limits of the other containers": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: memoryList("1Gi")}}, now, 924 * mib,
		},
		"maximum of a pod, exceeded by the other containers: no limit is small enough": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: memoryList("50Mi")}}, now, 1,
		},
		"maximum of a PersistentVolumeClaim: not memory": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypePersistentVolumeClaim, Max: memoryList("1Mi")}}, now, noCap,
		},
		"minimum: no cap": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: memoryList("1Gi")}}, now, noCap,
		},
		"ratio to the request": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("3")}}, now, 768 * mib,
		},
		"fractional ratio": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("1500m")}}, now, 384 * mib,
		},
		"ratio of a pod": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypePod, MaxLimitRequestRatio: memoryList("3")}}, now, 668 * mib,
		},
		"ratio, request follows the limit": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("3")}}, requestFollows, noCap,
		},
		"ratio without a request": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: memoryList("3")}}, usage{replicas: 3}, noCap,
		},
		"several items: the lowest counts": {
			[]corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: memoryList("2Gi")}, {Type: corev1.LimitTypeContainer, Max: memoryList("700Mi")}},
			now, 700 * mib,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			small := corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: c.items}}
			want := NamespaceCap{Bytes: c.want, SetBy: "LimitRange small"}
			if c.want == noCap {
				want.SetBy = ""
			}
			wantNoDiff(t, "cap", want, namespaceCap([]corev1.LimitRange{small}, nil, c.now))
		})
	}
}

func TestCapOfQuotas(t *testing.T) {
	quota := func(name corev1.ResourceName, hard, used string, scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuota {
		team := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes}}
		team.Status.Hard = corev1.ResourceList{name: *testobjects.Memory(hard)}
		if used != "" {
			team.Status.Used = corev1.ResourceList{name: *testobjects.Memory(used)}
		}
		return team
	}
	const (
		noCap    = math.MaxInt64
		limits   = corev1.ResourceLimitsMemory
		requests = corev1.ResourceRequestsMemory
	)
	now := usage{request: 512 * mib, held: 3 * 512 * mib, heldRequests: 3 * 512 * mib, created: 3, replicas: 3}
	requestFollows := now
	requestFollows.requestFollows = true
	noPods := usage{request: 512 * mib, replicas: 3}
	withSidecar := now
	withSidecar.neighbours.Limits = 128 * mib
	noPodsWithSidecar := noPods
	noPodsWithSidecar.neighbours.Limits = 128 * mib
	selective := quota(limits, "1Mi", "")
	selective.Spec.ScopeSelector = &corev1.ScopeSelector{}
	cases := map[string]struct {
		quota corev1.ResourceQuota
		now   usage
		want  int64
	}{
		"free memory is divided by the replicas":              {quota(limits, "3Gi", "1536Mi"), now, 1024 * mib},
		"no free memory: the present limit":                   {quota(limits, "1536Mi", "1536Mi"), now, 512 * mib},
		"used above hard: the present limit":                  {quota(limits, "1Gi", "1536Mi"), now, 512 * mib},
		"no pods: all have to fit into the free memory":       {quota(limits, "3Gi", ""), noPods, 1024 * mib},
		"no pods: sidecars take their part":                   {quota(limits, "3Gi", ""), noPodsWithSidecar, 896 * mib},
		"sidecars of existing pods are used memory":           {quota(limits, "3Gi", "1536Mi"), withSidecar, 1024 * mib},
		"requests: no cap for the limit":                      {quota(requests, "1536Mi", "1536Mi"), now, noCap},
		"requests, following the limit":                       {quota(requests, "3Gi", "1536Mi"), requestFollows, 1024 * mib},
		"requests, following the limit, by the old name":      {quota(corev1.ResourceMemory, "3Gi", "1536Mi"), requestFollows, 1024 * mib},
		"quota for BestEffort pods: does not apply":           {quota(limits, "1Mi", "", corev1.ResourceQuotaScopeBestEffort), now, noCap},
		"quota for pods with a deadline: does not apply":      {quota(limits, "1Mi", "", corev1.ResourceQuotaScopeTerminating), now, noCap},
		"quota for pods without a deadline: applies":          {quota(limits, "3Gi", "1536Mi", corev1.ResourceQuotaScopeNotTerminating), now, 1024 * mib},
		"quota with a scope selector: not known, not counted": {selective, now, noCap},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := NamespaceCap{Bytes: c.want, SetBy: "ResourceQuota team"}
			if c.want == noCap {
				want.SetBy = ""
			}
			wantNoDiff(t, "cap", want, namespaceCap(nil, []corev1.ResourceQuota{c.quota}, c.now))
		})
	}
}

func TestEqualCapsNameTheFirst(t *testing.T) {
	quota := func(name string, hard string) corev1.ResourceQuota {
		return corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: *testobjects.Memory(hard)}},
		}
	}
	for hard, want := range map[string]int64{"3Gi": 1024 * mib, "0": 1} {
		a, b := quota("a", hard), quota("b", hard)
		for _, quotas := range [][]corev1.ResourceQuota{{a, b}, {b, a}} {
			wantNoDiff(t, "cap", NamespaceCap{Bytes: want, SetBy: "ResourceQuota a"}, namespaceCap(nil, quotas, usage{replicas: 3}))
		}
	}
}

func TestUsage(t *testing.T) {
	sidecar := func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "proxy", Resources: testobjects.MemoryResources("64Mi", "128Mi")})
	}
	raised := testobjects.RunningPod(0, "768Mi")
	ended := testobjects.RunningPod(1, "2Gi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	f := fixture{
		app:      testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = testobjects.Container }),
		workload: testobjects.StatefulSet(3, testobjects.PodTemplate("512Mi", sidecar)), pods: []*corev1.Pod{raised, ended},
	}.facts(t)
	got := usageOf(f.Container, f.Workload.Replicas, f.App.Spec.Memory.Requests, f.Pods)
	want := usage{
		request: 512 * mib, neighbours: NeighbourMemory{Limits: 128 * mib, Requests: 64 * mib},
		held: 768 * mib, heldRequests: 768 * mib, created: 1, replicas: 3,
	}
	if got != want {
		t.Errorf("usage = %+v, want %+v: the template's request, the sidecar's memory and the pod that exists", got, want)
	}
}

// TestRange: the bounds of the limit reach the planner as they are set.
func TestRange(t *testing.T) {
	small := corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: memoryList("1536Mi")}}},
	}
	const gib = memplan.GiB
	cases := map[string]struct {
		input fixture
		want  memplan.Range
	}{
		"no range: the limit is given": {
			fixture{app: testobjects.StreamApp()}, memplan.Range{Template: gib, Max: memplan.MaxBytes, Cap: memplan.MaxBytes},
		},
		"no range, with a cap: the limit is given": {
			fixture{app: testobjects.StreamApp(), ranges: []corev1.LimitRange{small}}, memplan.Range{Template: gib, Max: memplan.MaxBytes, Cap: 1536 * memplan.MiB},
		},
		"minLimit": {
			fixture{app: testobjects.StreamApp(testobjects.LimitsBetween("512Mi", ""))},
			memplan.Range{Template: gib, Adjustable: true, Min: 512 * memplan.MiB, Max: memplan.MaxBytes, Cap: memplan.MaxBytes},
		},
		"maxLimit": {
			fixture{app: testobjects.StreamApp(testobjects.LimitsBetween("", "4Gi"))},
			memplan.Range{Template: gib, Adjustable: true, Max: 4 * gib, Cap: memplan.MaxBytes},
		},
		"both, with a cap": {
			fixture{ranges: []corev1.LimitRange{small}},
			memplan.Range{Template: gib, Adjustable: true, Min: 512 * memplan.MiB, Max: 4 * gib, Cap: 1536 * memplan.MiB},
		},
		"bounded pods": {
			reported(), memplan.Range{Template: gib, Adjustable: true, Min: 512 * memplan.MiB, Max: 4 * gib, Cap: memplan.MaxBytes, BelowTemplate: true},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantNoDiff(t, "range", c.want, limitRange(c.input.facts(t))) })
	}
}

// TestCapText: the text names the bound and its value.
func TestCapText(t *testing.T) {
	small := corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: memoryList("1Gi")}}},
	}
	team := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: *testobjects.Memory("3600Mi")}, Used: corev1.ResourceList{corev1.ResourceLimitsMemory: *testobjects.Memory("3Gi")},
	}}
	heavy := groupOf(40, 40, 40)
	percent := testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", javaOptions("-XX:MaxRAMPercentage=95")))
	cases := map[string]struct {
		input fixture
		want  string
	}{
		"the required limit is within the range": {fixture{group: groupOf(4, 4, 4)}, ""},
		"no range":                               {fixture{app: testobjects.StreamApp(), group: heavy}, ""},
		"maxLimit":                               {fixture{app: testobjects.StreamApp(testobjects.LimitsBetween("", "1Gi")), group: heavy}, "`maxLimit` is 1Gi"},
		"LimitRange":                             {fixture{group: heavy, ranges: []corev1.LimitRange{small}}, "LimitRange small allows at most 1Gi"},
		"ResourceQuota":                          {fixture{group: heavy, quotas: []corev1.ResourceQuota{team}}, "ResourceQuota team allows at most 1200Mi"},
		"no limit fits at all": {
			fixture{app: testobjects.StreamApp(testobjects.LimitsBetween("1Gi", "")), group: groupOf(4, 4, 4), workload: percent},
			"no limit is large enough: the heap grows with it",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.input.decide(t).Plan.Capped; got != c.want {
				t.Errorf("capped = %q, want %q", got, c.want)
			}
		})
	}
}
