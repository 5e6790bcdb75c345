// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers"
	"streamweir.dev/streamweir/internal/fakekubelet"
	"streamweir.dev/streamweir/internal/operatorconfig"
)

// fixture is a namespace with simulated nodes and workload controllers, and an operator that watches this namespace only.
type fixture struct {
	*gomega.WithT
	t         testing.TB
	namespace string
	kubelet   *fakekubelet.Cluster
	groups    *fakeGroups
	writes    *writeGate
	// agents and agentJar are nil if pods get no agent.
	agents   *fakeAgents
	agentJar []byte
	// config is nil if the operator has no configuration file.
	config *operatorconfig.File
	// clock is the operator's clock. Only the test moves it.
	clock *clocktesting.FakePassiveClock
}

// newFixture returns a fixture in which no operator runs yet. The test runs in parallel with others.
func newFixture(t *testing.T, nodes ...fakekubelet.Node) *fixture {
	t.Helper()
	t.Parallel()
	return newSerialFixture(t, nodes...)
}

// newSerialFixture is newFixture for a test that does not run in parallel with others.
func newSerialFixture(t testing.TB, nodes ...fakekubelet.Node) *fixture {
	t.Helper()
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(within)
	g.SetDefaultEventuallyPollingInterval(polling)
	g.SetDefaultConsistentlyDuration(quiet)
	g.SetDefaultConsistentlyPollingInterval(polling)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	g.Expect(admin.Create(t.Context(), namespace)).To(gomega.Succeed())
	for i := range nodes {
		nodes[i].Name = namespace.Name + "-" + nodes[i].Name
	}
	f := &fixture{
		WithT: g, t: t, namespace: namespace.Name, groups: newFakeGroups(), writes: &writeGate{},
		kubelet: fakekubelet.New(adminSet, fakekubelet.Options{Namespace: namespace.Name, Nodes: nodes}),
		clock:   clocktesting.NewFakePassiveClock(time.Now()),
	}
	f.run("the simulated cluster", f.kubelet.Start)
	return f
}

// run runs a component until the test ends or stop is called.
func (f *fixture) run(name string, start func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-ended; err != nil {
			f.t.Errorf("%s ended with: %v", name, err)
		}
	}
	f.t.Cleanup(stop)
	return stop
}

// startOperator runs the operator as main does, with the rights of its own role.
func (f *fixture) startOperator() (stop func()) {
	f.t.Helper()
	return f.run("the operator", f.newOperator())
}

// newOperator sets up an operator and returns the function that runs it.
func (f *fixture) newOperator() func(context.Context) error {
	f.t.Helper()
	options := controllers.CacheOptions()
	options.DefaultNamespaces = map[string]cache.Config{f.namespace: {}}
	mgr, err := ctrl.NewManager(operatorConfig, ctrl.Options{
		Scheme: scheme, Cache: options, Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // one operator for each fixture
	})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	reconciler := &controllers.StreamAppReconciler{
		Client: f.writes.around(mgr.GetClient()), APIReader: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder("streamweir"), Groups: f.groups, Clock: f.clock, AgentJar: f.agentJar,
	}
	if f.config != nil {
		reconciler.Config = f.config
	}
	if f.agents != nil {
		reports := reportclient.New(reportclient.Options{Dial: f.agents.dial})
		f.Expect(mgr.Add(reports)).To(gomega.Succeed())
		reconciler.Reports = reports
	}
	f.Expect(reconciler.SetupWithManager(f.t.Context(), mgr)).To(gomega.Succeed())
	return mgr.Start
}

// passes forces n complete passes of the StreamApp orders.
func (f *fixture) passes(n int) {
	f.t.Helper()
	for range n + 1 { // when the next pass starts, the one before has ended
		before := f.groups.startedPasses()
		select {
		case f.groups.changes <- f.namespace + "/orders":
		case <-time.After(within):
			f.t.Fatal("the operator does not receive changes of groups")
		}
		f.Eventually(f.groups.startedPasses).Should(gomega.BeNumerically(">", before))
	}
}

// advance moves the operator's clock and forces passes.
func (f *fixture) advance(d time.Duration) {
	f.t.Helper()
	f.clock.SetTime(f.clock.Now().Add(d))
	f.passes(2) // a write of the first may cause one in the second
}

// templateLimit is the memory limit in the pod template, in bytes.
const templateLimit = 2 << 30

// template returns a pod template with one container, named app, with a request of 512Mi and a limit of 2Gi.
func template(changes ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "orders"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "orders:1", Resources: memory("512Mi", "2Gi")}}},
	}
	for _, change := range changes {
		change(&pods)
	}
	return pods
}

// memory returns memory resources; an empty text leaves one out.
func memory(request, limit string) corev1.ResourceRequirements {
	var resources corev1.ResourceRequirements
	if request != "" {
		resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)}
	}
	if limit != "" {
		resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
	return resources
}

// createStatefulSet creates the StatefulSet orders with three pods and waits until all are ready.
func (f *fixture) createStatefulSet(changes ...func(*corev1.PodTemplateSpec)) {
	f.t.Helper()
	pods := template(changes...)
	f.Expect(admin.Create(f.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "orders"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: "orders",
			Template: pods, Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
		},
	})).To(gomega.Succeed())
	f.Eventually(f.readyPods).Should(gomega.HaveLen(3))
	f.Eventually(func() int32 {
		set := &appsv1.StatefulSet{}
		f.get("orders", set)
		return set.Status.ReadyReplicas
	}).Should(gomega.BeEquivalentTo(3))
}

// createStreamApp creates the StreamApp orders in mode Enforce with a range of 1Gi to 64Gi.
func (f *fixture) createStreamApp(changes ...func(*v1alpha1.StreamApp)) {
	f.t.Helper()
	app := &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "orders"},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: "orders"},
			Mode:      v1alpha1.ModeEnforce,
			Memory:    v1alpha1.MemorySpec{MinLimit: new(resource.MustParse("1Gi")), MaxLimit: new(resource.MustParse("64Gi"))},
			Kafka:     v1alpha1.KafkaSpec{Cluster: kafkaCluster},
		},
	}
	for _, change := range changes {
		change(app)
	}
	f.Expect(admin.Create(f.t.Context(), app)).To(gomega.Succeed())
}

// enforce sets up the usual case: the three pods of a StatefulSet share the group's tasks and run with the plan.
func (f *fixture) enforce(changes ...func(*v1alpha1.StreamApp)) {
	f.t.Helper()
	f.createStatefulSet()
	f.spreadTasks(f.readyPods()...)
	f.startOperator()
	f.createStreamApp(changes...)
	f.restartWithPlan()
}

// restartWithPlan restarts the pods, as the operator recommends, and waits until everything is applied.
func (f *fixture) restartWithPlan() {
	f.t.Helper()
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	f.rollout()
	f.spreadTasks(f.readyPods()...)
	f.passes(1)
	f.expectCondition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

// rollout restarts the StatefulSet as kubectl does, and waits until all pods are new, ready, and injected.
func (f *fixture) rollout() {
	f.t.Helper()
	f.awaitInjection()
	f.patchStatefulSet(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano)))
	f.awaitRollout()
}

// awaitRollout waits until all pods have the newest template and are ready.
func (f *fixture) awaitRollout() {
	f.t.Helper()
	f.Eventually(f.rolledOut).Should(gomega.BeTrue(), "the rollout must end")
}

// rolledOut returns whether all pods have the newest template and are ready.
func (f *fixture) rolledOut() bool {
	set := &appsv1.StatefulSet{}
	f.get("orders", set)
	return set.Status.ObservedGeneration == set.Generation && set.Status.CurrentRevision == set.Status.UpdateRevision &&
		set.Status.ReadyReplicas == *set.Spec.Replicas && len(f.readyPods()) == int(*set.Spec.Replicas)
}

// awaitInjection waits until the API server injects the current PodInjection, which it reads through a watch.
func (f *fixture) awaitInjection() {
	f.t.Helper()
	injection := f.injection()
	f.Eventually(func() string {
		pod, err := dryRunPod(f.t.Context(), f.namespace, ownedPod("orders"))
		f.Expect(err).NotTo(gomega.HaveOccurred())
		return pod.Annotations[v1alpha1.PlanAnnotation] + " " + pod.Spec.Containers[0].Resources.Limits.Memory().String()
	}).Should(gomega.HavePrefix(injection.Spec.PlanRevision + " "))
}

// spreadTasks spreads the group's tasks over the processes in these pods.
func (f *fixture) spreadTasks(pods ...string) {
	f.t.Helper()
	var addresses []string
	for _, name := range pods {
		addresses = append(addresses, f.pod(name).Status.PodIP)
	}
	f.groups.show(ordersGroup(addresses...))
}

func (f *fixture) patchStatefulSet(patch string) {
	f.t.Helper()
	f.patch(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}, patch)
}

func (f *fixture) patchStreamApp(patch string) {
	f.t.Helper()
	f.patch(&v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}, patch)
}

func (f *fixture) patch(object client.Object, patch string) {
	f.t.Helper()
	object.SetNamespace(f.namespace)
	kind := types.StrategicMergePatchType
	if _, ours := object.(*v1alpha1.StreamApp); ours {
		kind = types.MergePatchType
	}
	f.Expect(admin.Patch(f.t.Context(), object, client.RawPatch(kind, []byte(patch)))).To(gomega.Succeed())
}

// get reads an object that exists.
func (f *fixture) get(name string, object client.Object) {
	f.t.Helper()
	f.Expect(admin.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object)).To(gomega.Succeed())
}

// exists reads an object and returns whether it exists.
func (f *fixture) exists(name string, object client.Object) bool {
	err := admin.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object)
	f.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	return err == nil
}

// delete deletes an object of the namespace.
func (f *fixture) delete(name string, object client.Object) {
	f.t.Helper()
	object.SetNamespace(f.namespace)
	object.SetName(name)
	f.Expect(admin.Delete(f.t.Context(), object)).To(gomega.Succeed())
}

func (f *fixture) app() *v1alpha1.StreamApp {
	f.t.Helper()
	app := &v1alpha1.StreamApp{}
	f.get("orders", app)
	return app
}

func (f *fixture) pod(name string) *corev1.Pod {
	f.t.Helper()
	pod := &corev1.Pod{}
	f.get(name, pod)
	return pod
}

// injection waits for the PodInjection of orders and returns it.
func (f *fixture) injection() *v1alpha1.PodInjection {
	f.t.Helper()
	injection := &v1alpha1.PodInjection{}
	f.Eventually(func() bool { return f.exists("orders", injection) }).Should(gomega.BeTrue(), "the PodInjection must exist")
	return injection
}

// plan waits for the plan ConfigMap of orders and returns it.
func (f *fixture) plan() *corev1.ConfigMap {
	f.t.Helper()
	plan := &corev1.ConfigMap{}
	f.Eventually(func() bool { return f.exists("streamweir-plan-orders", plan) }).Should(gomega.BeTrue(), "the plan must exist")
	return plan
}

// expectNothingWritten expects neither a plan nor an injection.
func (f *fixture) expectNothingWritten() {
	f.t.Helper()
	f.Expect(f.exists("orders", &v1alpha1.PodInjection{})).To(gomega.BeFalse(), "the PodInjection must not exist")
	f.Expect(f.exists("streamweir-plan-orders", &corev1.ConfigMap{})).To(gomega.BeFalse(), "the plan must not exist")
}

// pods lists the pods of the namespace by name.
func (f *fixture) pods() []corev1.Pod {
	var pods corev1.PodList
	f.Expect(admin.List(f.t.Context(), &pods, client.InNamespace(f.namespace))).To(gomega.Succeed())
	return pods.Items
}

// readyPods returns the names of the pods that are ready and not terminating.
func (f *fixture) readyPods() []string {
	var ready []string
	for _, pod := range f.pods() {
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready = append(ready, pod.Name)
		}
	}
	return ready
}

// limits returns the memory limit in the spec of every pod.
func (f *fixture) limits() map[string]int64 {
	limits := map[string]int64{}
	for _, pod := range f.pods() {
		limits[pod.Name] = pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	}
	return limits
}

// expectCondition waits until a condition of orders has this status and reason, and returns its message.
func (f *fixture) expectCondition(conditionType string, status metav1.ConditionStatus, reason string) string {
	f.t.Helper()
	return f.expectConditionOf("orders", conditionType, status, reason)
}

func (f *fixture) expectConditionOf(name, conditionType string, status metav1.ConditionStatus, reason string) string {
	f.t.Helper()
	app := &v1alpha1.StreamApp{}
	message := ""
	f.Eventually(func() string {
		f.get(name, app)
		c := meta.FindStatusCondition(app.Status.Conditions, conditionType)
		if c == nil || app.Status.ObservedGeneration != app.Generation {
			return "missing"
		}
		message = c.Message
		return string(c.Status) + " " + c.Reason
	}).Should(gomega.Equal(string(status)+" "+reason), func() string { return conditionType + " of " + name + ": " + message })
	return message
}

// resourceVersions returns the version of every pod, workload and object that the operator writes.
func (f *fixture) resourceVersions() map[string]string {
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.StreamAppList{}, &v1alpha1.PodInjectionList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &appsv1.StatefulSetList{},
	} {
		f.Expect(admin.List(f.t.Context(), list, client.InNamespace(f.namespace))).To(gomega.Succeed())
		f.Expect(meta.EachListItem(list, func(object runtime.Object) error {
			accessor, err := meta.Accessor(object)
			if err == nil {
				versions[fmt.Sprintf("%T %s", object, accessor.GetName())] = accessor.GetResourceVersion()
			}
			return err
		})).To(gomega.Succeed())
	}
	return versions
}

// expectQuiet forces passes and expects that they change nothing.
func (f *fixture) expectQuiet() {
	f.t.Helper()
	var before map[string]string
	times := 1
	if f.agents != nil { // their reports arrive at any time, each within about a second
		times = 20
	}
	f.Eventually(func() bool { // pending changes may cause writes first
		before = f.resourceVersions()
		f.passes(2)
		return fmt.Sprint(before) == fmt.Sprint(f.resourceVersions())
	}).MustPassRepeatedly(times).Should(gomega.BeTrue(), "changes must end")
	writes := len(f.writes.all())
	f.passes(3)
	f.Consistently(f.resourceVersions).Should(gomega.Equal(before))
	f.Expect(f.writes.all()).To(gomega.HaveLen(writes), "a pass without a change must not write")
}

// equalBytes matches a quantity of this many bytes.
func equalBytes(want int64) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(q *resource.Quantity) (bool, error) {
		return q != nil && q.Value() == want, nil
	}).WithTemplate("Expected\n{{.FormattedActual}}\n{{.To}} be {{.Data}} bytes", want)
}

// mergePatch returns a JSON merge patch.
func mergePatch(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// dryRunSubResource is an update of a subresource that the API server does not store.
var dryRunSubResource = &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}}
