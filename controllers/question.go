// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// Question is what somebody asks who is not the operator: what would the operator say of this application?
type Question struct {
	// App is the StreamApp. It need not exist anywhere.
	App *v1alpha1.StreamApp
	// Reader has the workload and the other objects: an API server, or [Objects].
	Reader client.Reader
	// Now is the time that ages are measured from.
	Now time.Time
	// Group is what Kafka says of the application's group; nil where it was not asked.
	Group *assignment.Group
	// Topology is the text of Topology#describe(), empty where there is none. Partitions has the sizes of its topics, as far as they are
	// known; internal topics with the application id before them or without.
	Topology   string
	Partitions map[string]int32
	// Properties are those that the application sets. What the StreamApp says of one counts before them.
	Properties map[string]string
	// Bounded asks for the plan of a process in which one cache for all RocksDB stores is in force.
	Bounded bool
	// Change is what would be different.
	Change Change
}

// Change is what would be different from what is there. The zero value changes nothing.
type Change struct {
	// Lost is how many pods are lost.
	Lost *int32
	// Replicas of the workload. All of them count as started anew: who runs what now says nothing of another number.
	Replicas *int32
	// Partitions is the factor that all partitions, and with them the tasks, are multiplied with; 0 for none.
	Partitions float64
	// Limit is the memory limit of the container, in place of the template's and of the range of the StreamApp.
	Limit *resource.Quantity
	// Threads is num.stream.threads, Standbys is num.standby.replicas.
	Threads, Standbys *int32
	// Version of kafka-streams.
	Version string
	// ColdStart asks for a pod that runs all tasks, as the first of a group does for a while.
	ColdStart bool
}

// Explain answers a question with the operator's own conversion and planner. An error says what is wrong with the input, or what is
// missing in it.
func Explain(ctx context.Context, q Question) (*Answer, error) {
	obs, err := q.observe(ctx)
	if err != nil {
		return nil, err
	}
	rival := obs.rival
	obs.rival = "" // it is asked what this one would do
	lost := countLossesOf(obs)
	planned := plan(obs, lost)
	if len(planned.invalid) > 0 {
		return nil, errors.New(strings.Join(planned.invalid, "; "))
	}
	if !planned.tasksKnown {
		return nil, errTasksUnknown
	}
	if q.Change.ColdStart {
		planned.startCold()
	}
	answer, err := answerOf(obs, lost, planned)
	if err == nil && !answer.fits() {
		answer.Remedies = remedies(obs, planned)
	}
	if err == nil && rival != "" {
		answer.Warnings = append(answer.Warnings, fmt.Sprintf("StreamApp %s names the same workload and was there first: the operator heeds that one", rival))
	}
	return answer, err
}

var errTasksUnknown = errors.New("it is not known which tasks there are: give the text of Topology#describe() and the partitions of its topics, " +
	"or set `streams.subtopologies` in the StreamApp, or name the brokers to ask")

// observe reads the world and puts the changes into it.
func (q *Question) observe(ctx context.Context) (*observation, error) {
	app := q.App.DeepCopy()
	if err := checkSpec(&app.Spec); err != nil {
		return nil, fmt.Errorf("StreamApp %s: %w", app.Name, err)
	}
	addProperties(&app.Spec.Streams, q.Properties)
	q.Change.applyToSpec(&app.Spec)
	obs := &observation{app: app, now: q.Now, bounded: q.Bounded}
	reader := lenient{q.Reader}
	if err := (observer{Reader: reader, source: reader}).observe(ctx, obs); err != nil {
		return nil, err
	}
	if err := checkFound(obs); err != nil {
		return nil, err
	}
	obs.recall()
	if q.Group != nil {
		obs.group.asked, obs.group.latest.Group = true, q.Change.groupOf(q.Group)
		obs.matchGroup()
	}
	q.Change.applyTo(obs)
	if n := obs.workload.replicas; n < 0 || n > mostInstances {
		return nil, fmt.Errorf("%s %s has %d replicas: it must be from 0 to %d, as each number of losses is tried",
			obs.workload.kind, obs.workload.name, n, mostInstances)
	}
	if obs.container.limit == nil {
		return nil, fmt.Errorf("container %s of %s %s has no memory limit: without one there is nothing to divide",
			obs.container.name, obs.workload.kind, obs.workload.name)
	}
	if q.Bounded || q.Change.Replicas != nil {
		obs.startAnew(obs.workload.replicas)
	}
	if q.Topology == "" {
		return obs, nil
	}
	if q.Group != nil {
		return nil, errors.New("a description of the topology and brokers to ask are both given: the group tells more, so leave the description out")
	}
	var err error
	obs.topology, err = describeTopology(app, q.Topology, q.Partitions, q.Change.Partitions)
	return obs, err
}

// recall takes what the operator has learned from the pods' agents, which nobody else asks.
func (o *observation) recall() {
	o.images, o.measured = o.app.Status.Images, o.app.Status.Measured
	if o.injection != nil {
		o.agentName = o.injection.Spec.AgentConfigMap
	}
}

// checkFound says which object is not there.
func checkFound(obs *observation) error {
	target := obs.app.Spec.TargetRef
	if obs.workload == nil {
		return fmt.Errorf("there is no %s %s in namespace %s, which StreamApp %s names as its target", target.Kind, target.Name, obs.app.Namespace, obs.app.Name)
	}
	if obs.container != nil {
		return nil
	}
	var names []string
	for i := range obs.workload.template.Spec.Containers {
		names = append(names, obs.workload.template.Spec.Containers[i].Name)
	}
	return fmt.Errorf("%s %s has no container %q that runs the application: `container` must be one of %s",
		target.Kind, target.Name, obs.app.Spec.Container, strings.Join(names, ", "))
}

// addProperties adds properties of the application to the spec, which counts before them.
func addProperties(streams *v1alpha1.StreamsSpec, properties map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.ContainsFunc(streams.Configs, func(c v1alpha1.Config) bool { return c.Name == name }) {
			streams.Configs = append(streams.Configs, v1alpha1.Config{Name: name, Value: properties[name]})
		}
	}
}

// applyToSpec puts into the spec what a user could have written there.
func (c Change) applyToSpec(spec *v1alpha1.StreamAppSpec) {
	spec.Memory.PodFailuresToTolerate = cmp.Or(c.Lost, spec.Memory.PodFailuresToTolerate)
	if c.Limit != nil {
		spec.Memory.MinLimit, spec.Memory.MaxLimit = nil, nil
	}
	if c.Threads != nil {
		spec.Streams.Threads = *c.Threads
	}
	spec.Streams.StandbyReplicas = cmp.Or(c.Standbys, spec.Streams.StandbyReplicas)
	spec.Streams.Version = cmp.Or(c.Version, spec.Streams.Version)
	for i := range spec.Streams.Subtopologies {
		s := &spec.Streams.Subtopologies[i]
		s.Tasks = times(s.Tasks, c.Partitions)
		if s.WrittenPartitions != nil {
			s.WrittenPartitions = new(times(*s.WrittenPartitions, c.Partitions))
		}
	}
}

// applyTo puts into what was read what a user could have done in the cluster.
func (c Change) applyTo(obs *observation) {
	if c.Replicas != nil {
		obs.workload.replicas = int(*c.Replicas)
	}
	if c.Limit != nil {
		obs.limitTo(c.Limit)
	}
}

// limitTo gives the container another limit, in the template and in all pods.
func (o *observation) limitTo(limit *resource.Quantity) {
	container := *o.container
	container.limit = limit
	o.container, o.pods = &container, slices.Clone(o.pods)
	for i := range o.pods {
		o.pods[i].limit, o.pods[i].actualLimit = limit, limit
	}
}

// groupOf is the group as it would be.
func (c Change) groupOf(group *assignment.Group) *assignment.Group {
	changed := *group
	changed.Standbys = cmp.Or(c.Standbys, group.Standbys)
	changed.Processes = slices.Clone(group.Processes)
	for i := range changed.Processes {
		if c.Threads != nil {
			changed.Processes[i].Threads = int(*c.Threads)
		}
	}
	changed.Subtopologies = slices.Clone(group.Subtopologies)
	for i := range changed.Subtopologies {
		s := &changed.Subtopologies[i]
		s.Tasks = times(s.Tasks, c.Partitions)
		s.SinkTopics = slices.Clone(s.SinkTopics)
		for j := range s.SinkTopics {
			s.SinkTopics[j].Partitions = times(s.SinkTopics[j].Partitions, c.Partitions)
		}
	}
	return &changed
}

// times multiplies a count, rounds up, and holds it within what Kafka can have.
func times(n int32, factor float64) int32 {
	if factor <= 0 {
		return n
	}
	return int32(min(math.Ceil(float64(n)*factor), math.MaxInt32))
}

// startAnew takes all pods away, as if so many were to come.
func (o *observation) startAnew(replicas int) {
	workload := *o.workload
	workload.replicas, workload.rollingOut = replicas, false
	o.workload, o.pods, o.group.match, o.planConfigMap, o.injection = &workload, nil, assignment.Matching{}, nil, nil
}

// mostInstances bounds how long an answer takes: seconds for so many.
const mostInstances = 1000

// mostReplicas is the largest number of replicas that is tried to find one that fits.
const mostReplicas = 200

// remedies says what would have to change so that it fits: a limit, or replicas. Each was tried.
func remedies(obs *observation, p *planning) []string {
	var texts []string
	if limit := limitThatFits(obs, p.need, p.cold); limit > 0 {
		texts = append(texts, fmt.Sprintf("raise the limit of container %s to %s", obs.container.name, humanBytes(limit)))
	}
	if p.cold {
		return texts // the first pod has all tasks, however many follow
	}
	for n := countLossesOf(obs).instances + 1; n <= min(mostReplicas, p.tasks); n++ {
		more := *obs
		more.startAnew(n)
		if answer := answerTo(&more, false); answer != nil && answer.fits() {
			return append(texts, fmt.Sprintf("run %d replicas under the limit of %s", n, answer.Limit))
		}
	}
	return texts
}

// limitSteps is how often a limit is raised to the need that it has itself: the heap that a JVM takes by itself grows with the limit.
const limitSteps = 32

// limitThatFits finds a limit of the template that holds its own need; 0 if there is none.
func limitThatFits(obs *observation, need int64, coldStart bool) int64 {
	for range limitSteps {
		if need >= neverFits {
			return 0
		}
		more := *obs
		more.limitTo(new(quantity(need)))
		answer := answerTo(&more, coldStart)
		switch {
		case answer == nil || answer.RequiredLimit == nil:
			return 0
		case answer.fits():
			return need
		}
		need = max(answer.RequiredLimit.Value(), need+leastLimit)
	}
	return 0
}

// answerTo plans what was observed; nil where it cannot be.
func answerTo(obs *observation, coldStart bool) *Answer {
	lost := countLossesOf(obs)
	planned := plan(obs, lost)
	if coldStart {
		planned.startCold()
	}
	answer, err := answerOf(obs, lost, planned)
	if err != nil {
		return nil
	}
	return answer
}
