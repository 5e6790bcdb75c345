// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounded proves the agent's part of the main job end to end: real Kafka Streams instances carry the real agent; the operator,
// which knows no Kafka cluster, is given a target and nothing else; it learns from the agents who runs what, and sees that their stores
// are bounded.
package bounded

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

const (
	// patience is how long anything may take: three JVMs start, and the machine has other things to do.
	patience = 3 * time.Minute
	polling  = 100 * time.Millisecond

	templateLimit = "1Gi"
)

func TestClassic(t *testing.T) { followTheAgents(t, kafkatest.Classic) }

func TestStreams(t *testing.T) { followTheAgents(t, kafkatest.Streams) }

// start runs three instances with the agent under an operator that was given their StatefulSet, and waits until all is well.
func start(tb testing.TB, protocol string) *world {
	tb.Helper()
	g := gomega.NewWithT(tb)
	broker := kafkatest.StartBroker(tb)
	app := broker.CreateApplication(tb, kafkatest.Application{
		ID: "shop-" + protocol, Protocol: protocol, OrderPartitions: 6, ClickPartitions: 4,
	})
	app.Produce(tb, 500)
	w := newWorld(tb, fmt.Sprintf("%s-%d", protocol, time.Now().UnixNano()), app)
	w.createWorkload(3)
	w.createStreamApp()
	g.Eventually(func() error { return w.get(&v1alpha1.PodInjection{}, "shop") }, patience, polling).Should(gomega.Succeed())
	var plan corev1.ConfigMap
	g.Expect(w.get(&plan, "streamweir-plan-shop")).To(gomega.Succeed())
	g.Expect(plan.Data["plan.v1.properties"]).To(gomega.ContainSubstring("rocksdb.cache.bytes="), "the first plan knows the limit, and nothing else")
	w.startPods()
	g.Eventually(w.status, patience, polling).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))),
		gomega.HaveField("Tasks", gomega.HaveValue(gomega.BeEquivalentTo(app.Tasks())))))
	app.WaitStable(tb, w.processes("shop-0", "shop-1", "shop-2")...)
	g.Eventually(w.status, patience, polling).Should(gomega.HaveField("Conditions", gomega.ContainElement(gomega.And(
		gomega.HaveField("Type", v1alpha1.ConditionReady), gomega.HaveField("Status", metav1.ConditionTrue)))))
	return w
}

func (w *world) status() v1alpha1.StreamAppStatus {
	app := &v1alpha1.StreamApp{}
	if err := w.get(app, "shop"); err != nil {
		return v1alpha1.StreamAppStatus{}
	}
	return app.Status
}

// followTheAgents loses an instance with its node, and sees that the plan becomes one for the other two.
func followTheAgents(t *testing.T, protocol string) {
	g := gomega.NewWithT(t)
	w := start(t, protocol)
	before := w.status()
	t.Logf("%s, limit %s, need %s, plan %s; warnings %q", message(&before, v1alpha1.ConditionAssignmentKnown), before.Limit, before.RequiredLimit,
		before.PlanRevision, before.Warnings)
	g.Expect(reason(&before, v1alpha1.ConditionAssignmentKnown)).To(gomega.Equal(v1alpha1.ReasonFromReports))
	g.Expect(before.Images).To(gomega.ConsistOf(gomega.And(
		gomega.HaveField("Image", "example.org/shop:1"), gomega.HaveField("State", v1alpha1.ImageProven))))
	g.Expect(before.RequiredLimit.Cmp(*before.Limit)).To(gomega.BeNumerically("<=", 0), "bounded, it fits into the template's limit")
	var plan corev1.ConfigMap
	g.Expect(w.get(&plan, "streamweir-plan-shop")).To(gomega.Succeed())
	g.Expect(plan.Data["plan.v1.properties"]).NotTo(gomega.Or(gomega.ContainSubstring("statestore.cache.max.bytes"),
		gomega.ContainSubstring("buffer.memory")), "what the application sets itself stays its own")

	w.instance("shop-2").Kill(t)
	w.loseNodeOf("shop-2")
	w.app.WaitStable(t, w.processes("shop-0", "shop-1")...)
	g.Eventually(func(g gomega.Gomega) {
		status := w.status()
		g.Expect(status.Pods).To(gomega.HaveValue(gomega.BeEquivalentTo(2)))
		g.Expect(status.Tasks).To(gomega.HaveValue(gomega.BeEquivalentTo(w.app.Tasks())), "the application has as many tasks as before")
		g.Expect(status.RequiredLimit.Cmp(*before.RequiredLimit)).To(gomega.BeNumerically(">", 0), "one pod must now hold what two have held")
		g.Expect(reason(&status, v1alpha1.ConditionApplied)).To(gomega.Equal(v1alpha1.ReasonApplied), "both have reported that they see the plan")
		g.Expect(status.PlanRevision).NotTo(gomega.Equal(before.PlanRevision))
	}, patience, polling).Should(gomega.Succeed())
	after := w.status()
	t.Logf("limit %s, need %s -> %s, plan %s -> %s", after.Limit, before.RequiredLimit, after.RequiredLimit, before.PlanRevision, after.PlanRevision)
}

func condition(status *v1alpha1.StreamAppStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func reason(status *v1alpha1.StreamAppStatus, kind string) string {
	return condition(status, kind).Reason
}

func message(status *v1alpha1.StreamAppStatus, kind string) string {
	return condition(status, kind).Message
}

// BenchmarkFromRebalanceToPlan measures the time from the moment that an agent tells of a rebalance, as another client of it is told, to
// the moment that the new plan stands in the status, as a watch is told. Two of the pods work; an instance without a pod joins them, and
// leaves them with more than a plan for three pods and no loss has room for: two rebalances a round, each of which changes the plan.
func BenchmarkFromRebalanceToPlan(b *testing.B) {
	w := start(b, kafkatest.Streams)
	app := &v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
	if err := w.admin.Patch(b.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"memory":{"podFailuresToTolerate":0}}}`))); err != nil {
		b.Fatal(err)
	}
	tells := make(chan time.Time)
	for _, pod := range []string{"shop-0", "shop-1"} {
		go w.listen(b.Context(), pod, tells)
	}
	changes, err := w.admin.Watch(b.Context(), &v1alpha1.StreamAppList{}, client.InNamespace(w.namespace))
	if err != nil {
		b.Fatal(err)
	}
	defer changes.Stop()
	r := &rebalances{world: w, tells: tells, changes: changes.ResultChan()}
	r.settle()
	r.timeOf(func() { w.instance("shop-2").Stop(b) })
	var total time.Duration
	rounds := 0
	for b.Loop() {
		var guest *kafkatest.Process
		total += r.timeOf(func() { guest = w.app.StartInstance(b, kafkatest.Instance{Name: fmt.Sprintf("guest-%d", rounds)}) })
		total += r.timeOf(func() { guest.Stop(b) })
		rounds++
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(2*rounds), "ms/rebalance")
	b.ReportMetric(0, "ns/op")
}

// rebalances measures them.
type rebalances struct {
	*world
	tells   <-chan time.Time
	changes <-chan watch.Event
}

// settle waits until nothing has happened for a while.
func (r *rebalances) settle() {
	for {
		select {
		case <-r.tells:
		case <-r.changes:
		case <-time.After(quiet):
			return
		}
	}
}

// quiet is how long nothing must happen for a rebalance to be over.
const quiet = 3 * time.Second

// timeOf measures a rebalance: from the last that an agent tells before the need changes.
func (r *rebalances) timeOf(begin func()) time.Duration {
	r.tb.Helper()
	before := r.status().RequiredLimit
	begin()
	var told time.Time
	for deadline := time.After(patience); ; {
		select {
		case told = <-r.tells:
		case event := <-r.changes:
			app, is := event.Object.(*v1alpha1.StreamApp)
			if !is || app.Status.RequiredLimit == nil || app.Status.RequiredLimit.Cmp(*before) == 0 {
				continue
			}
			written := time.Now()
			r.settle()
			if told.IsZero() {
				return 0 // the operator was told before this client
			}
			return written.Sub(told)
		case <-deadline:
			status := r.status()
			r.tb.Fatalf("the need is %s as before, after %s", status.RequiredLimit, patience)
		}
	}
}

// listen tells when the agent in a pod tells of other tasks.
func (w *world) listen(ctx context.Context, pod string, tells chan<- time.Time) {
	last := w.ask(ctx, pod, 0)
	for last != nil {
		next := w.ask(ctx, pod, last.Seq)
		if next != nil && reported(next) != reported(last) {
			select {
			case tells <- time.Now():
			case <-ctx.Done():
			}
		}
		last = next
	}
}

// reported is the number of tasks in a report.
func reported(reported *report.Report) int {
	tasks := 0
	for i := range reported.Clients {
		for _, thread := range reported.Clients[i].Threads {
			tasks += len(thread.Tasks)
		}
	}
	return tasks
}

// ask asks the agent in a pod for the next report after a sequence number; nil if there is none.
func (w *world) ask(ctx context.Context, pod string, after int64) *report.Report {
	address := net.JoinHostPort(w.instance(pod).Address.String(), strconv.Itoa(report.Port))
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s%s?after=%d&wait=25s", address, report.Path, after), nil)
		if err != nil {
			return nil
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil // the test is over, or the pod is
		}
		reported := &report.Report{}
		err = json.NewDecoder(response.Body).Decode(reported)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK && err == nil {
			return reported
		}
	}
	return nil
}
