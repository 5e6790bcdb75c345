// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
)

// Question is a question about one application.
type Question struct {
	// App is the StreamApp. It need not exist in a cluster.
	App *v1alpha1.StreamApp
	// Objects contain the workload and the other objects.
	Objects Objects
	// Now is the time from which ages are measured.
	Now time.Time
	// Group is the Kafka group of the application; nil if it was not read.
	Group *assignment.Group
	// Topology is the text of Topology#describe(); empty without one. Partitions has the sizes of its topics, as far as they are known; internal
	// topics with or without the prefix of the application ID.
	Topology   string
	Partitions map[string]int32
	// Properties are those of the application. A property in the StreamApp takes precedence.
	Properties map[string]string
	// Bounded plans processes with one active cache for all RocksDB stores, started anew.
	Bounded bool
	// Change is the difference to the present state.
	Change Change
}

// Change is the difference to the present state. The zero value changes nothing.
type Change struct {
	// PodFailures is the number of failed pods.
	PodFailures *int32
	// Replicas of the workload. All of them count as started anew: the present assignment does not apply to another number.
	Replicas *int32
	// Partitions is the factor for all partitions, and so for the tasks; 0 for none.
	Partitions float64
	// Limit is the memory limit of the container. It replaces that of the template and the range of the StreamApp.
	Limit *resource.Quantity
	// Threads is num.stream.threads, Standbys is num.standby.replicas.
	Threads, Standbys *int32
	// Version of kafka-streams.
	Version string
	// ColdStart plans a pod that runs all tasks, as the first of a group does for a while.
	ColdStart bool
}

// maxInstances bounds the time of an answer: seconds for this number.
const maxInstances = 1000

var (
	errTasksUnknown = errors.New("the application's tasks are unknown: give the text of Topology#describe() and the partitions of its topics, " +
		"or set `streams.subtopologies` in the StreamApp, or name brokers")
	errTwoSources = errors.New("a description of the topology and brokers exclude each other: the group shows more, so omit the description")
)

// Explain answers a question. An error names the fault in the input, or the missing input.
func Explain(q Question) (*Answer, error) {
	world, memory, err := q.world()
	if err != nil {
		return nil, err
	}
	conflicting := world.ConflictingApp
	world.ConflictingApp = "" // the question is about this one
	d := decision.Decide(world, memory)
	if len(d.Plan.Invalid) > 0 {
		return nil, errors.New(strings.Join(d.Plan.Invalid, "; "))
	}
	if !d.Plan.TasksKnown {
		return nil, errTasksUnknown
	}
	if err := d.Plan.Check(); err != nil {
		return nil, err
	}
	answer := answerOf(&d)
	if !answer.fits() {
		answer.Remedies = remedies(world, memory, &d)
	}
	if conflicting != "" {
		answer.Warnings = append(answer.Warnings, fmt.Sprintf("StreamApp %s targets the same workload and is older; the operator uses that one", conflicting))
	}
	return answer, nil
}

// world returns the world with the change applied.
func (q *Question) world() (decision.World, decision.Memory, error) {
	world, memory, err := q.present()
	if err != nil {
		return world, memory, err
	}
	memory.Assignment = nil // the question names its own sources
	world, err = q.withChangedObjects(world)
	return world, memory, err
}

// present returns the world before a change of the workload and its pods, and the memory of the operator.
func (q *Question) present() (decision.World, decision.Memory, error) {
	if err := validateSpec(q.App); err != nil {
		return decision.World{}, decision.Memory{}, err
	}
	app := q.App.DeepCopy()
	addProperties(&app.Spec.Streams, q.Properties)
	q.Change.applyToSpec(&app.Spec)
	world := q.Objects.world(app)
	world.Now = q.Now
	world.AssumeBounded = q.Bounded
	world.ColdStart = q.Change.ColdStart
	if world.Injection != nil {
		world.AgentConfigMap = world.Injection.Spec.AgentConfigMap
	}
	world.Group.Unavailable = decision.Problem{Reason: v1alpha1.ReasonNoSource, Message: decision.NoSourceText}
	if q.Group != nil {
		world.Group = decision.GroupSource{Latest: assignment.Observation{Group: q.Change.group(q.Group), At: q.Now}}
	}
	if q.Topology != "" {
		if q.Group != nil {
			return world, decision.Memory{}, errTwoSources
		}
		world.Topology = &decision.Topology{Text: q.Topology, Partitions: q.Partitions, Scale: q.Change.Partitions}
	}
	return world, decision.Recall(app, world.PlanConfigMap, world.Injection, world.Pods, decision.Volatile{}), nil
}

// withChangedObjects returns the world with the part of the change that concerns the workload and its pods.
func (q *Question) withChangedObjects(world decision.World) (decision.World, error) {
	container, err := findContainer(world)
	if err != nil {
		return world, err
	}
	target := world.App.Spec.TargetRef
	if q.Change.Limit != nil {
		world = limitedTo(world, q.Change.Limit)
	} else if container.Resources.Limits.Memory().IsZero() {
		return world, fmt.Errorf("container %s of %s %s has no memory limit; set one so that memory can be budgeted", container.Name, target.Kind, target.Name)
	}
	replicas := replicasOf(world)
	if q.Change.Replicas != nil {
		replicas = *q.Change.Replicas
	}
	if replicas < 0 || replicas > maxInstances {
		return world, fmt.Errorf("%s %s has %d replicas: it must be from 0 to %d, as each number of pod failures is tried",
			target.Kind, target.Name, replicas, maxInstances)
	}
	if q.Bounded || q.Change.Replicas != nil {
		world = startedAnew(world, replicas)
	}
	return world, nil
}

// findContainer returns the container of the application in the template. An error names the missing object.
func findContainer(world decision.World) (*corev1.Container, error) {
	app := world.App
	target := app.Spec.TargetRef
	template := world.Template()
	if template == nil {
		return nil, fmt.Errorf("%s %s, the target of StreamApp %s, does not exist in namespace %s", target.Kind, target.Name, app.Name, app.Namespace)
	}
	container := decision.FindContainer(template, app.Spec.Container)
	if container == nil {
		var names []string
		for i := range template.Spec.Containers {
			names = append(names, template.Spec.Containers[i].Name)
		}
		return nil, fmt.Errorf("%s %s has no container %q for the application: `container` must be one of %s",
			target.Kind, target.Name, app.Spec.Container, strings.Join(names, ", "))
	}
	return container, nil
}

// addProperties adds properties of the application to the spec. Those of the spec take precedence.
func addProperties(streams *v1alpha1.StreamsSpec, properties map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.ContainsFunc(streams.Configs, func(c v1alpha1.Config) bool { return c.Name == name }) {
			streams.Configs = append(streams.Configs, v1alpha1.Config{Name: name, Value: properties[name]})
		}
	}
}

// applyToSpec applies the parts of the change that a user could write into the spec.
func (c Change) applyToSpec(spec *v1alpha1.StreamAppSpec) {
	spec.Memory.PodFailuresToTolerate = cmp.Or(c.PodFailures, spec.Memory.PodFailuresToTolerate)
	if c.Limit != nil {
		spec.Memory.MinLimit = nil
		spec.Memory.MaxLimit = nil
	}
	if c.Threads != nil {
		spec.Streams.Threads = *c.Threads
	}
	spec.Streams.StandbyReplicas = cmp.Or(c.Standbys, spec.Streams.StandbyReplicas)
	spec.Streams.Version = cmp.Or(c.Version, spec.Streams.Version)
	for i := range spec.Streams.Subtopologies {
		s := &spec.Streams.Subtopologies[i]
		s.Tasks = decision.Scale(s.Tasks, c.Partitions)
		if s.WrittenPartitions != nil {
			s.WrittenPartitions = new(decision.Scale(*s.WrittenPartitions, c.Partitions))
		}
	}
}

// group returns the group with the change applied.
func (c Change) group(group *assignment.Group) *assignment.Group {
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
		s.Tasks = decision.Scale(s.Tasks, c.Partitions)
		s.SinkTopics = slices.Clone(s.SinkTopics)
		for j := range s.SinkTopics {
			s.SinkTopics[j].Partitions = decision.Scale(s.SinkTopics[j].Partitions, c.Partitions)
		}
	}
	return &changed
}
