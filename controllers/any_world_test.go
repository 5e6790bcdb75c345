// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// anyWorld is a world by chance: pods of different limits in different states, nodes that are lost, a group that lags behind.
func anyWorld(random *rand.Rand) given {
	pick := func(options ...string) string { return options[random.IntN(len(options))] }
	limits := []string{"1Gi", "1536Mi", "2Gi", "3Gi"}
	g := given{
		app: streamApp(limitsBetween(pick("", "1Gi", "1280Mi"), pick("", "2Gi", "4Gi")), func(app *v1alpha1.StreamApp) {
			app.Spec.Memory.Requests = v1alpha1.RequestsPolicy(pick("", "Keep", "FollowLimit", "Expected"))
		}),
		workload: statefulSet(int32(1+random.IntN(5)), podTemplate(pick(limits...))),
		nodes:    []*corev1.Node{node("node-1", corev1.ConditionStatus(pick("True", "Unknown", "False")))},
	}
	var tasks []int
	for i := range 1 + random.IntN(5) {
		tasks = append(tasks, random.IntN(7))
		if random.IntN(6) == 0 {
			continue // its process is there, the pod is not
		}
		g.pods = append(g.pods, runningPod(i, pick(limits...), func(p *corev1.Pod) {
			switch random.IntN(8) {
			case 0:
				p.Status.Phase = corev1.PodPending
			case 1:
				p.Annotations = nil
			case 2:
				p.DeletionTimestamp = new(metav1.NewTime(testNow))
			case 3:
				p.CreationTimestamp = metav1.NewTime(testNow.Add(-time.Minute))
			case 4:
				p.Status.ContainerStatuses = nil
			}
		}))
	}
	if random.IntN(8) > 0 {
		g.group = groupOf(tasks...)
	}
	return g
}

// TestAnyWorld checks what a pass must hold whatever it finds.
func TestAnyWorld(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g := anyWorld(rand.New(rand.NewPCG(seed, 0)))
			p := passOf(t, g)
			judged(t, p, &applied{})
			wantLegal(t, p.status(&applied{}))
			wantWithinWalls(t, p)
			if p.want.injection == nil {
				return
			}
			wantSafePlan(t, p)
			for round := range 3 { // a larger limit is followed by a larger plan, and must end there
				next := after(t, g)
				next.pods = carriedOut(g.pods, p.want)
				g, p = next, passOf(t, next)
				if len(p.want.resizes) > 0 {
					t.Fatalf("round %d raises %v once more", round, p.resizes())
				}
				if p.want.injection == nil {
					return
				}
			}
		})
	}
}

// carriedOut are the pods after the kubelets have done what a pass asked for.
func carriedOut(pods []*corev1.Pod, want *desired) []*corev1.Pod {
	var done []*corev1.Pod
	for _, pod := range pods {
		pod = pod.DeepCopy()
		for _, r := range want.resizes {
			if r.pod.name == pod.Name {
				resources := memoryResources(pod.Spec.Containers[0].Resources.Requests.Memory().String(), humanBytes(r.to))
				pod.Spec.Containers[0].Resources = resources
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: testContainer, Resources: &resources}}
			}
		}
		done = append(done, pod)
	}
	return done
}

func wantWithinWalls(t *testing.T, p pass) {
	t.Helper()
	walls := envelopeOf(p.obs)
	most := max(walls.template, walls.most())
	if p.want.limit < walls.template || walls.most() > 0 && p.want.limit > most {
		t.Errorf("limit %s outside of %s and %s", humanBytes(p.want.limit), humanBytes(walls.template), humanBytes(most))
	}
	for _, r := range p.want.resizes {
		if r.to <= r.from || walls.most() > 0 && r.to > most || !r.pod.manageable() || !walls.managed() {
			t.Errorf("pod %s is resized from %s to %s", r.pod.name, humanBytes(r.from), humanBytes(r.to))
		}
	}
	if p.want.held.found() && (p.want.injection != nil || p.want.planData != nil || len(p.want.resizes)+len(p.want.touches) > 0) {
		t.Errorf("held for %s, but something is wanted", p.want.held.reason)
	}
	if i := p.want.injection; i != nil && i.Memory.Limit != nil {
		m := i.Memory
		if m.ForLimit.Value() != walls.template || m.Limit.Value() != p.want.limit || m.Request != nil && m.Request.Cmp(*m.Limit) > 0 {
			t.Errorf("memory %+v is injected, want %s for %s", m, humanBytes(p.want.limit), humanBytes(walls.template))
		}
	}
}

// wantSafePlan: the heap is sized for no more than the least that a pod which reads the plan has, or will have.
func wantSafePlan(t *testing.T, p pass) {
	t.Helper()
	least := p.want.limit
	for i := range p.obs.pods {
		if pod := &p.obs.pods[i]; pod.injected && pod.exists() {
			least = min(least, pod.effectiveLimit().Value())
		}
	}
	_, rest, found := strings.Cut(p.want.planData[planfile.OptionsKey], "-XX:MaxRAM=")
	value, _, _ := strings.Cut(rest, "\n")
	if got, err := strconv.ParseInt(value, 10, 64); !found || err != nil || got > least {
		t.Errorf("MaxRAM = %q, want at most %d", value, least)
	}
}
