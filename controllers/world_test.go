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
)

// world is a namespace of its own with a cluster that is played, and an operator that watches this namespace only.
type world struct {
	*gomega.WithT
	t         testing.TB
	namespace string
	kubelet   *fakekubelet.Cluster
	groups    *fakeGroups
	gate      *gate
	// agents and agentJar are set in worlds whose pods get an agent.
	agents   *agents
	agentJar []byte
	// clock is the operator's; it stands still until a test moves it.
	clock *clocktesting.FakePassiveClock
}

// newWorld makes a world in which no operator runs yet, beside those of other tests.
func newWorld(t *testing.T, nodes ...fakekubelet.Node) *world {
	t.Helper()
	t.Parallel()
	return newWorldAlone(t, nodes...)
}

// newWorldAlone is newWorld for a test that others wait for.
func newWorldAlone(t testing.TB, nodes ...fakekubelet.Node) *world {
	t.Helper()
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(within)
	g.SetDefaultEventuallyPollingInterval(polling)
	g.SetDefaultConsistentlyDuration(quiet)
	g.SetDefaultConsistentlyPollingInterval(polling)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "world-"}}
	g.Expect(admin.Create(t.Context(), namespace)).To(gomega.Succeed())
	for i := range nodes {
		nodes[i].Name = namespace.Name + "-" + nodes[i].Name
	}
	w := &world{
		WithT: g, t: t, namespace: namespace.Name, groups: newFakeGroups(), gate: &gate{},
		kubelet: fakekubelet.New(adminSet, fakekubelet.Options{Namespace: namespace.Name, Nodes: nodes}),
		clock:   clocktesting.NewFakePassiveClock(time.Now()),
	}
	w.run("the played cluster", w.kubelet.Start)
	return w
}

// run runs something until the test ends, or until the function that it returns is called.
func (w *world) run(name string, start func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
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
			w.t.Errorf("%s ended with: %v", name, err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// startOperator runs the operator as main does, under the role that it is shipped with.
func (w *world) startOperator() (stop func()) {
	w.t.Helper()
	return w.run("the operator", w.newOperator())
}

// newOperator sets an operator up, and returns what runs it.
func (w *world) newOperator() func(context.Context) error {
	w.t.Helper()
	options := controllers.CacheOptions()
	options.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	mgr, err := ctrl.NewManager(operatorConfig, ctrl.Options{
		Scheme: scheme, Cache: options, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // one operator for each world
	})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	reconciler := &controllers.StreamAppReconciler{
		Client: w.gate.around(mgr.GetClient()), APIReader: mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder("streamweir"), Groups: w.groups, Clock: w.clock, AgentJar: w.agentJar,
	}
	if w.agents != nil {
		reports := reportclient.New(reportclient.Options{Dial: w.agents.dial})
		w.Expect(mgr.Add(reports)).To(gomega.Succeed())
		reconciler.Reports = reports
	}
	w.Expect(reconciler.SetupWithManager(w.t.Context(), mgr)).To(gomega.Succeed())
	return mgr.Start
}

// passes makes n passes of the StreamApp orders happen, from begin to end.
func (w *world) passes(n int) {
	w.t.Helper()
	for range n + 1 { // when one more has begun, the last has ended
		before := w.groups.passesBegun()
		select {
		case w.groups.changes <- w.namespace + "/orders":
		case <-time.After(within):
			w.t.Fatal("the operator does not take changes of groups")
		}
		w.Eventually(w.groups.passesBegun).Should(gomega.BeNumerically(">", before))
	}
}

// later moves the operator's clock and makes it look.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	w.passes(2) // what a pass writes may give the next one something to do
}

// templateLimit is the memory limit in the pod template, in bytes.
const templateLimit = 2 << 30

// template is a pod template with one container, called app, that asks for 512Mi and is limited to 2Gi.
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

// memory gives resources; an empty text leaves one out.
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

// createSet creates the StatefulSet orders with three pods and waits until all of them run.
func (w *world) createSet(changes ...func(*corev1.PodTemplateSpec)) {
	w.t.Helper()
	pods := template(changes...)
	w.Expect(admin.Create(w.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orders"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), PodManagementPolicy: appsv1.ParallelPodManagement, ServiceName: "orders",
			Template: pods, Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
		},
	})).To(gomega.Succeed())
	w.Eventually(w.readyPods).Should(gomega.HaveLen(3))
	w.Eventually(func() int32 {
		set := &appsv1.StatefulSet{}
		w.get("orders", set)
		return set.Status.ReadyReplicas
	}).Should(gomega.BeEquivalentTo(3))
}

// createApp creates the StreamApp orders: Enforce, between 1Gi and 64Gi.
func (w *world) createApp(changes ...func(*v1alpha1.StreamApp)) {
	w.t.Helper()
	app := &v1alpha1.StreamApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orders"},
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
	w.Expect(admin.Create(w.t.Context(), app)).To(gomega.Succeed())
}

// enforced makes the usual world: three pods of a StatefulSet that share the group's tasks and run with the plan.
func (w *world) enforced(changes ...func(*v1alpha1.StreamApp)) {
	w.t.Helper()
	w.createSet()
	w.share(w.readyPods()...)
	w.startOperator()
	w.createApp(changes...)
	w.restartInjected()
}

// restartInjected does what the operator advises: a rollout. It waits until everything is applied.
func (w *world) restartInjected() {
	w.t.Helper()
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded)
	w.rollout()
	w.share(w.readyPods()...)
	w.passes(1)
	w.condition(v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}

// rollout restarts the StatefulSet as kubectl does, and waits until all pods are new, ready, and injected.
func (w *world) rollout() {
	w.t.Helper()
	w.awaitInjecting()
	w.patchSet(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano)))
	w.awaitRollout()
}

// awaitRollout waits until all pods are of the newest template, and ready.
func (w *world) awaitRollout() {
	w.t.Helper()
	w.Eventually(w.rolledOut).Should(gomega.BeTrue(), "the rollout must end")
}

// rolledOut tells whether all pods are of the newest template, and ready.
func (w *world) rolledOut() bool {
	set := &appsv1.StatefulSet{}
	w.get("orders", set)
	return set.Status.ObservedGeneration == set.Generation && set.Status.CurrentRevision == set.Status.UpdateRevision &&
		set.Status.ReadyReplicas == *set.Spec.Replicas && len(w.readyPods()) == int(*set.Spec.Replicas)
}

// awaitInjecting waits until the API server injects what the PodInjection says: it reads it through a watch.
func (w *world) awaitInjecting() {
	w.t.Helper()
	injection := w.injection()
	w.Eventually(func() string {
		pod, err := dryRunPod(w.t.Context(), w.namespace, ownedPod("orders"))
		w.Expect(err).NotTo(gomega.HaveOccurred())
		return pod.Annotations[v1alpha1.PlanAnnotation] + " " + pod.Spec.Containers[0].Resources.Limits.Memory().String()
	}).Should(gomega.HavePrefix(injection.Spec.PlanRevision + " "))
}

// share makes the group show its tasks spread over the processes in these pods.
func (w *world) share(pods ...string) {
	w.t.Helper()
	var addresses []string
	for _, name := range pods {
		addresses = append(addresses, w.pod(name).Status.PodIP)
	}
	w.groups.show(ordersGroup(addresses...))
}

func (w *world) patchSet(patch string) {
	w.t.Helper()
	w.patch(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}, patch)
}

func (w *world) patchApp(patch string) {
	w.t.Helper()
	w.patch(&v1alpha1.StreamApp{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}, patch)
}

func (w *world) patch(object client.Object, patch string) {
	w.t.Helper()
	object.SetNamespace(w.namespace)
	kind := types.StrategicMergePatchType
	if _, ours := object.(*v1alpha1.StreamApp); ours {
		kind = types.MergePatchType
	}
	w.Expect(admin.Patch(w.t.Context(), object, client.RawPatch(kind, []byte(patch)))).To(gomega.Succeed())
}

// get reads an object, which must exist.
func (w *world) get(name string, object client.Object) {
	w.t.Helper()
	w.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)).To(gomega.Succeed())
}

// exists tells whether an object is there, and reads it.
func (w *world) exists(name string, object client.Object) bool {
	err := admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)
	w.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	return err == nil
}

// delete deletes an object of the namespace.
func (w *world) delete(name string, object client.Object) {
	w.t.Helper()
	object.SetNamespace(w.namespace)
	object.SetName(name)
	w.Expect(admin.Delete(w.t.Context(), object)).To(gomega.Succeed())
}

func (w *world) app() *v1alpha1.StreamApp {
	w.t.Helper()
	app := &v1alpha1.StreamApp{}
	w.get("orders", app)
	return app
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.get(name, pod)
	return pod
}

// injection gives the PodInjection of orders, and waits for it.
func (w *world) injection() *v1alpha1.PodInjection {
	w.t.Helper()
	injection := &v1alpha1.PodInjection{}
	w.Eventually(func() bool { return w.exists("orders", injection) }).Should(gomega.BeTrue(), "there must be a PodInjection")
	return injection
}

// plan gives the plan's ConfigMap of orders, and waits for it.
func (w *world) plan() *corev1.ConfigMap {
	w.t.Helper()
	plan := &corev1.ConfigMap{}
	w.Eventually(func() bool { return w.exists("streamweir-plan-orders", plan) }).Should(gomega.BeTrue(), "there must be a plan")
	return plan
}

// nothingWritten says that neither plan nor injection exist.
func (w *world) nothingWritten() {
	w.t.Helper()
	w.Expect(w.exists("orders", &v1alpha1.PodInjection{})).To(gomega.BeFalse(), "there must be no PodInjection")
	w.Expect(w.exists("streamweir-plan-orders", &corev1.ConfigMap{})).To(gomega.BeFalse(), "there must be no plan")
}

// pods lists the pods of the namespace by name.
func (w *world) pods() []corev1.Pod {
	var pods corev1.PodList
	w.Expect(admin.List(w.t.Context(), &pods, client.InNamespace(w.namespace))).To(gomega.Succeed())
	return pods.Items
}

// readyPods names the pods that are ready and stay.
func (w *world) readyPods() []string {
	var ready []string
	for _, pod := range w.pods() {
		if pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			ready = append(ready, pod.Name)
		}
	}
	return ready
}

// limits gives the memory limit in the spec of every pod.
func (w *world) limits() map[string]int64 {
	limits := map[string]int64{}
	for _, pod := range w.pods() {
		limits[pod.Name] = pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	}
	return limits
}

// condition waits until a condition of orders is as said, and returns its message.
func (w *world) condition(conditionType string, status metav1.ConditionStatus, reason string) string {
	w.t.Helper()
	return w.conditionOf("orders", conditionType, status, reason)
}

func (w *world) conditionOf(name, conditionType string, status metav1.ConditionStatus, reason string) string {
	w.t.Helper()
	app := &v1alpha1.StreamApp{}
	message := ""
	w.Eventually(func() string {
		w.get(name, app)
		c := meta.FindStatusCondition(app.Status.Conditions, conditionType)
		if c == nil || app.Status.ObservedGeneration != app.Generation {
			return "not there"
		}
		message = c.Message
		return string(c.Status) + " " + c.Reason
	}).Should(gomega.Equal(string(status)+" "+reason), func() string { return conditionType + " of " + name + " says: " + message })
	return message
}

// resourceVersions gives the version of every object that the operator writes, and of the pods and workloads.
func (w *world) resourceVersions() map[string]string {
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.StreamAppList{}, &v1alpha1.PodInjectionList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &appsv1.StatefulSetList{},
	} {
		w.Expect(admin.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(gomega.Succeed())
		w.Expect(meta.EachListItem(list, func(object runtime.Object) error {
			accessor, err := meta.Accessor(object)
			if err == nil {
				versions[fmt.Sprintf("%T %s", object, accessor.GetName())] = accessor.GetResourceVersion()
			}
			return err
		})).To(gomega.Succeed())
	}
	return versions
}

// staysQuiet forces passes and sees that they change nothing at all.
func (w *world) staysQuiet() {
	w.t.Helper()
	var before map[string]string
	times := 1
	if w.agents != nil { // whose reports come by themselves, each within a second or so
		times = 20
	}
	w.Eventually(func() bool { // until what was begun has ended
		before = w.resourceVersions()
		w.passes(2)
		return fmt.Sprint(before) == fmt.Sprint(w.resourceVersions())
	}).MustPassRepeatedly(times).Should(gomega.BeTrue(), "the world must come to rest")
	writes := len(w.gate.all())
	w.passes(3)
	w.Consistently(w.resourceVersions).Should(gomega.Equal(before))
	w.Expect(w.gate.all()).To(gomega.HaveLen(writes), "no pass may write where nothing changes")
}

// equalBytes matches a quantity by its value.
func equalBytes(want int64) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(q *resource.Quantity) (bool, error) {
		return q != nil && q.Value() == want, nil
	}).WithTemplate("Expected\n{{.FormattedActual}}\n{{.To}} be {{.Data}} bytes", want)
}

// mergePatch is a JSON merge patch.
func mergePatch(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// dryRunSubResource keeps the API server from storing an update of a subresource.
var dryRunSubResource = &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}}
