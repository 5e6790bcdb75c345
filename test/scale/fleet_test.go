// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
)

const (
	// Application i has leastPods + i mod podSizes pods: 6.5 on average.
	leastPods = 3
	podSizes  = 8

	appsPerNamespace = 10
	podsPerNode      = 30
	tasksPerPod      = 6
	// growth multiplies the tasks at the first change by 6, at the second by 11/6: each raises the limit of every pod.
	growth = 5

	templateLimit = "768Mi"
	minLimit      = "512Mi"
	maxLimit      = "64Gi"
)

// application is one application with everything that was observed of it.
type application struct {
	namespace, name string
	pods            int

	mu sync.Mutex
	// load multiplies the tasks of each pod.
	load   int
	agents []*agent
	// status is the latest status, revision that of the published plan. injected: the PodInjection names an agent.
	status   v1alpha1.StreamAppStatus
	revision string
	injected bool
	// firstResize and lastResize are the times of resizes since the last change of the load.
	firstResize, lastResize time.Time
	// changed is the time of the last change of the load, settled the time at which everything was right again.
	changed, settled time.Time
}

func (a *application) key() client.ObjectKey {
	return client.ObjectKey{Namespace: a.namespace, Name: a.name}
}

// tasks returns the number of tasks. The mutex is held.
func (a *application) tasks() int { return tasksPerPod * a.pods * a.load }

// raiseLoad gives each pod more tasks.
func (a *application) raiseLoad() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.load += growth
	a.changed = time.Now()
	a.settled = time.Time{}
	a.firstResize = time.Time{}
	for _, g := range a.agents {
		g.change()
	}
}

// problem returns the first difference from the desired state: tasks in the status, limits in place, plan loaded by every pod, conditions
// True. It is empty if everything is right.
func (a *application) problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.findProblem()
}

// noteSettled notes the time if everything has become right. The mutex is held.
func (a *application) noteSettled() {
	if a.settled.IsZero() && a.findProblem() == "" {
		a.settled = time.Now()
	}
}

// findProblem returns the problem. The mutex is held.
func (a *application) findProblem() string {
	s := &a.status
	switch {
	case s.Tasks == nil || int(*s.Tasks) != a.tasks():
		return fmt.Sprintf("the tasks are not %d", a.tasks())
	case s.PlanRevision == "" || s.PlanRevision != a.revision:
		return fmt.Sprintf("the revision in the status is %q, and %q is published", s.PlanRevision, a.revision)
	case s.BoundedPods == nil || int(*s.BoundedPods) != a.pods || len(a.agents) != a.pods:
		return "not all pods are bounded"
	}
	for _, g := range a.agents {
		if g.onDisk != a.revision || g.requested != g.active {
			return fmt.Sprintf("pod %d has revision %q and a limit of %d, requested %d", g.ordinal, g.onDisk, g.active, g.requested)
		}
	}
	for _, condition := range []string{v1alpha1.ConditionAssignmentKnown, v1alpha1.ConditionApplied} {
		if !meta.IsStatusConditionTrue(s.Conditions, condition) {
			return fmt.Sprintf("%s is not True: %+v", condition, meta.FindStatusCondition(s.Conditions, condition))
		}
	}
	return ""
}

// isInjected returns whether new pods get plan and agent.
func (a *application) isInjected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.injected
}

// fleet is a cluster with applications.
type fleet struct {
	*cluster

	applications []*application
	byKey        map[client.ObjectKey]*application
	nodes        int
	cache        cache.Cache
	kubelets     workqueue.TypedRateLimitingInterface[client.ObjectKey]

	mu    sync.Mutex
	byIP  map[string]*agent
	moved []string // the conditions that have changed since the last reset
}

// newFleet starts a control plane with nodes and applications, but without pods and without an operator.
func newFleet(tb testing.TB, apps int) *fleet {
	tb.Helper()
	f := &fleet{cluster: newCluster(tb), byKey: map[client.ObjectKey]*application{}, byIP: map[string]*agent{}}
	pods := 0
	for i := range apps {
		a := &application{
			namespace: fmt.Sprintf("team-%03d", i/appsPerNamespace), name: fmt.Sprintf("orders-%04d", i),
			pods: leastPods + i%podSizes, load: 1,
		}
		pods += a.pods
		f.applications = append(f.applications, a)
		f.byKey[a.key()] = a
	}
	f.nodes = max(12, pods/podsPerNode)
	f.progress("%d applications, %d pods, %d nodes", apps, pods, f.nodes)
	f.serveAgents()
	f.watch()
	f.createNodes()
	f.createApplications()
	return f
}

// pods returns the number of pods of all applications.
func (f *fleet) podCount() int {
	n := 0
	for _, a := range f.applications {
		n += a.pods
	}
	return n
}

// problems returns the number of applications that are not right, and the problem of the first.
func (f *fleet) problems() (n int, first string) {
	for _, a := range f.applications {
		if problem := a.problem(); problem != "" {
			if n++; n == 1 {
				first = a.name + ": " + problem
			}
		}
	}
	return n, first
}

// awaitRight waits until everything is right.
func (f *fleet) awaitRight(timeout time.Duration) {
	f.tb.Helper()
	deadline := time.Now().Add(timeout)
	for {
		n, first := f.problems()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.tb.Fatalf("%d applications are not right after %v; %s", n, timeout, first)
		}
		f.pause(20 * time.Millisecond)
	}
}

// takeMoved returns the changes of conditions since the last call.
func (f *fleet) takeMoved() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	moved := f.moved
	f.moved = nil
	return moved
}

// percentile returns a percentile of durations, in milliseconds.
func percentile(durations []time.Duration, percent int) string {
	if len(durations) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(durations))
	i := min(len(sorted)-1, (len(sorted)*percent+99)/100-1)
	return fmt.Sprintf("%d ms", sorted[i].Milliseconds())
}
