// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// observation is everything that one pass reads. What follows in the pass works on it and reads nothing again.
type observation struct {
	app *v1alpha1.StreamApp
	now time.Time

	// rival is an older StreamApp for the same workload, "" if there is none: then this one must keep its hands off.
	rival string

	// workload and container are nil where they were not found.
	workload  *workloadFacts
	container *containerFacts
	// inherited is the value of the options variable that the container gets from a ConfigMap by envFrom; nil for none.
	inherited *string
	pods      []podFacts // sorted by name
	roof      roof

	// planConfigMap and injection are what an earlier pass wrote; nil where there is nothing.
	planConfigMap *corev1.ConfigMap
	injection     *v1alpha1.PodInjection

	group   groupFacts
	reports reportFacts

	// agentName is the ConfigMap of the agent that new pods are to get; "" for none. agentMaps are those that there are, of any version.
	agentName string
	agentMaps []corev1.ConfigMap
	// images is what is known of the images that pods have run with an agent.
	images []v1alpha1.ImageStatus
	// measured is the most that pods of the newest image have reported.
	measured v1alpha1.MeasuredRegions

	// topology is what the description of the topology gives, where somebody has one; nil in the operator, which asks the group.
	topology *describedTopology
	// bounded: the shared cache of RocksDB is in force in processes that have the plan.
	bounded bool
}

// groupFacts is what a pass knows of the application's Kafka group.
type groupFacts struct {
	ref assignment.Ref
	// asked: the StreamApp names a group, and the operator may read it. Otherwise refused says why not.
	asked   bool
	refused fault
	latest  assignment.Observation
	match   assignment.Matching
}

// fault is a reason and a message for a condition.
type fault struct{ reason, message string }

func (f fault) found() bool { return f.reason != "" }

// observe reads the world for one StreamApp.
func (r *StreamAppReconciler) observe(ctx context.Context, app *v1alpha1.StreamApp) (*observation, error) {
	obs := &observation{app: app, now: r.Clock.Now()}
	if err := (observer{Reader: r.Client, source: r.APIReader}).observe(ctx, obs); err != nil {
		return nil, err
	}
	if err := r.observeAgent(ctx, obs); err != nil {
		return nil, fmt.Errorf("reading ConfigMaps of the agent: %w", err)
	}
	r.observeReports(obs)
	r.observeGroup(obs)
	obs.learn()
	return obs, nil
}

// learn brings what the status remembers up to date with what the pods report now.
func (o *observation) learn() {
	o.describeReported()
	o.images = imagesOf(o)
	o.measured = measuredOf(o)
}

// observer reads objects of Kubernetes: what has an index from a cache, the rest at the source.
type observer struct {
	client.Reader
	source client.Reader
}

// observe reads everything but the group.
func (r observer) observe(ctx context.Context, obs *observation) error {
	steps := []struct {
		name string
		read func(context.Context, *observation) error
	}{
		{"StreamApps with the same target", r.observeRival},
		{"the workload", r.observeWorkload},
		{"envFrom ConfigMaps", r.observeInherited},
		{"pods and nodes", r.observePods},
		{"LimitRanges and quotas", r.observeNamespace},
		{"objects of the plan", r.observeOwn},
	}
	for _, step := range steps {
		if err := step.read(ctx, obs); err != nil {
			return fmt.Errorf("reading %s: %w", step.name, err)
		}
	}
	return nil
}

// observeRival finds the StreamApp that was first to name the workload. Of two made in the same second the name decides.
func (r observer) observeRival(ctx context.Context, obs *observation) error {
	target := obs.app.Spec.TargetRef
	var same v1alpha1.StreamAppList
	if err := r.List(ctx, &same, client.InNamespace(obs.app.Namespace),
		client.MatchingFields{indexStreamAppTarget: workloadKey(target.Kind, target.Name)}); err != nil {
		return err
	}
	oldest := slices.MinFunc(append(same.Items, *obs.app), func(a, b v1alpha1.StreamApp) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if oldest.Name != obs.app.Name {
		obs.rival = oldest.Name
	}
	return nil
}

func (r observer) observeWorkload(ctx context.Context, obs *observation) error {
	target := obs.app.Spec.TargetRef
	key := client.ObjectKey{Namespace: obs.app.Namespace, Name: target.Name}
	switch target.Kind {
	case v1alpha1.KindStatefulSet:
		var set appsv1.StatefulSet
		if err := r.Get(ctx, key, &set); err != nil {
			return client.IgnoreNotFound(err)
		}
		obs.workload = readStatefulSet(&set)
	case v1alpha1.KindDeployment:
		var deployment appsv1.Deployment
		if err := r.Get(ctx, key, &deployment); err != nil {
			return client.IgnoreNotFound(err)
		}
		obs.workload = readDeployment(&deployment)
	}
	if c := findContainer(obs.workload.template, obs.app.Spec.Container); c != nil {
		obs.container = readContainer(obs.workload.template, c, string(optionsVariable(obs.app)))
	}
	return nil
}

// optionsVariable is the variable that JVM options go through.
func optionsVariable(app *v1alpha1.StreamApp) v1alpha1.OptionsVariable {
	return cmp.Or(app.Spec.JVM.OptionsVariable, v1alpha1.JDKJavaOptions)
}

// observeInherited looks the options variable up in the ConfigMaps that the container takes its environment from. The last one that
// has it counts. Secrets cannot be read: the user has to say what is in them.
func (r observer) observeInherited(ctx context.Context, obs *observation) error {
	if obs.container == nil {
		return nil
	}
	for _, from := range obs.container.options.configMaps {
		var configMap corev1.ConfigMap
		err := r.source.Get(ctx, client.ObjectKey{Namespace: obs.app.Namespace, Name: from.name}, &configMap)
		if apierrors.IsNotFound(err) {
			continue // optional, or the pods do not start; neither is ours to say
		}
		if err != nil {
			return err
		}
		if value, ok := configMap.Data[strings.TrimPrefix(string(optionsVariable(obs.app)), from.prefix)]; ok {
			obs.inherited = &value
		}
	}
	return nil
}

func (r observer) observePods(ctx context.Context, obs *observation) error {
	if obs.workload == nil || obs.container == nil {
		return nil
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(obs.app.Namespace),
		client.MatchingFields{indexPodWorkload: workloadKey(obs.workload.kind, obs.workload.name)}); err != nil {
		return err
	}
	nodes := map[string]nodeFacts{}
	for i := range pods.Items {
		name := pods.Items[i].Spec.NodeName
		if _, known := nodes[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		switch err := r.Get(ctx, client.ObjectKey{Name: name}, &node); {
		case apierrors.IsNotFound(err):
			nodes[name] = nodeFacts{lost: true}
		case err != nil:
			return err
		default:
			nodes[name] = readNode(&node)
		}
	}
	for i := range pods.Items {
		obs.pods = append(obs.pods, readPod(&pods.Items[i], obs.container.name, nodes))
	}
	slices.SortFunc(obs.pods, func(a, b podFacts) int { return cmp.Compare(a.name, b.name) })
	return nil
}

func (r observer) observeNamespace(ctx context.Context, obs *observation) error {
	if obs.container == nil || obs.container.limit == nil {
		return nil
	}
	var ranges corev1.LimitRangeList
	if err := r.List(ctx, &ranges, client.InNamespace(obs.app.Namespace)); err != nil {
		return err
	}
	var quotas corev1.ResourceQuotaList
	if err := r.List(ctx, &quotas, client.InNamespace(obs.app.Namespace)); err != nil {
		return err
	}
	obs.roof = namespaceRoof(ranges.Items, quotas.Items, placementOf(obs))
	return nil
}

func (r observer) observeOwn(ctx context.Context, obs *observation) error {
	var configMap corev1.ConfigMap
	key := client.ObjectKey{Namespace: obs.app.Namespace, Name: planConfigMapName(obs.app.Name)}
	if err := r.Get(ctx, key, &configMap); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		obs.planConfigMap = &configMap
	}
	// At the source: the injection remembers what was withdrawn, which a pass right after the one that wrote it must not overlook.
	var injection v1alpha1.PodInjection
	if err := r.source.Get(ctx, client.ObjectKeyFromObject(obs.app), &injection); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		obs.injection = &injection
	}
	return nil
}

// observeGroup takes what the monitor knows of the application's group, and finds the pods that its processes run in.
func (r *StreamAppReconciler) observeGroup(obs *observation) {
	group, key := &obs.group, client.ObjectKeyFromObject(obs.app).String()
	group.ref, group.refused = r.groupRef(obs.app)
	if group.refused.found() {
		r.Groups.Forget(key)
		obs.reportsGroup()
		return
	}
	group.asked = true
	r.Groups.Track(key, group.ref)
	group.latest = r.Groups.Latest(key)
	obs.matchGroup()
	obs.reportsGroup()
}

// matchGroup finds the pods that the processes of the group run in.
func (o *observation) matchGroup() {
	if o.group.latest.Group == nil {
		return
	}
	var pods []assignment.Pod
	for i := range o.pods {
		if p := &o.pods[i]; p.running() {
			pods = append(pods, assignment.Pod{Name: p.name, Addresses: p.addresses})
		}
	}
	o.group.match = assignment.Match(o.group.latest.Group.Processes, pods)
}

// groupRef names the group that the StreamApp means, or says why it cannot be asked.
func (r *StreamAppReconciler) groupRef(app *v1alpha1.StreamApp) (assignment.Ref, fault) {
	kafka := app.Spec.Kafka
	ref := assignment.Ref{Cluster: kafka.Cluster, ApplicationID: cmp.Or(kafka.ApplicationID, app.Name)}
	switch {
	case kafka.Cluster != "":
		cluster, known := r.Groups.Cluster(kafka.Cluster)
		if !known || !cluster.Permits(app.Namespace, ref.ApplicationID) {
			return ref, fault{v1alpha1.ReasonUnknownCluster, fmt.Sprintf(
				"the operator has no Kafka cluster %q that group %q of namespace %s may use: `kafka.cluster` must name one of its configuration",
				kafka.Cluster, ref.ApplicationID, app.Namespace)}
		}
	case len(kafka.BootstrapServers) > 0:
		if !r.AllowBootstrapServers {
			return ref, fault{v1alpha1.ReasonBootstrapServersNotPermitted,
				"`kafka.bootstrapServers` needs the operator's flag --allow-bootstrap-servers; name a configured cluster in `kafka.cluster` instead"}
		}
		ref.BootstrapServers = strings.Join(kafka.BootstrapServers, ",")
	default:
		return ref, fault{v1alpha1.ReasonNoSource, "`kafka` is not set, so nobody tells which pod runs which tasks"}
	}
	return ref, fault{}
}
