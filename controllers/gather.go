// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
)

// gather reads everything that a pass needs.
func (r *StreamAppReconciler) gather(ctx context.Context, app *v1alpha1.StreamApp) (decision.World, error) {
	w := decision.World{Now: r.Clock.Now(), App: app, AgentConfigMap: r.agentConfigMapFor(app)}
	w.TrackedSince = r.volatile.trackedSince(client.ObjectKeyFromObject(app).String(), w.Now)
	read := reader{StreamAppReconciler: r, ctx: ctx, app: app}
	w.InjectionUnavailable = read.injectionUnavailable()
	w.ConflictingApp = read.conflictingApp()
	w.StatefulSet, w.Deployment = read.target()
	if template := w.Template(); template != nil {
		w.ConfigMaps = read.configMaps(decision.ConfigMapsToRead(app, template))
		w.Pods = read.pods()
		w.CreateFailure = read.createFailure(w.StatefulSet, len(w.Pods))
		w.Nodes = read.nodes(w.Pods)
		w.NodeRequests = read.nodeRequests(w.Nodes)
		w.LimitRanges = read.limitRanges()
		w.ResourceQuotas = read.resourceQuotas()
	}
	w.PlanConfigMap = read.planConfigMap(decision.PlanConfigMapName(app.Name))
	w.Injection = read.injection()
	endpoints := read.endpoints(decision.AgentEndpoints(w))
	if read.err != nil {
		return decision.World{}, read.err
	}
	w.Group = r.groupOf(app)
	r.configure(&w)
	w.Reports = r.reportsOf(app, endpoints)
	return w, nil
}

// configure adds the operator's configuration to a world.
func (r *StreamAppReconciler) configure(w *decision.World) {
	if r.Config == nil {
		return
	}
	if reason := r.Config.Current().Hold; reason != "" {
		w.Hold = decision.HoldText(reason)
	}
	if fault := r.Config.Fault(); fault != nil && w.App.Spec.Kafka.Cluster != "" {
		w.Group.ConfigFault = decision.ConfigFaultText(fault)
	}
}

// reader reads the objects of one StreamApp until the first error. It lives for one call of gather.
type reader struct {
	*StreamAppReconciler
	ctx context.Context
	app *v1alpha1.StreamApp
	err error
}

// list lists objects of the namespace.
func (r *reader) list(name string, list client.ObjectList, options ...client.ListOption) {
	if r.err != nil {
		return
	}
	if err := r.List(r.ctx, list, append(options, client.InNamespace(r.app.Namespace))...); err != nil {
		r.err = fmt.Errorf("reading %s: %w", name, err)
	}
}

// get reads an object and returns whether it exists.
func (r *reader) get(from client.Reader, key client.ObjectKey, object client.Object) bool {
	if r.err != nil {
		return false
	}
	err := from.Get(r.ctx, key, object)
	if client.IgnoreNotFound(err) != nil {
		r.err = fmt.Errorf("reading %T %s: %w", object, key.Name, err)
	}
	return err == nil
}

// key returns the key of an object in the namespace.
func (r *reader) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.app.Namespace, Name: name}
}

// injectionUnavailable checks whether the cluster can inject plans.
func (r *reader) injectionUnavailable() string {
	if r.err != nil {
		return ""
	}
	missing, err := r.injectionPolicy.missing(r.ctx, r.APIReader, r.Clock.Now())
	r.err = err
	return missing
}

func (r *reader) conflictingApp() string {
	var same v1alpha1.StreamAppList
	r.list("StreamApps with the same target", &same, client.MatchingFields{indexStreamAppTarget: decision.TargetOf(r.app).String()},
		anyVersion)
	return decision.ConflictingApp(r.app, same.Items)
}

// target reads the workload of either kind.
func (r *reader) target() (*appsv1.StatefulSet, *appsv1.Deployment) {
	switch target := decision.TargetOf(r.app); target.Kind {
	case v1alpha1.KindStatefulSet:
		set := &appsv1.StatefulSet{}
		if r.get(r.Client, r.key(target.Name), set) {
			return set, nil
		}
	case v1alpha1.KindDeployment:
		deployment := &appsv1.Deployment{}
		if r.get(r.Client, r.key(target.Name), deployment) {
			return nil, deployment
		}
	}
	return nil, nil
}

// configMaps reads ConfigMaps at the source: the cache only has the operator's own. Missing ones are left out.
func (r *reader) configMaps(names []string) map[string]*corev1.ConfigMap {
	found := map[string]*corev1.ConfigMap{}
	for _, name := range names {
		configMap := &corev1.ConfigMap{}
		if r.get(r.APIReader, r.key(name), configMap) {
			found[name] = configMap
		}
	}
	return found
}

func (r *reader) pods() []corev1.Pod {
	var pods corev1.PodList
	r.list("pods", &pods, client.MatchingFields{indexPodWorkload: decision.TargetOf(r.app).String()})
	return pods.Items
}

// createFailure reads the newest event about a pod that the controller of a StatefulSet could not create; empty without one. It reads at the
// source, and only while pods are missing: the operator does not watch events.
func (r *reader) createFailure(set *appsv1.StatefulSet, pods int) string {
	if r.err != nil || set == nil || pods >= int(ptr.Deref(set.Spec.Replicas, 1)) {
		return ""
	}
	var events corev1.EventList
	err := r.APIReader.List(r.ctx, &events, client.InNamespace(r.app.Namespace), client.Limit(maxCreateFailures),
		client.MatchingFields{"involvedObject.kind": "StatefulSet", "involvedObject.uid": string(set.UID), "reason": "FailedCreate"})
	if err != nil {
		r.err = fmt.Errorf("reading events of StatefulSet %s: %w", set.Name, err)
		return ""
	}
	newest := corev1.Event{LastTimestamp: metav1.NewTime(r.unavailableSince().Add(-createFailureSlack))}
	for _, e := range events.Items {
		if e.LastTimestamp.After(newest.LastTimestamp.Time) {
			newest = e
		}
	}
	return newest.Message
}

const (
	// maxCreateFailures is the largest number of events to read. Kubernetes counts equal ones in one event.
	maxCreateFailures = 100
	// createFailureSlack is how much earlier than the first pass that misses a pod its creation may have failed.
	createFailureSlack = time.Minute
)

// unavailableSince returns the time since which pods are missing: events before it are about other pods.
func (r *reader) unavailableSince() time.Time {
	if since := r.app.Status.PodsUnavailableSinceTime; since != nil {
		return since.Time
	}
	return r.Clock.Now()
}

// nodes reads the nodes of pods. A node that does not exist is nil. The cache may not have a new node yet, so a node that it lacks is read at
// the source.
func (r *reader) nodes(pods []corev1.Pod) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for i := range pods {
		name := pods[i].Spec.NodeName
		if _, known := nodes[name]; known || name == "" {
			continue
		}
		node := &corev1.Node{}
		key := client.ObjectKey{Name: name}
		if !r.get(r.Client, key, node) && !r.get(r.APIReader, key, node) {
			node = nil
		}
		nodes[name] = node
	}
	return nodes
}

// nodeRequests sums the memory requests of all pods on nodes.
func (r *reader) nodeRequests(nodes map[string]*corev1.Node) map[string]int64 {
	requests := map[string]int64{}
	for name := range nodes {
		var pods corev1.PodList
		if r.err == nil {
			r.err = r.List(r.ctx, &pods, client.MatchingFields{indexPodNode: name})
		}
		for i := range pods.Items {
			requests[name] += decision.MemoryRequest(&pods.Items[i])
		}
	}
	return requests
}

func (r *reader) limitRanges() []corev1.LimitRange {
	var ranges corev1.LimitRangeList
	r.list("LimitRanges", &ranges)
	return ranges.Items
}

func (r *reader) resourceQuotas() []corev1.ResourceQuota {
	var quotas corev1.ResourceQuotaList
	r.list("ResourceQuotas", &quotas)
	return quotas.Items
}

// planConfigMap reads a plan from the cache; nil if it is not there.
func (r *reader) planConfigMap(name string) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{}
	if !r.get(r.Client, r.key(name), configMap) {
		return nil
	}
	return configMap
}

// injection reads the PodInjection at the source: it holds the memory of withdrawn limits, which a pass right after the one that wrote it must
// not miss.
func (r *reader) injection() *v1alpha1.PodInjection {
	injection := &v1alpha1.PodInjection{}
	if !r.get(r.APIReader, r.key(r.app.Name), injection) {
		return nil
	}
	return injection
}

// groupOf returns the Kafka group of a StreamApp and has it polled.
func (r *StreamAppReconciler) groupOf(app *v1alpha1.StreamApp) decision.GroupSource {
	key := client.ObjectKeyFromObject(app).String()
	ref, unavailable := r.groupRef(app)
	if unavailable.Found() {
		r.Groups.Forget(key)
		return decision.GroupSource{Ref: ref, Unavailable: unavailable}
	}
	r.Groups.Track(key, ref)
	return decision.GroupSource{Ref: ref, Latest: r.Groups.Latest(key)}
}

// endpoints returns the pods to request reports from, each with the token of the plan that it mounts. That may be the plan of an earlier
// StreamApp. Only plans in the cache have a token.
func (r *reader) endpoints(agents []decision.AgentEndpoint) []reportclient.Endpoint {
	tokens := map[string]string{}
	var endpoints []reportclient.Endpoint
	for _, a := range agents {
		if _, known := tokens[a.PlanConfigMap]; !known && a.PlanConfigMap != "" {
			if plan := r.planConfigMap(a.PlanConfigMap); plan != nil {
				tokens[a.PlanConfigMap] = planfile.Token(plan.Data)
			}
		}
		endpoints = append(endpoints, reportclient.Endpoint{
			Name: a.Pod, UID: a.UID, Started: a.Started, Address: a.Address, Token: tokens[a.PlanConfigMap],
		})
	}
	return endpoints
}

// reportsOf returns the latest reports of the pods with an agent and has the agents polled; nil if there are none.
func (r *StreamAppReconciler) reportsOf(app *v1alpha1.StreamApp, endpoints []reportclient.Endpoint) map[string]report.PodReport {
	if r.Reports == nil {
		return nil
	}
	key := client.ObjectKeyFromObject(app).String()
	if len(endpoints) == 0 {
		r.Reports.Forget(key)
		return nil
	}
	r.Reports.Track(key, endpoints)
	return r.Reports.Latest(key)
}

// groupRef returns the name of the StreamApp's group, or the reason for which it cannot be read.
func (r *StreamAppReconciler) groupRef(app *v1alpha1.StreamApp) (assignment.Ref, decision.Problem) {
	kafka := app.Spec.Kafka
	ref := assignment.Ref{Cluster: kafka.Cluster, ApplicationID: cmp.Or(kafka.ApplicationID, app.Name)}
	switch {
	case kafka.Cluster != "":
		cluster, known := r.Groups.Cluster(kafka.Cluster)
		if !known || !cluster.Permits(app.Namespace, ref.ApplicationID) {
			return ref, decision.Problem{Reason: v1alpha1.ReasonUnknownCluster, Message: decision.UnknownClusterText(kafka.Cluster, app.Namespace, ref.ApplicationID)}
		}
	case len(kafka.BootstrapServers) > 0:
		if !r.AllowBootstrapServers {
			return ref, decision.Problem{Reason: v1alpha1.ReasonBootstrapServersNotPermitted, Message: decision.BootstrapServersText}
		}
		ref.BootstrapServers = strings.Join(kafka.BootstrapServers, ",")
	default:
		return ref, decision.Problem{Reason: v1alpha1.ReasonNoSource, Message: decision.NoSourceText}
	}
	return ref, decision.Problem{}
}
