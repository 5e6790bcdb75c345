// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounded tests the agent's part end to end: real Kafka Streams instances run with the real agent. The operator has no Kafka
// cluster and its StreamApp only a target; it derives the task assignment from the agents' reports and detects that their stores are
// bounded.
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

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

const (
	// patience is the timeout of every wait: three JVMs start on a shared machine.
	patience = 3 * time.Minute
	polling  = 100 * time.Millisecond

	templateLimit = "1Gi"
)

func TestClassic(t *testing.T) { replanAfterFailure(t, kafkatest.Classic) }

func TestStreams(t *testing.T) { replanAfterFailure(t, kafkatest.Streams) }

// start runs three instances with the agent under an operator, and waits until the StreamApp is ready.
func start(tb testing.TB, protocol string) *fixture {
	tb.Helper()
	g := gomega.NewWithT(tb)
	broker := kafkatest.StartBroker(tb)
	app := broker.CreateApplication(tb, kafkatest.Application{
		ID: "shop-" + protocol, Protocol: protocol, OrderPartitions: 6, ClickPartitions: 4,
	})
	app.Produce(tb, 500)
	f := newFixture(tb, fmt.Sprintf("%s-%d", protocol, time.Now().UnixNano()), app)
	f.CreateStatefulSet(3, templateLimit)
	f.CreateStreamApp(v1alpha1.StreamAppSpec{})
	g.Eventually(func() error { return f.Get(&v1alpha1.PodInjection{}, "shop") }, patience, polling).Should(gomega.Succeed())
	var plan corev1.ConfigMap
	g.Expect(f.Get(&plan, "streamweir-plan-shop")).To(gomega.Succeed())
	g.Expect(plan.Data["plan.v1.properties"]).To(gomega.ContainSubstring("rocksdb.cache.bytes="), "the first plan is derived from the limit")
	f.StartNodes(3, f.startInstance)
	g.Eventually(f.status, patience, polling).Should(gomega.And(
		gomega.HaveField("BoundedPods", gomega.HaveValue(gomega.BeEquivalentTo(3))),
		gomega.HaveField("Tasks", gomega.HaveValue(gomega.BeEquivalentTo(app.Tasks())))))
	app.WaitStable(tb, f.processes("shop-0", "shop-1", "shop-2")...)
	g.Eventually(f.status, patience, polling).Should(gomega.HaveField("Conditions", gomega.ContainElement(gomega.And(
		gomega.HaveField("Type", v1alpha1.ConditionReady), gomega.HaveField("Status", metav1.ConditionTrue)))))
	return f
}

func (f *fixture) status() v1alpha1.StreamAppStatus {
	app := &v1alpha1.StreamApp{}
	if err := f.Get(app, "shop"); err != nil {
		return v1alpha1.StreamAppStatus{}
	}
	return app.Status
}

// replanAfterFailure fails an instance and its node, and checks that the new plan is for the other two.
func replanAfterFailure(t *testing.T, protocol string) {
	g := gomega.NewWithT(t)
	f := start(t, protocol)
	before := f.status()
	t.Logf("%s, limit %s, required limit %s, plan %s; warnings %q", message(&before, v1alpha1.ConditionAssignmentKnown), before.Limit, before.RequiredLimit,
		before.PlanRevision, before.Warnings)
	g.Expect(reason(&before, v1alpha1.ConditionAssignmentKnown)).To(gomega.Equal(v1alpha1.ReasonFromReports))
	g.Expect(before.Images).To(gomega.ConsistOf(gomega.And(
		gomega.HaveField("Image", "example.org/shop:1"), gomega.HaveField("State", v1alpha1.ImageProven))))
	g.Expect(before.RequiredLimit.Cmp(*before.Limit)).To(gomega.BeNumerically("<=", 0), "with bounded stores the required limit is within the template's limit")
	var plan corev1.ConfigMap
	g.Expect(f.Get(&plan, "streamweir-plan-shop")).To(gomega.Succeed())
	g.Expect(plan.Data["plan.v1.properties"]).NotTo(gomega.Or(gomega.ContainSubstring("statestore.cache.max.bytes"),
		gomega.ContainSubstring("buffer.memory")), "the plan does not override the application's own configs")

	f.instance("shop-2").Kill(t)
	f.LoseNodeOf("shop-2")
	f.app.WaitStable(t, f.processes("shop-0", "shop-1")...)
	g.Eventually(func(g gomega.Gomega) {
		status := f.status()
		g.Expect(status.Pods).To(gomega.HaveValue(gomega.BeEquivalentTo(2)))
		g.Expect(status.Tasks).To(gomega.HaveValue(gomega.BeEquivalentTo(f.app.Tasks())), "the number of tasks stays the same")
		g.Expect(status.RequiredLimit.Cmp(*before.RequiredLimit)).To(gomega.BeNumerically(">", 0), "one pod must now be able to run the tasks of two")
		g.Expect(reason(&status, v1alpha1.ConditionApplied)).To(gomega.Equal(v1alpha1.ReasonApplied), "both pods have reported the new plan")
		g.Expect(status.PlanRevision).NotTo(gomega.Equal(before.PlanRevision))
	}, patience, polling).Should(gomega.Succeed())
	after := f.status()
	t.Logf("limit %s, required limit %s -> %s, plan %s -> %s", after.Limit, before.RequiredLimit, after.RequiredLimit, before.PlanRevision, after.PlanRevision)
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

// BenchmarkFromRebalanceToPlan measures the time from an agent's report of a rebalance, as received by another client of the agent, to the
// new plan in the status, as received by a watch. Two of the pods run; an instance without a pod joins and leaves them. The plan tolerates
// no pod failures, so both rebalances of a round change it.
func BenchmarkFromRebalanceToPlan(b *testing.B) {
	f := start(b, kafkatest.Streams)
	app := &v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "shop"}}
	if err := f.Admin.Patch(b.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"memory":{"podFailuresToTolerate":0}}}`))); err != nil {
		b.Fatal(err)
	}
	reports := make(chan time.Time)
	for _, pod := range []string{"shop-0", "shop-1"} {
		go f.listen(b.Context(), pod, reports)
	}
	changes, err := f.Admin.Watch(b.Context(), &v1alpha1.StreamAppList{}, client.InNamespace(f.Namespace))
	if err != nil {
		b.Fatal(err)
	}
	defer changes.Stop()
	r := &rebalances{fixture: f, reports: reports, changes: changes.ResultChan()}
	r.settle()
	r.timeOf(func() { f.instance("shop-2").Stop(b) })
	var total time.Duration
	rounds := 0
	for b.Loop() {
		var guest *kafkatest.Process
		total += r.timeOf(func() { guest = f.app.StartInstance(b, kafkatest.Instance{Name: fmt.Sprintf("guest-%d", rounds)}) })
		total += r.timeOf(func() { guest.Stop(b) })
		rounds++
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(2*rounds), "ms/rebalance")
	b.ReportMetric(0, "ns/op")
}

// rebalances measures the time of rebalances.
type rebalances struct {
	*fixture
	reports <-chan time.Time
	changes <-chan watch.Event
}

// settle waits until there has been no report and no change for a while.
func (r *rebalances) settle() {
	for {
		select {
		case <-r.reports:
		case <-r.changes:
		case <-time.After(quiet):
			return
		}
	}
}

// quiet is the time without reports and changes after which a rebalance is over.
const quiet = 3 * time.Second

// timeOf measures a rebalance: from the last report before the required limit changes.
func (r *rebalances) timeOf(begin func()) time.Duration {
	r.tb.Helper()
	before := r.status().RequiredLimit
	begin()
	var reported time.Time
	for deadline := time.After(patience); ; {
		select {
		case reported = <-r.reports:
		case event := <-r.changes:
			app, is := event.Object.(*v1alpha1.StreamApp)
			if !is || app.Status.RequiredLimit == nil || app.Status.RequiredLimit.Cmp(*before) == 0 {
				continue
			}
			written := time.Now()
			r.settle()
			if reported.IsZero() {
				return 0 // the operator received the report before this client
			}
			return written.Sub(reported)
		case <-deadline:
			status := r.status()
			r.tb.Fatalf("the required limit is still %s after %s", status.RequiredLimit, patience)
		}
	}
}

// listen sends the time of each report with another number of tasks from the agent in a pod.
func (f *fixture) listen(ctx context.Context, pod string, reports chan<- time.Time) {
	last := f.nextReport(ctx, pod, 0)
	for last != nil {
		next := f.nextReport(ctx, pod, last.Seq)
		if next != nil && tasksIn(next) != tasksIn(last) {
			select {
			case reports <- time.Now():
			case <-ctx.Done():
			}
		}
		last = next
	}
}

// tasksIn returns the number of tasks in a report.
func tasksIn(reported *report.Report) int {
	tasks := 0
	for i := range reported.Clients {
		for _, thread := range reported.Clients[i].Threads {
			tasks += len(thread.Tasks)
		}
	}
	return tasks
}

// nextReport returns the next report of the agent in a pod after a sequence number, nil if there is none.
func (f *fixture) nextReport(ctx context.Context, pod string, after int64) *report.Report {
	address := net.JoinHostPort(f.instance(pod).Address.String(), strconv.Itoa(report.Port))
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s%s?after=%d&wait=25s", address, report.Path, after), nil)
		if err != nil {
			return nil
		}
		request.Header.Set("Authorization", report.Authorization(planfile.Token(f.Kubelet.Mounted(pod, planConfigMap))))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil // the test or the pod has ended
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
