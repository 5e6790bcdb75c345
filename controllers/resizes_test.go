// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
)

// needing is a planning in which every pod needs as much.
func needing(need int64, pods ...string) *planning {
	p := &planning{tasksKnown: true, tasks: 12, need: need, needNow: need, pods: map[string]podPlanning{}}
	for _, name := range pods {
		p.pods[name] = podPlanning{tasks: 4, need: need}
	}
	return p
}

func TestResizesWanted(t *testing.T) {
	guaranteed := func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSGuaranteed }
	asked := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = memoryResources("1Gi", "1500Mi") }
	pending := func(reason string) change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = memoryResources("1Gi", "1400Mi")
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason})
		}
	}
	type ask struct{ From, To, Request int64 }
	to := func(limit int64) *ask { return &ask{From: 1024 * mib, To: limit * mib} }
	between := limitsBetween("512Mi", "2Gi")
	const never = -1
	follow := func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = v1alpha1.RequestsFollowLimit }
	cases := map[string]struct {
		app  *v1alpha1.StreamApp
		pod  change[corev1.Pod]
		need int64
		want *ask
	}{
		"it needs more than it has":            {streamApp(between), func(*corev1.Pod) {}, 1500, to(1500)},
		"it needs just what it has":            {streamApp(between), func(*corev1.Pod) {}, 1024, nil},
		"it needs less: never downward":        {streamApp(between), func(*corev1.Pod) {}, 700, nil},
		"it needs less than minLimit":          {streamApp(limitsBetween("1536Mi", "2Gi")), func(*corev1.Pod) {}, 700, nil},
		"up to maxLimit":                       {streamApp(between), func(*corev1.Pod) {}, 5000, to(2048)},
		"it has maxLimit: no loop at a cap":    {streamApp(limitsBetween("", "1Gi")), func(*corev1.Pod) {}, 5000, nil},
		"no limit is enough":                   {streamApp(between), func(*corev1.Pod) {}, never, nil},
		"no range: not touched":                {streamApp(), func(*corev1.Pod) {}, 1500, nil},
		"asked for already":                    {streamApp(between), asked, 1500, nil},
		"asked for less, which is on its way":  {streamApp(between), asked, 1600, nil},
		"put off by the kubelet":               {streamApp(between), pending(corev1.PodReasonDeferred), 1500, nil},
		"refused by the kubelet":               {streamApp(between), pending(corev1.PodReasonInfeasible), 1500, nil},
		"not injected: left as it is":          {streamApp(between), func(p *corev1.Pod) { p.Annotations = nil }, 1500, nil},
		"being deleted":                        {streamApp(between), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(testNow)) }, 1500, nil},
		"pending":                              {streamApp(between), func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, 1500, nil},
		"on a lost node":                       {streamApp(between), func(p *corev1.Pod) { p.Spec.NodeName = "lost" }, 1500, nil},
		"the kubelet reports nothing":          {streamApp(between), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, 1500, to(1500)},
		"Guaranteed: the request goes with it": {streamApp(between), guaranteed, 1500, &ask{1024 * mib, 1500 * mib, 1500 * mib}},
		"requests follow":                      {streamApp(between, follow), func(*corev1.Pod) {}, 1500, &ask{1024 * mib, 1500 * mib, 1500 * mib}},
		"requests follow, but the pod would become Guaranteed": {streamApp(between, follow), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		}, 1500, to(1500)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obs := observed(t, given{app: c.app, workload: statefulSet(1, podTemplate("1Gi")), pods: []*corev1.Pod{runningPod(0, "1Gi", c.pod)},
				nodes: []*corev1.Node{node("lost", corev1.ConditionUnknown)}})
			need := c.need * mib
			if c.need == never {
				need = neverFits
			}
			var got *ask
			for _, r := range resizesWanted(obs, needing(need, "orders-0"), envelopeOf(obs), false) {
				got = &ask{r.from, r.to, r.request}
			}
			wantNoDiff(t, "resize", c.want, got)
		})
	}
}

// TestResizesWhileSettling: while pods come back, what the others may get is no reason to raise them, what they run is.
func TestResizesWhileSettling(t *testing.T) {
	for now, want := range map[int64]int64{900 * mib: 0, 1200 * mib: 1200 * mib} {
		obs := observed(t, given{app: streamApp(limitsBetween("512Mi", "2Gi")), workload: statefulSet(1, podTemplate("1Gi")), pods: runningPodsOf(1, "1Gi")})
		p := &planning{tasksKnown: true, pods: map[string]podPlanning{"orders-0": {need: 1500 * mib, now: now}}}
		var got int64
		for _, r := range resizesWanted(obs, p, envelopeOf(obs), true) {
			got = r.to
		}
		if got != want {
			t.Errorf("running what needs %s: raised to %d, want %d", humanBytes(now), got, want)
		}
	}
}

// TestATemplatesNewLimitDoesNotMoveRunningPods: the user has changed it, and new pods will have it.
func TestATemplatesNewLimitDoesNotMoveRunningPods(t *testing.T) {
	for _, limit := range []string{"512Mi", "2Gi", "3Gi"} {
		obs := observed(t, given{workload: statefulSet(3, podTemplate(limit)), pods: runningPodsOf(3, "1Gi")})
		if got := resizesWanted(obs, needing(900*mib, "orders-0", "orders-1", "orders-2"), envelopeOf(obs), false); len(got) > 0 {
			t.Errorf("with a template of %s, %d pods are resized though their limit holds what they need", limit, len(got))
		}
	}
}

func TestRequestOfNewPods(t *testing.T) {
	bound := container(func(c *corev1.Container) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi"), corev1.ResourceCPU: resource.MustParse("1")}
		c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	})
	guaranteed := container(func(c *corev1.Container) {
		c.Resources.Requests, c.Resources.Limits[corev1.ResourceCPU] = nil, resource.MustParse("1")
	})
	plain := func(*corev1.PodTemplateSpec) {}
	cases := map[string]struct {
		template change[corev1.PodTemplateSpec]
		policy   v1alpha1.RequestsPolicy
		expected int64
		want     int64
	}{
		"by default it stays":                          {plain, "", 600, 0},
		"it stays":                                     {plain, v1alpha1.RequestsKeep, 600, 0},
		"it follows the limit":                         {plain, v1alpha1.RequestsFollowLimit, 600, 2048},
		"it is what is expected":                       {plain, v1alpha1.RequestsExpected, 600, 600},
		"never above the limit":                        {plain, v1alpha1.RequestsExpected, 5000, 2048},
		"Guaranteed stays so, by default":              {guaranteed, "", 600, 2048},
		"Guaranteed stays so, whatever is asked":       {guaranteed, v1alpha1.RequestsExpected, 600, 2048},
		"Burstable stays so: it may not follow":        {bound, v1alpha1.RequestsFollowLimit, 600, 0},
		"Burstable stays so: less than the limit is":   {bound, v1alpha1.RequestsExpected, 600, 600},
		"Burstable stays so: as much as the limit not": {bound, v1alpha1.RequestsExpected, 5000, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obs := observed(t, given{
				app:      streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = c.policy }),
				workload: statefulSet(3, podTemplate("1Gi", c.template)),
			})
			if got := requestFor(obs, 2048*mib, c.expected*mib); got != c.want*mib {
				t.Errorf("request = %s, want %d MiB", humanBytes(got), c.want)
			}
		})
	}
}

func TestInjectedMemory(t *testing.T) {
	obs := observed(t, given{workload: statefulSet(3, podTemplate("0.5Gi"))})
	got := injectedMemory(obs, 2048*mib, 600*mib)
	wantNoDiff(t, "memory", v1alpha1.InjectedMemory{ForLimit: memory("512Mi"), Limit: memory("2Gi")}, got)
}

// TestWithdrawn: what was injected is taken back where pods cannot be had with it, and stays so until something relevant changes.
func TestWithdrawn(t *testing.T) {
	const template, limit = 1024 * mib, 2048 * mib
	injection := func(withdrawn string, limit string) *v1alpha1.PodInjection {
		i := &v1alpha1.PodInjection{Spec: v1alpha1.PodInjectionSpec{}}
		if withdrawn != "" {
			i.Annotations = map[string]string{annotationWithdrawn: withdrawn}
		}
		if limit != "" {
			i.Spec.Memory = v1alpha1.InjectedMemory{ForLimit: memory("1Gi"), Limit: memory(limit)}
		}
		return i
	}
	noRoom := func(p *corev1.Pod) {
		p.Status.Phase, p.Spec.NodeName = corev1.PodPending, ""
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available: 3 Insufficient memory."}}
	}
	missingFor := func(d time.Duration) *v1alpha1.StreamApp {
		return streamApp(limitsBetween("512Mi", "4Gi"), func(app *v1alpha1.StreamApp) {
			app.Status.PodsUnavailableSinceTime = new(metav1.NewTime(testNow.Add(-d)))
		})
	}
	notReady := func(p *corev1.Pod) { p.Status.Conditions = nil }
	readyFor := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(testNow.Add(-d))}}
		}
	}
	requested := func(i *v1alpha1.PodInjection) *v1alpha1.PodInjection {
		i.Spec.Memory.Request = i.Spec.Memory.Limit
		return i
	}
	marked := func(limit, template int64, ago time.Duration) string {
		return fmt.Sprintf("%d for %d since %s", limit, template, testNow.Add(-ago).Format(time.RFC3339))
	}
	mark := marked(limit, template, 0)
	cases := map[string]struct {
		given given
		want  string
	}{
		"nothing was injected yet":              {given{workload: deployment(3, podTemplate("1Gi"), failing)}, ""},
		"all is well":                           {given{injection: injection("", "2Gi")}, ""},
		"the Deployment cannot create pods":     {given{injection: injection("", "2Gi"), workload: deployment(3, podTemplate("1Gi"), failing)}, mark},
		"it cannot, but no memory was injected": {given{injection: injection("", ""), workload: deployment(3, podTemplate("1Gi"), failing)}, ""},
		"it cannot, for another reason": {given{injection: injection("", "2Gi"), workload: deployment(3, podTemplate("1Gi"), failing, func(d *appsv1.Deployment) {
			d.Status.Conditions[0].Message = "error looking up service account shop/orders: not found"
		})}, ""},
		"an injected pod finds no node": {
			given{injection: requested(injection("", "2Gi")), workload: statefulSet(1, podTemplate("1Gi")), pods: []*corev1.Pod{runningPod(0, "2Gi", noRoom)}}, mark,
		},
		"an injected pod finds no node, but its request is the template's": {
			given{injection: injection("", "2Gi"), workload: statefulSet(1, podTemplate("1Gi")), pods: []*corev1.Pod{runningPod(0, "2Gi", noRoom)}}, "",
		},
		"another pod finds no node": {
			given{injection: requested(injection("", "2Gi")), workload: statefulSet(1, podTemplate("1Gi")), pods: []*corev1.Pod{runningPod(0, "2Gi", noRoom, func(p *corev1.Pod) { p.Annotations = nil })}}, "",
		},
		"a StatefulSet's pod is not made for 30 s": {
			given{app: missingFor(30 * time.Second), injection: injection("", "2Gi"), workload: statefulSet(3, podTemplate("1Gi")), pods: runningPodsOf(2, "1Gi")}, mark,
		},
		"it is not made yet": {
			given{app: missingFor(29 * time.Second), injection: injection("", "2Gi"), workload: statefulSet(3, podTemplate("1Gi")), pods: runningPodsOf(2, "1Gi")}, "",
		},
		"its controller waits for another pod": {
			given{app: missingFor(time.Hour), injection: injection("", "2Gi"), workload: statefulSet(3, podTemplate("1Gi")), pods: runningPodsOf(2, "1Gi", notReady)}, "",
		},
		"it was withdrawn": {given{injection: injection(mark, "")}, mark},
		"it was withdrawn for a smaller limit: a larger one will not do either": {
			given{injection: injection(marked(1500*mib, template, time.Minute), "")}, marked(1500*mib, template, time.Minute),
		},
		"it was withdrawn for a larger limit: the smaller one waits as well, so that memory does not come and go": {
			given{injection: injection(marked(3000*mib, template, 0), "")}, marked(3000*mib, template, 0),
		},
		"it was withdrawn, and the StreamApp has been changed since: try again": {
			given{injection: injection(mark, ""), app: streamApp(func(app *v1alpha1.StreamApp) { app.Generation, app.Status.ObservedGeneration = 3, 2 })}, "",
		},
		"it was withdrawn for another template": {
			given{injection: injection(marked(limit, 900*mib, 0), "")}, "",
		},
		"it was withdrawn almost an hour ago":     {given{injection: injection(marked(limit, template, 59*time.Minute), "")}, marked(limit, template, 59*time.Minute)},
		"it was withdrawn an hour ago: try again": {given{injection: injection(marked(limit, template, time.Hour), "")}, ""},
		"a mark that someone has spoiled":         {given{injection: injection("nonsense", "")}, ""},
		"a mark with a spoiled time":              {given{injection: injection(fmt.Sprintf("%d for %d since noon", limit, template), "")}, ""},
		"its controller waits until pods were ready for a minute": {
			given{
				app: missingFor(time.Hour), injection: injection("", "2Gi"), pods: runningPodsOf(2, "1Gi", readyFor(time.Minute)),
				workload: statefulSet(3, podTemplate("1Gi"), func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 60 }),
			}, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := withdrawn(observed(t, c.given), template); got != c.want {
				t.Errorf("withdrawn = %q, want %q", got, c.want)
			}
		})
	}
}

// TestWithdrawnMemoryTakesThePlanAlong: new pods get the template's limit then, and the plan must be safe for it.
func TestWithdrawnMemoryTakesThePlanAlong(t *testing.T) {
	g := after(t, given{group: groupOf(12, 12, 12)})
	if g.injection.Spec.Memory.Limit == nil {
		t.Fatal("no memory was injected, so there is none to withdraw")
	}
	raised := g.injection.Spec.Memory.Limit.String()
	g.pods = runningPodsOf(3, raised)
	g.workload = deployment(3, podTemplate("1Gi"), failing)
	want := passOf(t, g).want
	if want.withdrawn == "" || want.injection.Memory.Limit != nil {
		t.Fatalf("withdrawn = %q, memory %+v; want the memory withdrawn", want.withdrawn, want.injection.Memory)
	}
	if options := want.planData[planfile.OptionsKey]; !strings.Contains(options, "-XX:MaxRAM=1073741824\n") {
		t.Errorf("the plan is\n%s\nwant one for the template's limit", options)
	}
}

// TestRollingUpdatesResizeNothing plays three rolling updates, with a group that follows late, and a readiness probe that flaps.
func TestRollingUpdatesResizeNothing(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4), pods: nil})
	limit := g.injection.Spec.Memory.Limit
	if limit == nil {
		limit = memory("1Gi")
	}
	g.pods = runningPodsOf(3, limit.String())
	g = after(t, g)
	generation, now := g.injection.Spec.PlanRevision, testNow
	step := func(what string, g given) given {
		t.Helper()
		now = now.Add(20 * time.Second)
		g.now = now
		p := passOf(t, g)
		if len(p.want.resizes) > 0 {
			t.Fatalf("%s: resizes %v", what, p.resizes())
		}
		if got := p.want.injection; got == nil || got.PlanRevision != generation || got.Memory.Limit != nil && got.Memory.Limit.Cmp(*limit) != 0 {
			t.Fatalf("%s: injection %+v, want plan %s and limit %s as before", what, got, generation, limit)
		}
		g.app = g.app.DeepCopy()
		g.app.Status = p.status(&applied{})
		return g
	}
	all := g.pods
	for round := range 3 {
		for _, gone := range []int{2, 1, 0} {
			rolling := func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = fmt.Sprint(round + 2) }
			moved := []int{6, 6, 6}
			moved[gone] = 0
			g.workload, g.pods = statefulSet(3, podTemplate("1Gi"), rolling), slices.Delete(slices.Clone(all), gone, gone+1)
			g = step("gone, and the group does not know", g)
			g.group = groupOf(moved...)
			g.group.Processes = slices.Delete(g.group.Processes, gone, gone+1)
			g = step("gone, and its tasks have moved", g)
			g = step("still gone", g)
			flapping := runningPod(gone, limit.String(), func(p *corev1.Pod) {
				p.Status.Conditions, p.CreationTimestamp = nil, metav1.NewTime(now)
			})
			g.pods = slices.Insert(slices.Clone(g.pods), gone, flapping)
			g = step("back, and not ready", g)
			g.group, g.pods = groupOf(4, 4, 4), all
			g = step("back, with its tasks", g)
		}
		g.workload = statefulSet(3, podTemplate("1Gi"))
		g = step("rolled out", g)
	}
}

// TestALossRaisesTheSurvivors is the main job: who is left gets what the plan says for the next loss.
func TestNoResizeRestartsAContainer(t *testing.T) {
	p := passOf(t, given{group: groupOf(4, 4, 4), pods: append(runningPodsOf(2, "1Gi"), runningPod(2, "1Gi", restartOnResize))})
	if got := p.resizes(); len(got) != 2 || got["orders-2"] != "" {
		t.Errorf("resizes %v, want the two that restart nothing", got)
	}
	if len(p.want.restarts) != 1 || p.want.restarts[0].pod.name != "orders-2" {
		t.Errorf("restarts needed: %+v, want that of orders-2", p.want.restarts)
	}
}

func TestAContainerThatIsStartedAgainRaisesNothing(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4)})
	limit := g.injection.Spec.Memory.Limit.String()
	g.pods = runningPodsOf(3, limit)
	g = after(t, g)
	g.group = groupOf(6, 6) // what the third had is on the others
	for name, state := range map[string]corev1.ContainerState{
		"it has run for a minute":      runningSince(testNow.Add(-time.Minute)),
		"it waits to be started again": {Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := g
			g.pods = append(runningPodsOf(2, limit), runningPod(2, limit, containerIs(state)))
			p := passOf(t, g)
			if len(p.want.resizes) > 0 || p.want.injection == nil || p.want.injection.Memory.Limit.String() != limit {
				t.Errorf("resizes %v, injection %+v; want nothing but what is there", p.resizes(), p.want.injection)
			}
		})
	}
	g.pods = append(runningPodsOf(2, limit), runningPod(2, limit, containerIs(runningSince(testNow.Add(-time.Hour)))))
	if p := passOf(t, g); len(p.want.resizes) == 0 {
		t.Error("a pod that has run for an hour without tasks is no pod that starts: the others hold more for good, want them raised")
	}
}

func TestWhatRunsAlreadyIsHeldEvenWhilePodsComeBack(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4)})
	limit := g.injection.Spec.Memory.Limit
	g.pods = runningPodsOf(3, limit.String())
	g = after(t, g)
	waiting := containerIs(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})
	g.pods = []*corev1.Pod{runningPod(0, limit.String()), runningPod(1, limit.String(), waiting), runningPod(2, limit.String(), waiting)}
	g.group = groupOf(12) // one more has gone than the plan covers
	p := passOf(t, g)
	if p.want.held.found() || len(p.want.resizes) != 1 || p.want.resizes[0].to != p.planned.needNow {
		t.Errorf("held %+v, resizes %v; want one to %s", p.want.held, p.resizes(), humanBytes(p.planned.needNow))
	}
	if p.want.limit < p.planned.needNow || p.want.generation != g.injection.Spec.PlanRevision {
		t.Errorf("limit %s, plan %s; want at least %s, and the plan in force", humanBytes(p.want.limit), p.want.generation, humanBytes(p.planned.needNow))
	}
}

func TestALossRaisesTheSurvivors(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4)})
	limit := memory("1Gi")
	if l := g.injection.Spec.Memory.Limit; l != nil {
		limit = l
	}
	g.pods = runningPodsOf(3, limit.String())
	g.nodes = []*corev1.Node{node("node-2", corev1.ConditionUnknown)}
	p := passOf(t, g)
	if p.lost.instances != 2 || p.planned.need <= limit.Value() {
		t.Fatalf("instances %d, need %s under a limit of %s: want 2 and a larger need", p.lost.instances, humanBytes(p.planned.need), limit)
	}
	wantNoDiff(t, "resizes", map[string]string{"orders-0": humanBytes(p.planned.need), "orders-1": humanBytes(p.planned.need)}, p.resizes())
	if got := p.want.injection.Memory.Limit; got == nil || got.Value() != p.planned.need {
		t.Errorf("new pods get %v, want %s", got, humanBytes(p.planned.need))
	}
}
