// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rebalance tests the main function end to end, for both protocols: one of the real Kafka Streams instances on a real broker
// fails; the operator, which runs with exactly the permissions of config/default against a real API server, detects the real rebalance;
// and limits, plan and injected configuration of the remaining pods become those of the planner for the new load.
package rebalance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testcluster"
	"streamweir.dev/streamweir/memplan"
	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

const (
	// patience is the timeout for the operator to follow a rebalance: the broker removes a silent member after six seconds, and the
	// machine is shared.
	patience = 2 * time.Minute
	polling  = 200 * time.Millisecond

	templateLimit = "1Gi"
	minLimit      = "768Mi"
	maxLimit      = "16Gi"
)

// TestMain starts a control plane and applies config/default to it.
func TestMain(m *testing.M) { testcluster.Main(m) }

// cluster is a namespace with an operator of its own, which reads the group from the broker.
type cluster struct{ *testcluster.Cluster }

func TestClassic(t *testing.T) { loseAnInstance(t, kafkatest.Classic) }

func TestStreams(t *testing.T) { loseAnInstance(t, kafkatest.Streams) }

// loseAnInstance runs three instances, each with a pod on a node of its own, fails one with its node, and checks the results of the
// operator before and after.
func loseAnInstance(t *testing.T, protocol string) {
	g := gomega.NewWithT(t)
	broker := kafkatest.StartBroker(t)
	app := broker.CreateApplication(t, kafkatest.Application{
		ID: "shop-" + protocol, Protocol: protocol, OrderPartitions: 6, ClickPartitions: 4,
	})
	app.Produce(t, 500)
	instances := make(map[string]*kafkatest.Process)
	for i := range 3 {
		name := fmt.Sprintf("shop-%d", i)
		instances[name] = app.StartInstance(t, kafkatest.Instance{Name: name})
	}
	app.WaitStable(t, instances["shop-0"], instances["shop-1"], instances["shop-2"])

	// The StreamApp exists before the pods, so that they are injected at their creation.
	c := &cluster{testcluster.New(t, protocol, testcluster.Options{
		Clusters: []assignment.ClusterConfig{{Name: "test", BootstrapServers: []string{broker.Bootstrap}, AllowedNamespaces: []string{protocol}}},
	})}
	c.CreateStatefulSet(3, templateLimit)
	c.CreateStreamApp(v1alpha1.StreamAppSpec{
		Memory:  v1alpha1.MemorySpec{MinLimit: new(resource.MustParse(minLimit)), MaxLimit: new(resource.MustParse(maxLimit))},
		Kafka:   v1alpha1.KafkaSpec{Cluster: "test", ApplicationID: app.ID},
		Streams: v1alpha1.StreamsSpec{Version: kafkatest.KafkaVersion, Configs: configs()},
	})
	g.Eventually(func() error { return c.Get(&v1alpha1.PodInjection{}, "shop") }, patience, polling).Should(gomega.Succeed())
	addresses := maps.Clone(instances)
	c.StartNodes(3, func(pod string) string { return addresses[pod].Address.String() })

	before := c.follow(t, app, instances, 0)
	if before.tasks != app.Tasks() {
		t.Errorf("the operator reports %d tasks, want %d", before.tasks, app.Tasks())
	}

	lost := "shop-2"
	instances[lost].Kill(t)
	c.LoseNodeOf(lost)
	delete(instances, lost)
	app.WaitStable(t, instances["shop-0"], instances["shop-1"])

	after := c.follow(t, app, instances, before.limit)
	if after.limit <= before.limit {
		t.Errorf("the limit of the remaining pods went from %v to %v, want a raise: two pods must now tolerate one more failure", before.limit, after.limit)
	}
	if cmp.Equal(before.options, after.options) {
		t.Errorf("the injected configuration is the same before and after the failure:\n%s", after.options)
	}
	t.Logf("limit %v -> %v, options\n%s->\n%s", before.limit, after.limit, before.options, after.options)
}

// outcome is the operator's result for a state of the group.
type outcome struct {
	tasks   int
	limit   memplan.Bytes
	options string
}

// follow waits until status, limits and ConfigMap equal the planner's result for the reports of the instances themselves. Limits are
// never lowered, so a larger previous limit stays (had). With had 0 the pods are new: they have the limit that was injected before they
// joined the group, which must not be below the required limit.
func (c *cluster) follow(t *testing.T, app *kafkatest.RunningApplication, instances map[string]*kafkatest.Process, had memplan.Bytes) outcome {
	t.Helper()
	g := gomega.NewWithT(t)
	var result outcome
	g.Eventually(func(g gomega.Gomega) {
		want := expect(g, app.Protocol, instances)
		var found v1alpha1.StreamApp
		g.Expect(c.Get(&found, "shop")).To(gomega.Succeed())
		known := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionAssignmentKnown)
		g.Expect(known).NotTo(gomega.BeNil())
		g.Expect(known.Status).To(gomega.Equal(metav1.ConditionTrue), known.Message)
		g.Expect(found.Status.RequiredLimit).NotTo(gomega.BeNil())
		g.Expect(memplan.Bytes(found.Status.RequiredLimit.Value())).To(gomega.Equal(want.requiredLimit), "required limit in status")
		g.Expect(found.Status.Pods).To(gomega.HaveValue(gomega.Equal(int32(len(instances)))))
		limit := max(want.requiredLimit, had)
		for name := range instances {
			if had == 0 {
				limit = max(limit, c.limitOf(g, name))
			}
			g.Expect(c.limitOf(g, name)).To(gomega.Equal(limit), "limit of "+name)
		}
		var plan corev1.ConfigMap
		g.Expect(c.Get(&plan, "streamweir-plan-shop")).To(gomega.Succeed())
		g.Expect(plan.Data[planfile.OptionsKey]).To(gomega.Equal(want.options), "injected options")
		for _, condition := range []string{v1alpha1.ConditionFits, v1alpha1.ConditionCascadeSafe, v1alpha1.ConditionApplied} {
			found := meta.FindStatusCondition(found.Status.Conditions, condition)
			g.Expect(found.Status).To(gomega.Equal(metav1.ConditionTrue), condition+": "+found.Message)
		}
		result = outcome{tasks: int(*found.Status.Tasks), limit: limit, options: want.options}
	}, patience, polling).Should(gomega.Succeed())
	return result
}

// limitOf returns the memory limit of a pod's container as reported by the kubelet.
func (c *cluster) limitOf(g gomega.Gomega, name string) memplan.Bytes {
	var pod corev1.Pod
	g.Expect(c.Get(&pod, name)).To(gomega.Succeed())
	g.Expect(pod.Annotations).To(gomega.HaveKey(v1alpha1.PlanAnnotation), name+" was injected")
	g.Expect(pod.Status.ContainerStatuses).To(gomega.HaveLen(1))
	g.Expect(pod.Status.ContainerStatuses[0].Resources).NotTo(gomega.BeNil())
	return memplan.Bytes(pod.Status.ContainerStatuses[0].Resources.Limits.Memory().Value())
}

// expectation is the planner's result.
type expectation struct {
	requiredLimit memplan.Bytes
	options       string
}

// expect runs the planner, without the operator, on the reports of the instances. The topology is that of the application (test/java), so
// this also checks the operator's view of the topology from the broker.
func expect(g gomega.Gomega, protocol string, instances map[string]*kafkatest.Process) expectation {
	w := shop(g, protocol)
	var spread memplan.Assignment
	for name, instance := range instances {
		report := instance.Report()
		g.Expect(report.State).To(gomega.Equal("RUNNING"), name)
		pod := memplan.Pod{Name: name, Threads: report.Threads}
		for _, id := range report.Active {
			pod.Current.Active = append(pod.Current.Active, task(g, id))
		}
		spread.Pods = append(spread.Pods, pod)
	}
	policy := memplan.DefaultPolicy() // one pod failure
	var result expectation
	var worst memplan.Load
	for _, load := range memplan.LoadsAfter(w, spread, policy.PodFailures) {
		if required := memplan.RequiredLimit(w, load, policy); required > result.requiredLimit {
			result.requiredLimit, worst = required, load
		}
	}
	result.requiredLimit = max(result.requiredLimit, bytes(templateLimit), bytes(minLimit))
	plan := memplan.PlanFor(w, worst, policy, result.requiredLimit)
	g.Expect(plan.Fits()).To(gomega.BeTrue(), plan.Explain())
	var lines []string
	for _, config := range plan.Configs {
		lines = append(lines, strings.TrimSuffix(config.Name+"="+config.Value, "="))
	}
	result.options = strings.Join(lines, "\n") + "\n"
	return result
}

func task(g gomega.Gomega, id string) memplan.Task {
	var subtopology, partition int32
	_, err := fmt.Sscanf(id, "%d_%d", &subtopology, &partition)
	g.Expect(err).NotTo(gomega.HaveOccurred(), id)
	return memplan.Task{Subtopology: fmt.Sprint(subtopology), Partition: partition}
}

func bytes(quantity string) memplan.Bytes {
	q := resource.MustParse(quantity)
	return memplan.Bytes(q.Value())
}

// properties are the application's own configs, see kafkatest. No source shows them, so the spec of the StreamApp contains them.
var properties = map[string]string{
	"statestore.cache.max.bytes": "1048576", "producer.buffer.memory": "4194304",
	"consumer.fetch.max.bytes": "1048576", "consumer.max.partition.fetch.bytes": "65536",
}

// shop is the test application as the planner's input.
func shop(g gomega.Gomega, protocol string) memplan.Workload {
	w := memplan.NewWorkload(memplan.Known(memplan.Version{Major: 4, Minor: 4}, memplan.Spec))
	g.Expect(w.ApplyProperties(properties)).To(gomega.Succeed())
	w.Threads = memplan.Known(1, memplan.Measured)
	w.Brokers = memplan.Known(1, memplan.Measured)
	w.Standbys = memplan.Known(0, memplan.Measured)
	if protocol == kafkatest.Streams {
		w.Protocol = memplan.Known(memplan.Streams, memplan.Measured)
		w.WarmUps = memplan.Known(0, memplan.Default)
	}
	w.JVM = memplan.NewJVM()
	w.JVM.HeapMode = memplan.HeapPlanned
	w.JVM.LeastHeap = w.JVM.HeapUnder(bytes(templateLimit)) // the plan does not shrink the heap
	w.Allocator = memplan.Known(memplan.GlibcArenas, memplan.Derived)
	const minute = 60_000
	window := func(name string, kind memplan.StoreKind, retention int64, caching bool) memplan.Store {
		return memplan.Store{Name: name, Kind: kind, RetentionMs: memplan.Known(retention, memplan.Measured), Caching: caching}
	}
	w.Subtopologies = []memplan.Subtopology{
		{ID: "0", Tasks: 6, InputPartitions: 2, WrittenPartitions: 3, Stores: []memplan.Store{
			{Name: "orders-by-customer", Kind: memplan.TimestampedKeyValue, Caching: true},
			window("this", memplan.JoinWindow, 10*minute, false), window("other", memplan.JoinWindow, 10*minute, false),
		}},
		{ID: "1", Tasks: 4, InputPartitions: 1, WrittenPartitions: 1, Stores: []memplan.Store{
			window("clicks-per-minute", memplan.Window, minute, true),
		}},
	}
	return w
}

// configs returns the properties for the spec, sorted.
func configs() []v1alpha1.Config {
	var list []v1alpha1.Config
	for name, value := range properties {
		list = append(list, v1alpha1.Config{Name: name, Value: value})
	}
	slices.SortFunc(list, func(a, b v1alpha1.Config) int { return strings.Compare(a.Name, b.Name) })
	return list
}
