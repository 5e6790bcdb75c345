// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

// TestChooseResizes: the state of the pod decides whether its limit is raised to the planned one.
func TestChooseResizes(t *testing.T) {
	resources := func(limit string) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = testobjects.MemoryResources("1Gi", limit) }
	}
	pending := func(reason string) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			resources("1400Mi")(p)
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason})
		}
	}
	cpuGuaranteed := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	}
	restarts := func(p *corev1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}, {ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
		}
	}
	type amounts struct{ From, To, Request int64 }
	raised := []amounts{{From: 1024 * mib, To: 1500 * mib}}
	raisedWithRequest := []amounts{{From: 1024 * mib, To: 1500 * mib, Request: 1500 * mib}}
	unchanged := func(*corev1.Pod) {}
	const keep, follow = v1alpha1.RequestsKeep, v1alpha1.RequestsFollowLimit
	cases := map[string]struct {
		pod      testobjects.Change[corev1.Pod]
		requests v1alpha1.RequestsPolicy
		to       int64 // MiB
		want     []amounts
		restarts []amounts
	}{
		"more than the pod has":             {unchanged, keep, 1500, raised, nil},
		"the limit of the pod":              {unchanged, keep, 1024, nil, nil},
		"requested already":                 {resources("1500Mi"), keep, 1500, nil, nil},
		"less requested, in progress":       {resources("1500Mi"), keep, 1600, nil, nil},
		"deferred by the kubelet":           {pending(corev1.PodReasonDeferred), keep, 1500, nil, nil},
		"infeasible for the kubelet":        {pending(corev1.PodReasonInfeasible), keep, 1500, nil, nil},
		"not injected":                      {testobjects.NotInjected, keep, 1500, nil, nil},
		"terminating":                       {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(testobjects.Now)) }, keep, 1500, nil, nil},
		"pending":                           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, keep, 1500, nil, nil},
		"on a lost node":                    {func(p *corev1.Pod) { p.Spec.NodeName = "lost" }, keep, 1500, nil, nil},
		"no status from the kubelet":        {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, keep, 1500, raised, nil},
		"Guaranteed: the request is raised": {func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSGuaranteed }, keep, 1500, raisedWithRequest, nil},
		"requests follow the limit":         {unchanged, follow, 1500, raisedWithRequest, nil},
		"requests follow, but the pod would become Guaranteed": {cpuGuaranteed, follow, 1500, raised, nil},
		"a resize would restart the container":                 {restarts, keep, 1500, nil, raised},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := fixture{
				workload: testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi")), pods: []*corev1.Pod{testobjects.RunningPod(0, "1Gi", c.pod)},
				nodes: []*corev1.Node{testobjects.Node("lost", corev1.ConditionUnknown)},
				app:   testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Memory.Requests = c.requests }),
			}
			d := Decision{Facts: *g.facts(t), Plan: Plan{Pods: map[string]PodRequirement{"orders-0": {RaiseTo: c.to * mib}}}}
			d.chooseResizes()
			amountsOf := func(resizes []Resize) []amounts {
				var all []amounts
				for _, r := range resizes {
					if r.Pod != "orders-0" || r.UID != "orders-0-uid" || r.ResourceVersion != "1" {
						t.Errorf("resize of pod %s with UID %s and version %s", r.Pod, r.UID, r.ResourceVersion)
					}
					all = append(all, amounts{r.From, r.To, r.Request})
				}
				return all
			}
			wantNoDiff(t, "resizes", c.want, amountsOf(d.Resizes))
			wantNoDiff(t, "restarts", c.restarts, amountsOf(d.Restarts))
		})
	}
}

// TestRaiseToWithinRange: a limit is raised to the required one, and never above the range.
func TestRaiseToWithinRange(t *testing.T) {
	const gib = 1024 * mib
	oneReplica := testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi"))
	largeHeap := testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi", javaOptions("-XX:MaxRAMPercentage=95")))
	between := func(least, most string) *v1alpha1.StreamApp {
		return testobjects.StreamApp(testobjects.LimitsBetween(least, most))
	}
	cases := map[string]struct {
		app      *v1alpha1.StreamApp
		workload *appsv1.StatefulSet
		limit    string // of the pod
		tasks    int
		want     int64 // 0 for the required limit
	}{
		"the required limit":             {between("512Mi", "8Gi"), oneReplica, "1Gi", 12, 0},
		"less is required: not lowered":  {between("512Mi", "4Gi"), oneReplica, "3Gi", 1, 3 * gib},
		"less is required than minLimit": {between("3500Mi", "4Gi"), oneReplica, "3Gi", 1, 3 * gib},
		"more is required than maxLimit": {between("512Mi", "1800Mi"), oneReplica, "1Gi", 40, 1800 * mib},
		"the pod has maxLimit":           {between("", "1Gi"), oneReplica, "1Gi", 12, gib},
		"no limit is large enough":       {between("512Mi", "4Gi"), largeHeap, "1Gi", 12, gib},
		"no range":                       {testobjects.StreamApp(), oneReplica, "1Gi", 12, gib},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			// With an agent, default RocksDB memory does not freeze the plan.
			g := fixture{agent: true, app: c.app, workload: c.workload, pods: testobjects.RunningPods(1, c.limit), group: groupOf(c.tasks)}
			d := g.decide(t)
			has := testobjects.Memory(c.limit).Value()
			planned := d.Plan.Pods["orders-0"]
			want := c.want
			if want == 0 {
				want = planned.Required
			}
			if planned.RaiseTo != want {
				t.Errorf("the limit is to be %s, want %s; required %s", bytesText(planned.RaiseTo), bytesText(want), requiredText(planned.Required))
			}
			if resized := len(d.Resizes) > 0; resized != (want > has) {
				t.Errorf("resizes = %v for a pod with %s", d.resizes(), c.limit)
			}
		})
	}
}

// TestRaiseToDuringRollout: the load after failures raises no limit while pods return, the load of this moment does.
func TestRaiseToDuringRollout(t *testing.T) {
	for _, tasks := range []int{2, 4} {
		g := fixture{group: groupOf(tasks, tasks, tasks)}
		planned := planApplication(g.facts(t), true, false).Pods["orders-0"]
		if planned.Required <= 1024*mib {
			t.Fatalf("%d tasks require %s, want more than 1Gi", tasks, bytesText(planned.Required))
		}
		if want := max(1024*mib, planned.RequiredNow); planned.RaiseTo != want {
			t.Errorf("%d tasks require %s now: the limit is to be %s, want %s", tasks, bytesText(planned.RequiredNow), bytesText(planned.RaiseTo), bytesText(want))
		}
	}
}

// TestNewTemplateLimitLeavesRunningPods: the user has changed it, and new pods get it.
func TestNewTemplateLimitLeavesRunningPods(t *testing.T) {
	for _, limit := range []string{"512Mi", "2Gi", "3Gi"} {
		g := fixture{group: groupOf(1, 1, 1), pods: testobjects.RunningPods(3, "1Gi")}
		g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate(limit, javaOptions("-Xmx250m")))
		d := g.decide(t)
		if required := d.Plan.Pods["orders-0"].Required; d.Frozen.Found() || required > 1024*mib {
			t.Fatalf("with a template of %s: frozen %v, required %s; want at most 1Gi", limit, d.Frozen, bytesText(required))
		}
		wantNoDiff(t, "resizes with a template of "+limit, map[string]string{}, d.resizes())
	}
}

func TestRequestOfNewPods(t *testing.T) {
	cpuGuaranteed := container(func(c *corev1.Container) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi"), corev1.ResourceCPU: resource.MustParse("1")}
		c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	})
	guaranteed := container(func(c *corev1.Container) {
		c.Resources.Requests = nil
		c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	})
	burstable := func(*corev1.PodTemplateSpec) {}
	cases := map[string]struct {
		template testobjects.Change[corev1.PodTemplateSpec]
		policy   v1alpha1.RequestsPolicy
		expected int64 // MiB
		want     int64 // MiB; 0 if the request stays
	}{
		"default":                   {burstable, "", 600, 0},
		"Keep":                      {burstable, v1alpha1.RequestsKeep, 600, 0},
		"FollowLimit":               {burstable, v1alpha1.RequestsFollowLimit, 600, 2048},
		"Expected":                  {burstable, v1alpha1.RequestsExpected, 600, 600},
		"Expected, above the limit": {burstable, v1alpha1.RequestsExpected, 5000, 2048},
		"Guaranteed by default":     {guaranteed, "", 600, 2048},
		"Guaranteed and Expected: stays Guaranteed":                           {guaranteed, v1alpha1.RequestsExpected, 600, 2048},
		"CPU Guaranteed and FollowLimit: memory stays Burstable":              {cpuGuaranteed, v1alpha1.RequestsFollowLimit, 600, 0},
		"CPU Guaranteed and Expected below the limit":                         {cpuGuaranteed, v1alpha1.RequestsExpected, 600, 600},
		"CPU Guaranteed and Expected above the limit: memory stays Burstable": {cpuGuaranteed, v1alpha1.RequestsExpected, 5000, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", c.template))}.facts(t)
			if got := requestFor(f.Container, c.policy, 2048*mib, c.expected*mib); got != c.want*mib {
				t.Errorf("request = %s, want %d MiB", bytesText(got), c.want)
			}
		})
	}
}

func TestInjectedMemory(t *testing.T) {
	f := fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("0.5Gi"))}.facts(t)
	want := v1alpha1.InjectedMemory{ForLimit: testobjects.Memory("512Mi"), Limit: testobjects.Memory("2Gi")}
	wantNoDiff(t, "raised memory", want, injectedMemory(f, 2048*mib, 600*mib))
	want = v1alpha1.InjectedMemory{ForLimit: testobjects.Memory("512Mi"), Limit: testobjects.Memory("256Mi"), ForImage: testImage}
	wantNoDiff(t, "lowered memory", want, injectedMemory(f, 256*mib, 200*mib))
}

// TestWithdrawal: injected memory is withdrawn where pods cannot be created or placed with it, until a relevant change or for a back-off.
func TestWithdrawal(t *testing.T) {
	const template, limit = 1024 * mib, 2048 * mib
	withdrawn := func(limit, forLimit int64, ago time.Duration) *Withdrawal {
		return &Withdrawal{Limit: limit, ForLimit: forLimit, Since: testobjects.Now.Add(-ago), Failures: 1}
	}
	again := func(failures int, ago time.Duration) *Withdrawal {
		w := withdrawn(limit, template, ago)
		w.Failures = failures
		return w
	}
	now := withdrawn(limit, template, 0)
	injected := func(changes ...testobjects.Change[v1alpha1.PodInjection]) *v1alpha1.PodInjection {
		memory := v1alpha1.InjectedMemory{ForLimit: testobjects.Memory("1Gi"), Limit: testobjects.Memory("2Gi")}
		return testobjects.Build(v1alpha1.PodInjection{Spec: v1alpha1.PodInjectionSpec{Memory: memory}}, changes)
	}
	withoutMemory := func(annotation string) *v1alpha1.PodInjection {
		injection := &v1alpha1.PodInjection{}
		if annotation != "" {
			injection.Annotations = map[string]string{AnnotationWithdrawal: annotation}
		}
		return injection
	}
	annotated := func(w *Withdrawal) testobjects.Change[v1alpha1.PodInjection] {
		return func(i *v1alpha1.PodInjection) { i.Annotations = map[string]string{AnnotationWithdrawal: w.String()} }
	}
	withRequest := func(i *v1alpha1.PodInjection) { i.Spec.Memory.Request = i.Spec.Memory.Limit }
	unschedulableFor := func(ago time.Duration) testobjects.Change[corev1.Pod] {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodPending
			p.Spec.NodeName = ""
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(testobjects.Now.Add(-ago)),
				Message: "0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s).",
			}}
		}
	}
	unschedulable := unschedulableFor(5 * time.Minute)
	nominated := func(p *corev1.Pod) { p.Status.NominatedNodeName = "node-9" }
	notInjected := testobjects.NotInjected
	failing := testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), creationFails)
	failsOtherwise := testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), creationFails, func(d *appsv1.Deployment) {
		d.Status.Conditions[0].Message = "error looking up service account shop/orders: not found"
	})
	edited := testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
		app.Generation = 3
		app.Status.ObservedGeneration = 2
	})
	two := testobjects.RunningPods(2, "1Gi")
	three := testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"))
	one := testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi"))
	onePod := func(changes ...testobjects.Change[corev1.Pod]) []*corev1.Pod {
		return []*corev1.Pod{testobjects.RunningPod(0, "2Gi", changes...)}
	}
	const quota = `create Pod orders-2 in StatefulSet orders failed error: pods "orders-2" is forbidden: `
	cases := map[string]struct {
		input fixture
		want  *Withdrawal
	}{
		"no injection yet":                            {fixture{workload: failing}, nil},
		"pods run":                                    {fixture{injection: injected()}, nil},
		"pods cannot be created":                      {fixture{injection: injected(), workload: failing}, now},
		"pods cannot be created without it":           {fixture{injection: withoutMemory(""), workload: failing}, nil},
		"pods cannot be created, other reason":        {fixture{injection: injected(), workload: failsOtherwise}, nil},
		"injected pod is unschedulable for 5 minutes": {fixture{injection: injected(withRequest), workload: one, pods: onePod(unschedulable)}, now},
		"injected pod is unschedulable for 90 s": {
			fixture{injection: injected(withRequest), workload: one, pods: onePod(unschedulableFor(90 * time.Second))}, nil,
		},
		"injected pod is unschedulable, and a node is on its way": {
			fixture{injection: injected(withRequest), workload: one, pods: onePod(unschedulable, nominated)}, nil,
		},
		"injected pod is unschedulable with the template's request": {
			fixture{injection: injected(), workload: one, pods: onePod(unschedulable)}, nil,
		},
		"other pod is unschedulable": {
			fixture{injection: injected(withRequest), workload: one, pods: onePod(unschedulable, notInjected)}, nil,
		},
		"pod of a StatefulSet not created, quota": {
			fixture{injection: injected(), workload: three, pods: two, createFailure: quota + "exceeded quota: shared, requested: limits.memory=2Gi"}, now,
		},
		"pod of a StatefulSet not created, LimitRange": {
			fixture{injection: injected(), workload: three, pods: two, createFailure: quota + "maximum memory usage per Container is 1Gi, but limit is 2Gi"}, now,
		},
		"pod of a StatefulSet not created, quota of CPU": {
			fixture{injection: injected(), workload: three, pods: two, createFailure: quota + "exceeded quota: shared, requested: limits.cpu=2"}, nil,
		},
		"pod of a StatefulSet not created, pod security": {
			fixture{injection: injected(), workload: three, pods: two, createFailure: quota + `violates PodSecurity "restricted:latest": in-memory volume`}, nil,
		},
		"pod of a StatefulSet not created, reason unknown": {fixture{injection: injected(), workload: three, pods: two}, nil},
		"withdrawn": {fixture{injection: withoutMemory(now.String())}, now},
		"withdrawn with a smaller limit: a larger one would fail as well": {
			fixture{injection: withoutMemory(withdrawn(1500*mib, template, time.Minute).String())}, withdrawn(1500*mib, template, time.Minute),
		},
		"withdrawn with a larger limit: a smaller one waits as well": {
			fixture{injection: withoutMemory(withdrawn(3000*mib, template, 0).String())}, withdrawn(3000*mib, template, 0),
		},
		"withdrawn, StreamApp edited":        {fixture{injection: withoutMemory(now.String()), app: edited}, nil},
		"withdrawn for another template":     {fixture{injection: withoutMemory(withdrawn(limit, 900*mib, 0).String())}, nil},
		"ended":                              {fixture{injection: withoutMemory(withdrawn(limit, template, 5*time.Minute).String())}, withdrawn(limit, template, 5*time.Minute)},
		"ended two hours ago":                {fixture{injection: withoutMemory(withdrawn(limit, template, 125*time.Minute).String())}, nil},
		"fails again":                        {fixture{injection: injected(annotated(again(1, 6*time.Minute))), workload: failing}, again(2, 0)},
		"fails for the third time":           {fixture{injection: injected(annotated(again(2, 11*time.Minute))), workload: failing}, again(3, 0)},
		"unreadable annotation":              {fixture{injection: withoutMemory("nonsense")}, nil},
		"annotation with an unreadable time": {fixture{injection: withoutMemory(`{"limit":2147483648,"forLimit":1073741824,"since":"noon"}`)}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { wantNoDiff(t, "withdrawal", c.want, withdrawalOf(c.input.facts(t))) })
	}
}

// TestRecheckOfPlacement: no watched object changes when a StatefulSet's pod is refused, so there are passes while one is missing.
func TestRecheckOfPlacement(t *testing.T) {
	injected := &v1alpha1.PodInjection{
		Spec: v1alpha1.PodInjectionSpec{Memory: v1alpha1.InjectedMemory{ForLimit: testobjects.Memory("1Gi"), Limit: testobjects.Memory("2Gi")}},
	}
	two := testobjects.RunningPods(2, "1Gi")
	three := testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"))
	for name, c := range map[string]struct {
		input fixture
		want  time.Duration
	}{
		"pod is missing":                        {fixture{injection: injected, workload: three, pods: two}, createFailureRecheck},
		"pod is missing, no memory is injected": {fixture{injection: &v1alpha1.PodInjection{}, workload: three, pods: two}, 0},
		"pod is missing, no injection":          {fixture{workload: three, pods: two}, 0},
		"no pod is missing":                     {fixture{injection: injected, workload: three, pods: testobjects.RunningPods(3, "1Gi")}, 0},
		"pod of a Deployment is missing": {
			fixture{injection: injected, workload: testobjects.Deployment(3, testobjects.PodTemplate("1Gi")), pods: two}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.input.facts(t)
			if got := recheckPlacement(f); got != c.want {
				t.Errorf("rechecked after %s, want %s", got, c.want)
			}
		})
	}
}

// TestBackOff: injected memory stays withdrawn longer after each failure, up to an hour.
func TestBackOff(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0: 5 * time.Minute, 1: 5 * time.Minute, 2: 10 * time.Minute, 3: 20 * time.Minute, 4: 40 * time.Minute, 5: time.Hour, 1000: time.Hour,
	} {
		w := &Withdrawal{Since: testobjects.Now, Failures: failures}
		if got := w.retryAt().Sub(testobjects.Now); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
		if !w.active(testobjects.Now.Add(want-time.Second)) || w.active(testobjects.Now.Add(want)) {
			t.Errorf("after %d failures: not active until exactly %v", failures, want)
		}
	}
}

// TestWithdrawnPlanIsForTemplate: new pods get the template's limit while memory is withdrawn, and the plan must be safe for it.
func TestWithdrawnPlanIsForTemplate(t *testing.T) {
	g := fixture{group: groupOf(12, 12, 12)}.after(t)
	if g.injection.Spec.Memory.Limit == nil {
		t.Fatal("no memory is injected that could be withdrawn")
	}
	g.pods = testobjects.RunningPods(3, g.injection.Spec.Memory.Limit.String())
	g.workload = testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), creationFails)
	d := g.decide(t)
	if d.Memory.Withdrawal == nil || d.Injection.Memory.Limit != nil {
		t.Fatalf("withdrawal %v, memory %+v; want the memory withdrawn", d.Memory.Withdrawal, d.Injection.Memory)
	}
	if got := publishedMaxRAM(d); got != "1073741824" {
		t.Errorf("MaxRAM = %q, want the template's limit", got)
	}
	if d.RecheckAfter == 0 || d.RecheckAfter > time.Hour {
		t.Errorf("rechecked after %s, want an hour at most", d.RecheckAfter)
	}
}

// rollout is a group of three pods with an active plan, in the middle of changes.
type rollout struct {
	fixture
	limit    string
	revision string
}

// settledRollout returns three running pods with an active plan.
func settledRollout(t *testing.T) *rollout {
	t.Helper()
	g := fixture{group: groupOf(4, 4, 4)}.after(t)
	limit := g.injection.Spec.Memory.Limit.String()
	g.pods = testobjects.RunningPods(3, limit)
	g = g.after(t)
	g.now = testobjects.Now
	return &rollout{g, limit, g.injection.Spec.PlanRevision}
}

// wantNothingNew decides 20 s later, and fails if limits or plan change.
func (r *rollout) wantNothingNew(t *testing.T, situation string) {
	t.Helper()
	r.now = r.now.Add(20 * time.Second)
	d := r.decide(t)
	wantNoDiff(t, situation+": resizes", map[string]string{}, d.resizes())
	if d.Injection == nil || d.Injection.PlanRevision != r.revision {
		t.Fatalf("%s: injection %+v, want plan %s as before", situation, d.Injection, r.revision)
	}
	limit := d.Injection.Memory.Limit
	withdrawn := d.Memory.Withdrawal != nil // a pod counts as refused if it is not created for 30 s
	if withdrawn != (limit == nil) || (limit != nil && limit.String() != r.limit) {
		t.Fatalf("%s: limit %v, withdrawn %t; want %s as before", situation, limit, withdrawn, r.limit)
	}
	r.app = r.app.DeepCopy()
	r.app.Status = d.status()
}

// TestRollingUpdatesChangeNothing runs three rolling updates, with a late group and a flapping readiness probe.
func TestRollingUpdatesChangeNothing(t *testing.T) {
	r := settledRollout(t)
	all := r.pods
	for update := range 3 {
		for _, ordinal := range []int{2, 1, 0} {
			r.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"), func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = fmt.Sprint(update + 2) })
			r.pods = slices.Delete(slices.Clone(all), ordinal, ordinal+1)
			r.wantNothingNew(t, "gone, group unchanged")
			moved := []int{6, 6, 6}
			moved[ordinal] = 0
			r.group = groupOf(moved...)
			r.group.Processes = slices.Delete(r.group.Processes, ordinal, ordinal+1)
			r.wantNothingNew(t, "gone, tasks moved")
			r.wantNothingNew(t, "still gone")
			returned := testobjects.RunningPod(ordinal, r.limit, func(p *corev1.Pod) {
				p.Status.Conditions = nil
				p.CreationTimestamp = metav1.NewTime(r.now)
			})
			r.pods = slices.Insert(slices.Clone(r.pods), ordinal, returned)
			r.wantNothingNew(t, "returned, not ready")
			r.group = groupOf(4, 4, 4)
			r.pods = all
			r.wantNothingNew(t, "returned, with its tasks")
		}
		r.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi"))
		r.wantNothingNew(t, "rolled out")
	}
}

// TestPlanStaysDuringRollout: if the tasks change meanwhile, as with a new version of the application, the plan changes afterwards.
func TestPlanStaysDuringRollout(t *testing.T) {
	g := reported().after(t)
	limit := g.injection.Spec.Memory.Limit.String()
	g.pods = testobjects.RunningPods(3, limit, withAgent)
	g = g.after(t)
	revision := g.injection.Spec.PlanRevision
	g.reports = manyReports(2, func(r *report.Report) { r.Clients[0].Topology = "of another version" })
	if d := g.decide(t); d.Revision == revision {
		t.Fatal("fewer tasks do not change the plan")
	}
	g.pods = testobjects.RunningPods(2, limit, withAgent)
	if d := g.decide(t); d.Revision != revision || d.Injection.Memory.Limit.String() != limit {
		t.Errorf("during a rollout: plan %s, memory %+v; want plan %s and limit %s as before", d.Revision, d.Injection.Memory, revision, limit)
	}
	edits := map[string]func(*fixture){
		"edit of the StreamApp": func(g *fixture) {
			g.app = g.app.DeepCopy()
			g.app.Generation++
		},
		"new limit of the template": func(g *fixture) { g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("900Mi")) },
	}
	for name, edit := range edits {
		g := g
		edit(&g)
		if d := g.decide(t); d.Revision == revision {
			t.Errorf("%s: plan %s as before, want a new one", name, d.Revision)
		}
	}
}

// TestWithdrawalDuringRollout: a plan for the raised limit is not safe for the template's, so it does not stay.
func TestWithdrawalDuringRollout(t *testing.T) {
	g := fixture{group: groupOf(2, 2, 2)}.after(t)
	g.pods = testobjects.RunningPods(2, "1Gi")
	g.workload = testobjects.Deployment(3, testobjects.PodTemplate("1Gi"), creationFails)
	g.plan.Data = fixture{group: groupOf(2, 2, 2), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi"))}.decide(t).Files
	d := g.decide(t)
	if !rolloutInProgress(&d.Facts) || d.Memory.Withdrawal == nil {
		t.Fatalf("rollout %t, withdrawal %v; want both", rolloutInProgress(&d.Facts), d.Memory.Withdrawal)
	}
	if got := publishedMaxRAM(d); got != "1073741824" {
		t.Errorf("MaxRAM = %q, want the template's limit", got)
	}
}

func TestRestartedContainerRaisesNothing(t *testing.T) {
	r := settledRollout(t)
	r.group = groupOf(6, 6) // the tasks of the third pod have moved
	third := func(state corev1.ContainerState) []*corev1.Pod {
		return append(testobjects.RunningPods(2, r.limit), testobjects.RunningPod(2, r.limit, inState(state)))
	}
	for name, state := range map[string]corev1.ContainerState{
		"has run for a minute": runningFor(time.Minute),
		"waits for a restart":  waitsForRestart,
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.pods = third(state)
			d := r.decide(t)
			if len(d.Resizes) > 0 || d.Injection == nil || d.Injection.Memory.Limit.String() != r.limit {
				t.Errorf("resizes %v, injection %+v; want limits as before", d.resizes(), d.Injection)
			}
		})
	}
	t.Run("has run for an hour without tasks: the others keep its tasks", func(t *testing.T) {
		r := *r
		r.pods = third(runningFor(time.Hour))
		if d := r.decide(t); len(d.Resizes) == 0 {
			t.Error("no limit is raised")
		}
	})
}

func TestLoadOfThisMomentRaisesDuringRollout(t *testing.T) {
	r := settledRollout(t)
	down := inState(waitsForRestart)
	r.pods = []*corev1.Pod{testobjects.RunningPod(0, r.limit), testobjects.RunningPod(1, r.limit, down), testobjects.RunningPod(2, r.limit, down)}
	r.group = groupOf(12) // one more pod than the plan tolerates has failed
	d := r.decide(t)
	if d.Frozen.Found() {
		t.Fatalf("frozen: %+v", d.Frozen)
	}
	wantNoDiff(t, "resizes", map[string]string{"orders-0": bytesText(d.Plan.RequiredNow)}, d.resizes())
	if d.Plan.Limit < d.Plan.RequiredNow || d.Revision != r.revision {
		t.Errorf("limit %s, plan %s; want at least %s and the active plan %s", bytesText(d.Plan.Limit), d.Revision, bytesText(d.Plan.RequiredNow), r.revision)
	}
}

func TestLossRaisesSurvivors(t *testing.T) {
	r := settledRollout(t)
	r.nodes = []*corev1.Node{testobjects.Node("node-2", corev1.ConditionUnknown)}
	d := r.decide(t)
	limit := testobjects.Memory(r.limit)
	if d.Facts.Failures.Instances != 2 || d.Plan.Required <= limit.Value() {
		t.Fatalf("%d instances, %s required; want 2 and more than %s", d.Facts.Failures.Instances, bytesText(d.Plan.Required), limit)
	}
	required := bytesText(d.Plan.Required)
	wantNoDiff(t, "resizes", map[string]string{"orders-0": required, "orders-1": required}, d.resizes())
	wantNoDiff(t, "limit of new pods", testobjects.Memory(required), d.Injection.Memory.Limit)
}

// refusedFixture has one pod whose limit is to be raised to the returned one.
func refusedFixture(t *testing.T) (fixture, int64) {
	t.Helper()
	g := fixture{group: groupOf(4), workload: testobjects.StatefulSet(1, testobjects.PodTemplate("1Gi")), pods: testobjects.RunningPods(1, "1Gi")}
	d := g.decide(t)
	if len(d.Resizes) != 1 {
		t.Fatalf("resizes %v, want one", d.resizes())
	}
	return g, d.Resizes[0].To
}

func TestRefusedResizes(t *testing.T) {
	g, to := refusedFixture(t)
	refused := func(limit int64, ago time.Duration) RefusedResize {
		return RefusedResize{Pod: "orders-0", Limit: limit, Message: "quota", At: testobjects.Now.Add(-ago)}
	}
	cases := map[string]struct {
		uid       types.UID
		refused   RefusedResize
		requested bool
		kept      bool
	}{
		"refused now":               {"orders-0-uid", refused(to, 0), false, true},
		"refused almost 5 min ago":  {"orders-0-uid", refused(to, RefusalRetry-time.Second), false, true},
		"refused 5 min ago":         {"orders-0-uid", refused(to, RefusalRetry), true, false},
		"another limit was refused": {"orders-0-uid", refused(to+1, 0), true, true},
		"another pod was refused":   {"orders-1-uid", refused(to, 0), true, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := g
			g.volatile.RefusedResizes = map[types.UID]RefusedResize{c.uid: c.refused}
			d := g.decide(t)
			if requested := len(d.Resizes) == 1; requested != c.requested {
				t.Errorf("requested = %t, want %t", requested, c.requested)
			}
			if !c.requested {
				wantNoDiff(t, "refused", []RefusedResize{c.refused}, d.Refused)
			}
			if _, kept := d.Memory.RefusedResizes[c.uid]; kept != c.kept {
				t.Errorf("kept = %t, want %t", kept, c.kept)
			}
		})
	}
	t.Run("a frozen pass shows refusals", func(t *testing.T) {
		g := g
		g.app = testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Streams.Version = "4.x" })
		g.volatile.RefusedResizes = map[types.UID]RefusedResize{"orders-0-uid": refused(to, 0), "orders-9-uid": refused(to, 0)}
		d := g.decide(t)
		if !d.Frozen.Found() {
			t.Fatal("not frozen")
		}
		wantNoDiff(t, "refused", []RefusedResize{refused(to, 0)}, d.Refused)
	})
}
