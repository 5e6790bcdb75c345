// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/agent/reportclient"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
)

// gather reads everything that a pass needs.
func (r *StreamAppReconciler) gather(ctx context.Context, app *v1alpha1.StreamApp) (decision.World, error) {
	world := decision.World{Now: r.Clock.Now(), App: app, AgentConfigMap: r.agentConfigMapFor(app)}
	steps := []struct {
		name string
		read func(context.Context, *decision.World) error
	}{
		{"StreamApps with the same target", r.readConflictingApp},
		{"the workload", r.readWorkload},
		{"ConfigMaps of envFrom", r.readConfigMaps},
		{"pods and nodes", r.readPods},
		{"LimitRanges and quotas", r.readNamespace},
		{"the plan and the injection", r.readOwnObjects},
	}
	for _, step := range steps {
		if err := step.read(ctx, &world); err != nil {
			return decision.World{}, fmt.Errorf("reading %s: %w", step.name, err)
		}
	}
	key := client.ObjectKeyFromObject(app).String()
	world.Group = r.groupOf(app, key)
	r.readReports(&world, key)
	return world, nil
}

// readConflictingApp finds the oldest StreamApp with the same target. Of two created in the same second the name decides.
func (r *StreamAppReconciler) readConflictingApp(ctx context.Context, world *decision.World) error {
	var same v1alpha1.StreamAppList
	if err := r.List(ctx, &same, client.InNamespace(world.App.Namespace),
		client.MatchingFields{indexStreamAppTarget: decision.TargetOf(world.App).String()}); err != nil {
		return err
	}
	world.ConflictingApp = decision.ConflictingApp(world.App, same.Items)
	return nil
}

func (r *StreamAppReconciler) readWorkload(ctx context.Context, world *decision.World) error {
	target := world.App.Spec.TargetRef
	key := client.ObjectKey{Namespace: world.App.Namespace, Name: target.Name}
	switch target.Kind {
	case v1alpha1.KindStatefulSet:
		var set appsv1.StatefulSet
		if err := r.Get(ctx, key, &set); err != nil {
			return client.IgnoreNotFound(err)
		}
		world.StatefulSet = &set
	case v1alpha1.KindDeployment:
		var deployment appsv1.Deployment
		if err := r.Get(ctx, key, &deployment); err != nil {
			return client.IgnoreNotFound(err)
		}
		world.Deployment = &deployment
	}
	return nil
}

// readConfigMaps reads the ConfigMaps that may set the variable for JVM options. They are read at the source: the cache only has the
// operator's own.
func (r *StreamAppReconciler) readConfigMaps(ctx context.Context, world *decision.World) error {
	template := world.Template()
	if template == nil {
		return nil
	}
	world.ConfigMaps = map[string]*corev1.ConfigMap{}
	for _, name := range decision.ConfigMapsToRead(world.App, template) {
		var configMap corev1.ConfigMap
		err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: world.App.Namespace, Name: name}, &configMap)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		world.ConfigMaps[name] = &configMap
	}
	return nil
}

func (r *StreamAppReconciler) readPods(ctx context.Context, world *decision.World) error {
	if world.Template() == nil {
		return nil
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(world.App.Namespace),
		client.MatchingFields{indexPodWorkload: decision.TargetOf(world.App).String()}); err != nil {
		return err
	}
	world.Pods = pods.Items
	world.Nodes = map[string]*corev1.Node{}
	for i := range pods.Items {
		name := pods.Items[i].Spec.NodeName
		if _, known := world.Nodes[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		err := r.Get(ctx, client.ObjectKey{Name: name}, &node)
		switch {
		case apierrors.IsNotFound(err):
			world.Nodes[name] = nil
		case err != nil:
			return err
		default:
			world.Nodes[name] = &node
		}
	}
	return nil
}

func (r *StreamAppReconciler) readNamespace(ctx context.Context, world *decision.World) error {
	if world.Template() == nil {
		return nil
	}
	var ranges corev1.LimitRangeList
	if err := r.List(ctx, &ranges, client.InNamespace(world.App.Namespace)); err != nil {
		return err
	}
	var quotas corev1.ResourceQuotaList
	if err := r.List(ctx, &quotas, client.InNamespace(world.App.Namespace)); err != nil {
		return err
	}
	world.LimitRanges = ranges.Items
	world.ResourceQuotas = quotas.Items
	return nil
}

// readOwnObjects reads the plan and the injection. The injection is read at the source: it holds the memory of withdrawn limits, which a pass
// right after the one that wrote it must not miss.
func (r *StreamAppReconciler) readOwnObjects(ctx context.Context, world *decision.World) error {
	var configMap corev1.ConfigMap
	key := client.ObjectKey{Namespace: world.App.Namespace, Name: decision.PlanConfigMapName(world.App.Name)}
	if err := r.Get(ctx, key, &configMap); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		world.PlanConfigMap = &configMap
	}
	var injection v1alpha1.PodInjection
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(world.App), &injection); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		world.Injection = &injection
	}
	return nil
}

// groupOf returns the Kafka group of the StreamApp and has it polled.
func (r *StreamAppReconciler) groupOf(app *v1alpha1.StreamApp, key string) decision.GroupSource {
	ref, unavailable := r.groupRef(app)
	if unavailable.Found() {
		r.Groups.Forget(key)
		return decision.GroupSource{Ref: ref, Unavailable: unavailable}
	}
	r.Groups.Track(key, ref)
	return decision.GroupSource{Ref: ref, Latest: r.Groups.Latest(ref)}
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

// readReports has the pods with an agent polled and takes their latest reports.
func (r *StreamAppReconciler) readReports(world *decision.World, key string) {
	if r.Reports == nil {
		return
	}
	var endpoints []reportclient.Endpoint
	for _, e := range decision.AgentEndpoints(*world) {
		endpoints = append(endpoints, reportclient.Endpoint{Name: e.Pod, UID: e.UID, Since: e.Started, Address: e.Address})
	}
	if len(endpoints) == 0 {
		r.Reports.Forget(key)
		return
	}
	r.Reports.Track(key, endpoints)
	world.Reports = r.Reports.Latest(key)
}
