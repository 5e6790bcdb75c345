// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// defaultsOf is a LimitRange with defaults for memory.
func defaultsOf(name, request, limit string) corev1.LimitRange {
	resources := testobjects.MemoryResources(request, limit)
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: resources.Limits, DefaultRequest: resources.Requests}
	r := corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	r.Name = name
	return r
}

// podLevel sets pod-level resources.
func podLevel(request, limit string) testobjects.Change[corev1.PodTemplateSpec] {
	return func(p *corev1.PodTemplateSpec) { p.Spec.Resources = new(testobjects.MemoryResources(request, limit)) }
}

// ownMemory sets the memory of the application's container.
func ownMemory(request, limit string) testobjects.Change[corev1.PodTemplateSpec] {
	return container(func(c *corev1.Container) { c.Resources = testobjects.MemoryResources(request, limit) })
}

// beside adds a container with this memory.
func beside(request, limit string) testobjects.Change[corev1.PodTemplateSpec] {
	return func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Resources: testobjects.MemoryResources(request, limit)})
	}
}

// beforeIt adds an init container with 128Mi, which is a sidecar if it restarts.
func beforeIt(policy *corev1.ContainerRestartPolicy) testobjects.Change[corev1.PodTemplateSpec] {
	return func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers = append(p.Spec.InitContainers,
			corev1.Container{Name: "init", Resources: testobjects.MemoryResources("128Mi", "128Mi"), RestartPolicy: policy})
	}
}

func TestEffectiveLimitOfNewPods(t *testing.T) {
	type changes = []testobjects.Change[corev1.PodTemplateSpec]
	always := new(corev1.ContainerRestartPolicyAlways)
	cases := map[string]struct {
		template       changes
		ranges         []corev1.LimitRange
		limit, request string // empty: none
		bestEffort     bool
	}{
		"own limit":                                     {changes{ownMemory("512Mi", "1Gi")}, nil, "1Gi", "512Mi", false},
		"own limit without a request":                   {changes{ownMemory("", "1Gi")}, nil, "1Gi", "1Gi", false},
		"own limit before a LimitRange":                 {changes{ownMemory("", "1Gi")}, []corev1.LimitRange{defaultsOf("a", "1Gi", "2Gi")}, "1Gi", "1Gi", false},
		"request, and the limit of a LimitRange":        {changes{ownMemory("512Mi", "")}, []corev1.LimitRange{defaultsOf("a", "1Gi", "2Gi")}, "2Gi", "512Mi", false},
		"nothing but a LimitRange":                      {changes{ownMemory("", "")}, []corev1.LimitRange{defaultsOf("b", "2Gi", "3Gi"), defaultsOf("a", "1Gi", "2Gi")}, "2Gi", "1Gi", false},
		"nothing":                                       {changes{ownMemory("", "")}, nil, "", "", true},
		"only a request":                                {changes{ownMemory("512Mi", "")}, nil, "", "512Mi", false},
		"only pod-level":                                {changes{ownMemory("", ""), podLevel("1Gi", "1Gi")}, nil, "1Gi", "", false},
		"only a pod-level request":                      {changes{ownMemory("", ""), podLevel("1Gi", "")}, nil, "", "", false},
		"pod-level, less the limit of a neighbour":      {changes{ownMemory("", ""), podLevel("1Gi", "1Gi"), beside("64Mi", "256Mi")}, nil, "768Mi", "", false},
		"pod-level, less the request of a neighbour":    {changes{ownMemory("", ""), podLevel("1Gi", "1Gi"), beside("64Mi", "")}, nil, "960Mi", "", false},
		"pod-level, less a sidecar":                     {changes{ownMemory("", ""), podLevel("1Gi", "1Gi"), beforeIt(always)}, nil, "896Mi", "", false},
		"pod-level, an init container has ended":        {changes{ownMemory("", ""), podLevel("1Gi", "1Gi"), beforeIt(nil)}, nil, "1Gi", "", false},
		"own limit below the pod-level one":             {changes{ownMemory("512Mi", "512Mi"), podLevel("1Gi", "1Gi")}, nil, "512Mi", "512Mi", false},
		"own limit above the rest of the pod-level one": {changes{ownMemory("512Mi", "1Gi"), podLevel("1Gi", "1Gi"), beside("64Mi", "256Mi")}, nil, "768Mi", "512Mi", false},
		"nothing left of the pod-level limit":           {changes{ownMemory("", ""), podLevel("1Gi", "1Gi"), beside("2Gi", "2Gi")}, nil, "1", "", false},
	}
	text := func(c *Container) (limit, request string) {
		if c.Limit != nil {
			limit = c.Limit.String()
		}
		if c.Request != nil {
			request = c.Request.String()
		}
		return limit, request
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = testobjects.Container })
			template := testobjects.PodTemplate("1Gi", c.template...)
			before := template.DeepCopy()
			for range 2 {
				found := containerOf(app, template, c.ranges, nil)
				limit, request := text(found)
				if limit != c.limit || request != c.request || found.BestEffort != c.bestEffort {
					t.Errorf("limit %q, request %q, BestEffort %t; want %q, %q, %t", limit, request, found.BestEffort, c.limit, c.request, c.bestEffort)
				}
				slices.Reverse(c.ranges)
			}
			wantNoDiff(t, "template", before, template)
		})
	}
}

// TestLimitOfLimitRangeIsPlannedFor: the API server gives every pod this limit, and injects memory for it.
func TestLimitOfLimitRangeIsPlannedFor(t *testing.T) {
	ofTemplate := reported()
	ofRange := ofTemplate
	ofRange.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", ownMemory("", "")))
	ofRange.ranges = []corev1.LimitRange{defaultsOf("defaults", "1Gi", "1Gi")}
	ofTemplate.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", ownMemory("1Gi", "1Gi")))
	want, got := ofTemplate.decide(t), ofRange.decide(t)
	if want.Injection == nil || want.Injection.Memory.ForLimit == nil {
		t.Fatalf("nothing is injected with a limit in the template: %+v", want.Injection)
	}
	wantNoDiff(t, "injection", want.Injection, got.Injection)
	wantNoDiff(t, "plan", want.Files, got.Files)
}

// TestPodLevelLimitIsPlannedForAndKept: neither new nor running pods get a limit that the pod cannot hold.
func TestPodLevelLimitIsPlannedForAndKept(t *testing.T) {
	for name, own := range map[string]testobjects.Change[corev1.PodTemplateSpec]{
		"only pod-level": ownMemory("", ""), "both levels": ownMemory("1Gi", "2Gi"),
	} {
		t.Run(name, func(t *testing.T) {
			template := testobjects.PodTemplate("1Gi", own, podLevel("2Gi", "2Gi"), beside("64Mi", "512Mi"))
			f := reported()
			f.app = testobjects.StreamApp(testobjects.LimitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Container = testobjects.Container })
			f.workload = testobjects.StatefulSet(3, template)
			f.pods = testobjects.RunningPods(3, "1Gi", withAgent, func(p *corev1.Pod) {
				p.Spec.Resources = template.Spec.Resources
				p.Spec.Containers = append([]corev1.Container{}, template.Spec.Containers...)
				ofImage(testImage, testDigest)(p)
				p.Status.ContainerStatuses[0].Resources = nil
			})
			for _, tasks := range []int{4, 100} {
				f.reports = manyReports(tasks)
				d := f.decide(t)
				if d.Plan.Limit != 1536<<20 {
					t.Errorf("%d tasks: the plan is for %s, want 1536Mi", tasks, bytesText(d.Plan.Limit))
				}
				if len(d.Resizes)+len(d.Restarts) > 0 {
					t.Errorf("%d tasks: resizes %v, %v; want none", tasks, d.Resizes, d.Restarts)
				}
				if d.Injection != nil && d.Injection.Memory.Limit != nil {
					t.Errorf("%d tasks: injected memory %+v, want none", tasks, d.Injection.Memory)
				}
				if !slices.ContainsFunc(d.status().Warnings, func(w string) bool { return w == podLevelText }) {
					t.Errorf("%d tasks: warnings %q", tasks, d.status().Warnings)
				}
			}
		})
	}
}
