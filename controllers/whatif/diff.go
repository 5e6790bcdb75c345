// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/decision"
)

// Difference is the difference between the stored objects of a StreamApp and those that a pass of the operator would write.
type Difference struct {
	Namespace    string                `json:"namespace"`
	StreamApp    string                `json:"streamApp"`
	WorkloadKind v1alpha1.WorkloadKind `json:"workloadKind"`
	Workload     string                `json:"workload"`
	// Mode is the mode of the StreamApp, NewMode the one of the decision.
	Mode    v1alpha1.Mode `json:"mode"`
	NewMode v1alpha1.Mode `json:"newMode"`

	// Changes are the differences; empty if there are none.
	Changes []FieldChange `json:"changes"`
	// PodFailuresTolerated is that of the running pods, PodFailuresToleratedAfter that of pods created after the change; nil if it is unknown,
	// and -1 if the pods exceed their limits without a failure.
	PodFailuresTolerated      *int `json:"podFailuresTolerated,omitempty"`
	PodFailuresToleratedAfter *int `json:"podFailuresToleratedAfter,omitempty"`
	// Frozen is the reason for which the operator would leave everything as it is; empty if it would not.
	Frozen string `json:"frozen,omitempty"`
	// Capped is the bound that keeps the limit of a new pod below the required one; empty without one.
	Capped string `json:"capped,omitempty"`
	// Conditions are the conditions that would not be True, Notes the limits of this comparison.
	Conditions []string `json:"conditions,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// FieldChange is the difference in one field. An absent value is empty.
type FieldChange struct {
	Object string `json:"object"`
	Field  string `json:"field"`
	Now    string `json:"now,omitempty"`
	Then   string `json:"then,omitempty"`
}

// placeholderAgent stands for the ConfigMap of the agent of the operator, whose name is unknown here.
const placeholderAgent = v1alpha1.AgentConfigMapPrefix + "placeholder"

const (
	unknownNote   = "the tasks are unknown"
	bootstrapNote = unknownNote + ": the comparison shows the bootstrap plan"
	reportsNote   = "the reports of the agents are not read; the tasks are the last known ones, and the facts that only a report contains are missing"
)

// Diff decides with the mode, or with that of the StreamApp if it is empty, and compares the result with the stored objects.
func Diff(q Question, mode v1alpha1.Mode) (*Difference, error) {
	before := (&decision.Facts{App: q.App}).Mode()
	q.App = q.App.DeepCopy()
	if mode = cmp.Or(mode, before); mode != before {
		q.App.Generation++ // an edit of the StreamApp
	}
	q.App.Spec.Mode = mode
	world, memory, err := q.present()
	if err != nil {
		return nil, err
	}
	switch {
	case !decision.RunsAgent(world.App):
		world.AgentConfigMap = ""
	case world.AgentConfigMap == "":
		world.AgentConfigMap = placeholderAgent
	}
	lastKnown := q.Group == nil && q.Topology == ""
	if lastKnown {
		world.Group = lastKnownGroup(world, memory, q.Now)
	} else {
		memory.Assignment = nil // the question names its own sources
	}
	d := decision.Decide(world, memory)
	diff := &Difference{
		Namespace: q.App.Namespace, StreamApp: q.App.Name, WorkloadKind: q.App.Spec.TargetRef.Kind, Workload: q.App.Spec.TargetRef.Name,
		Mode: before, NewMode: mode, Changes: changesOf(&d), Frozen: d.Frozen.Message, Capped: d.Plan.Capped,
		Conditions: conditionsOf(&d),
	}
	planned := !d.Facts.TargetProblem.Found()
	if d.Plan.TasksKnown {
		diff.PodFailuresTolerated = new(d.Plan.Tolerated)
		diff.PodFailuresToleratedAfter = new(toleratedAfter(world, memory, &d))
	} else if planned {
		note := unknownNote
		if d.Files != nil {
			note = bootstrapNote
		}
		diff.Notes = append(diff.Notes, note)
	}
	if planned && lastKnown && slices.ContainsFunc(d.Facts.Pods, func(p decision.Pod) bool { return p.AgentConfigMap != "" }) {
		diff.Notes = append(diff.Notes, reportsNote)
	}
	return diff, nil
}

// lastKnownGroup returns the last known assignment as a group; unavailable if none is known.
func lastKnownGroup(world decision.World, memory decision.Memory, now time.Time) decision.GroupSource {
	known := memory.Assignment
	if known == nil || (known.Kafka == nil && len(known.Topology.Subtopologies) == 0) {
		return world.Group
	}
	group := &assignment.Group{ApplicationID: cmp.Or(world.App.Spec.Kafka.ApplicationID, world.App.Name), Protocol: assignment.Classic}
	if known.Kafka != nil {
		*group = *known.Kafka
	}
	group.State = "Stable"
	group.Stable = true
	group.Assigned = true
	group.Subtopologies = subtopologiesOf(known)
	for i := range world.Pods {
		pod := &world.Pods[i]
		load, found := known.Loads[pod.UID]
		if found && len(pod.Status.PodIPs) > 0 {
			host := pod.Status.PodIPs[0].IP
			group.Processes = append(group.Processes, assignment.Process{ID: pod.Name, Host: host, Threads: load.Threads, Tasks: load.Tasks})
		}
	}
	return decision.GroupSource{Latest: assignment.Observation{Group: group, At: now}}
}

// subtopologiesOf returns the last known subtopologies: those of the reports, completed with the topics that only Kafka shows.
func subtopologiesOf(known *decision.KnownAssignment) []assignment.Subtopology {
	var inKafka []assignment.Subtopology
	if known.Kafka != nil {
		inKafka = known.Kafka.Subtopologies
	}
	reported := slices.Clone(known.Topology.Subtopologies)
	if len(reported) == 0 {
		return inKafka
	}
	for i := range reported {
		s := &reported[i]
		j := slices.IndexFunc(inKafka, func(k assignment.Subtopology) bool { return k.ID == s.ID })
		if j < 0 {
			continue
		}
		s.Tasks = max(s.Tasks, inKafka[j].Tasks)
		s.SourceTopics = inKafka[j].SourceTopics
		s.SinkTopics = inKafka[j].SinkTopics
		s.Changelogs = inKafka[j].Changelogs
	}
	return reported
}

// toleratedAfter returns the pod failures tolerated by pods that are all created after the change.
func toleratedAfter(world decision.World, memory decision.Memory, d *decision.Decision) int {
	if d.Frozen.Found() {
		return d.Plan.Tolerated
	}
	world = startedAnew(world, replicasOf(world))
	if d.Injection != nil {
		world.Injection = &v1alpha1.PodInjection{Spec: *d.Injection}
	}
	memory.PodsUnavailableSince = time.Time{}
	return decision.Decide(world, memory).Plan.Tolerated
}

// conditionsOf returns the conditions of a decision that are not True.
func conditionsOf(d *decision.Decision) []string {
	var texts []string
	conditions := decision.StatusOf(d, &decision.Outcome{}).Conditions
	for _, conditionType := range decision.ConditionOrder {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.Status != metav1.ConditionTrue {
			texts = append(texts, fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return texts
}

// changes collects differences.
type changes []FieldChange

func (c *changes) add(object, field, now, then string) {
	if now != then {
		*c = append(*c, FieldChange{Object: object, Field: field, Now: now, Then: then})
	}
}

// changesOf compares the stored objects with those of a decision.
func changesOf(d *decision.Decision) []FieldChange {
	result := changes{}
	f := &d.Facts
	var stored *v1alpha1.PodInjectionSpec
	if f.Injection != nil {
		stored = &f.Injection.Spec
	}
	injectionStays := d.InjectionStays || (d.Frozen.Found() && d.Injection == nil)
	if !injectionStays {
		if f.Container != nil && f.Container.Limit != nil {
			result.addNewPods(f.Container, stored, d.Injection)
		}
		result.addInjection("PodInjection "+f.App.Name, stored, d.Injection)
	}
	if d.Files != nil {
		var published map[string]string
		if f.PlanConfigMap != nil {
			published = f.PlanConfigMap.Data
		}
		result.addPlan("ConfigMap "+decision.PlanConfigMapName(f.App.Name), published, d.Files)
	}
	for _, resize := range d.Resizes {
		result.addResize(f.Pods, resize)
	}
	return result
}

// addNewPods compares the memory of new pods with two injections, either of which may be nil.
func (c *changes) addNewPods(container *decision.Container, stored, injection *v1alpha1.PodInjectionSpec) {
	limit, request := memoryWith(container, stored)
	newLimit, newRequest := memoryWith(container, injection)
	c.add("new pods", "memory limit", textOf(limit), textOf(newLimit))
	c.add("new pods", "memory request", textOf(request), textOf(newRequest))
}

// memoryWith returns the memory of a new pod with an injection, which may be nil. The policy replaces the memory of the template only in pods
// with the limit and the image that the injection names.
func memoryWith(container *decision.Container, injection *v1alpha1.PodInjectionSpec) (limit, request *resource.Quantity) {
	if injection == nil || injection.Memory.Limit == nil || slices.Contains(injection.ExcludedImages, container.Image) {
		return container.Limit, container.Request
	}
	memory := &injection.Memory
	otherImage := memory.ForImage != "" && memory.ForImage != container.Image
	if otherImage || memory.ForLimit.Cmp(*container.Limit) != 0 {
		return container.Limit, container.Request
	}
	return memory.Limit, cmp.Or(memory.Request, container.Request)
}

// addInjection compares two injections, either of which may be nil. Names with a hash are no difference: that of the agent depends on the
// operator, and the revision on the plan.
func (c *changes) addInjection(object string, stored, injection *v1alpha1.PodInjectionSpec) {
	now := fieldsOf(stored)
	then := fieldsOf(injection)
	for _, field := range slices.Sorted(maps.Keys(union(now, then))) {
		c.add(object, field, now[field], then[field])
	}
}

// fieldsOf returns the fields of an injection as texts.
func fieldsOf(injection *v1alpha1.PodInjectionSpec) map[string]string {
	if injection == nil {
		return nil
	}
	fields := map[string]string{
		"owner": string(injection.Owner.Kind) + " " + injection.Owner.Name, "container": injection.Container,
		"optionsVariable": string(injection.OptionsVariable), "options": string(injection.Options),
		"planConfigMap": injection.PlanConfigMap, "excludedImages": strings.Join(injection.ExcludedImages, ", "),
		"memory.forLimit": textOf(injection.Memory.ForLimit), "memory.forImage": injection.Memory.ForImage,
		"memory.limit": textOf(injection.Memory.Limit), "memory.request": textOf(injection.Memory.Request),
	}
	if injection.OwnOptions != nil {
		fields["ownOptions"] = fmt.Sprintf("%q", *injection.OwnOptions)
	}
	if injection.AgentConfigMap != "" {
		fields["agent"] = "injected"
	}
	return fields
}

// addPlan compares the entries of two plans.
func (c *changes) addPlan(object string, published, files map[string]string) {
	for _, key := range []string{planfile.OptionsKey, planfile.PropertiesKey} {
		now := entriesOf(published[key])
		then := entriesOf(files[key])
		for _, name := range slices.Sorted(maps.Keys(union(now, then))) {
			c.add(object, name, now[name], then[name])
		}
	}
}

// entriesOf returns the entries of a file of the plan by name. An option without a value is set.
func entriesOf(text string) map[string]string {
	entries := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			value = "set"
		}
		entries[name] = value
	}
	return entries
}

// addResize adds a resize of a running pod.
func (c *changes) addResize(pods []decision.Pod, resize decision.Resize) {
	object := "Pod " + resize.Pod
	c.add(object, "memory limit", textOf(quantity(resize.From)), textOf(quantity(resize.To)))
	i := slices.IndexFunc(pods, func(p decision.Pod) bool { return p.Name == resize.Pod })
	if i >= 0 && resize.Request > 0 {
		c.add(object, "memory request", textOf(pods[i].Request), textOf(quantity(resize.Request)))
	}
}

// union returns the entries of two maps.
func union(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// textOf formats a quantity; empty for nil. Equal quantities have the same text.
func textOf(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return quantity(q.Value()).String()
}
