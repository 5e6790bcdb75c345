// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// MaxBytes is the most that a report may have. With 1,000 tasks of three stores each it has about 180 KB, measured.
const MaxBytes = 256 << 10

// What a report may say at most. A process that says more is wrong or lies; none that works comes near.
const (
	// maxAmount bounds amounts in bytes, counts and times: 1 PiB. Sums of thousands of them, and their products with hundreds, do not
	// overflow.
	maxAmount = 1 << 50
	// maxCount bounds counts that are an int.
	maxCount = 1_000_000

	maxClients  = 64
	maxThreads  = 1_000
	maxTasks    = 10_000
	maxStores   = 10_000
	maxSettings = 500
	maxCaches   = 800
	maxFlags    = 200
	maxFindings = 50

	// maxPartition is the largest partition of a task, maxAllTasks the most tasks that the subtopologies of a report have together, where
	// each has those up to the largest partition that was seen.
	maxPartition = 99_999
	maxAllTasks  = 1_000_000

	// maxName bounds names and IDs in bytes: Kafka's limit for topics is 249 (org.apache.kafka.common.internals.Topic). maxText bounds
	// values and messages, maxTopology the description of the topology.
	maxName     = 256
	maxText     = 1 << 10
	maxTopology = 128 << 10
)

// Reasons of the findings that [Decode] adds.
const (
	// ReasonCut is the reason where a report said more than is taken of one.
	ReasonCut = "ReportCut"
	// ReasonTaskMalformed is the reason where the ID of a task is none.
	ReasonTaskMalformed = "ReportedTaskMalformed"
)

// Decode reads a report. wantUID is the pod's UID, which the report must carry. An error is a [*Error].
//
// A report comes from the application's own process, so nothing in it is trusted: amounts are from 0 to 2^50, lists are cut at fixed
// lengths, texts are cut and freed of what does not print, settings and flags that are not on the list are dropped, of unknown words the
// one that promises least is taken (Bounded is Off, a task is active, the plan is the agent's own, a setting is the application's), a
// task that a client names twice counts once (active, if one of them is), and a task whose ID is none is dropped. Where something was
// dropped or cut, a finding says so. Decoding what was decoded changes nothing.
func Decode(data []byte, wantUID string) (*Report, error) {
	if len(data) > MaxBytes {
		return nil, &Error{Fault: TooLarge}
	}
	var r Report
	err := json.Unmarshal(data, &r)
	_, wrongType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err != nil && !wrongType:
		return nil, &Error{Fault: Malformed, Err: err}
	case r.Schema != Schema: // Another version may have other types: all fields that could be read were.
		return nil, &Error{Fault: SchemaUnknown, Err: fmt.Errorf("its schema is %d, known is %d", r.Schema, Schema)}
	case err != nil:
		return nil, &Error{Fault: Malformed, Err: err}
	case r.PodUID != wantUID:
		return nil, &Error{Fault: WrongPod}
	}
	newCleaner().report(&r)
	return &r, nil
}

// cleaner makes a report harmless. It counts what is still permitted.
type cleaner struct {
	threads, tasks, stores, settings int
	largest                          map[string]int32 // Partition, by application and subtopology.
	all                              int              // Tasks up to those partitions.
	cut                              bool
	malformed                        int
}

func newCleaner() *cleaner {
	return &cleaner{threads: maxThreads, tasks: maxTasks, stores: maxStores, settings: maxSettings, largest: map[string]int32{}}
}

func (c *cleaner) report(r *Report) {
	r.Agent, r.Seq, r.Started = text(r.Agent, maxName), max(0, r.Seq), amount(r.Started)
	r.Bounded = oneOf(r.Bounded, BoundedOff, BoundedPending, BoundedActive)
	r.Plan = Plan{
		OnDisk: text(r.Plan.OnDisk, maxName), Active: text(r.Plan.Active, maxName),
		Source: oneOf(r.Plan.Source, PlanBootstrap, PlanMounted, PlanClamped),
	}
	c.rocksDB(&r.RocksDB)
	r.Clients = atMost(c, r.Clients, maxClients)
	for i := range r.Clients {
		c.client(&r.Clients[i])
	}
	c.jvm(&r.JVM)
	cleanCgroup(&r.Cgroup)
	r.Allocator = Allocator{Name: text(r.Allocator.Name, maxName), Arenas: count(r.Allocator.Arenas)}
	c.findings(r)
}

func (c *cleaner) rocksDB(r *RocksDB) {
	clampAll(&r.CacheCapacity, &r.CacheUsage, &r.CachePinned, &r.WriteBufferManager, &r.ArenaBlock, &r.WriteBuffer, &r.Opened, &r.Closed)
	r.OwnCaches = atMost(c, r.OwnCaches, maxCaches)
	for i := range r.OwnCaches {
		cache := &r.OwnCaches[i]
		cache.Capacity, cache.Stores = amount(cache.Capacity), count(cache.Stores)
	}
}

func (c *cleaner) client(k *Client) {
	k.ApplicationID, k.ClientID = text(k.ApplicationID, maxName), text(k.ClientID, maxName)
	k.Version, k.State = text(k.Version, maxName), text(k.State, maxName)
	k.Topology = lines(k.Topology, maxTopology)
	k.Settings = c.cleanSettings(k.Settings)
	k.Threads = take(c, k.Threads, &c.threads)
	c.clientTasks(k)
	k.GlobalStores = c.cleanStores(k.GlobalStores)
	k.Brokers = count(k.Brokers)
	clampAll(&k.Records.AverageSize, &k.Records.LargestSize, &k.StateDir.Bytes)
	k.StateDir.Type = text(k.StateDir.Type, maxName)
}

// cleanSettings drops settings that are not on the list, and all but the first of those with one name.
func (c *cleaner) cleanSettings(settings []Setting) []Setting {
	seen := map[string]bool{}
	settings = slices.DeleteFunc(settings, func(s Setting) bool {
		drop := seen[s.Name] || !isReportedSetting(s.Name)
		seen[s.Name] = true
		return drop
	})
	settings = take(c, settings, &c.settings)
	for i := range settings {
		s := &settings[i]
		s.Value, s.By = text(s.Value, maxText), oneOf(s.By, SetByApp, SetByPlan)
	}
	return settings
}

// clientTasks cleans the tasks of a client's threads.
func (c *cleaner) clientTasks(k *Client) {
	active := map[string]bool{} // Whether the task is active in one of the threads, by ID.
	for i := range k.Threads {
		for j := range k.Threads[i].Tasks {
			t := &k.Threads[i].Tasks[j]
			t.Role = oneOf(t.Role, RoleActive, RoleStandby)
			active[t.ID] = active[t.ID] || t.Role == RoleActive
		}
	}
	seen := map[string]bool{}
	for i := range k.Threads {
		thread := &k.Threads[i]
		thread.Name = text(thread.Name, maxName)
		thread.Tasks = slices.DeleteFunc(thread.Tasks, func(t Task) bool {
			if seen[t.ID] || active[t.ID] != (t.Role == RoleActive) {
				return true
			}
			seen[t.ID] = true
			return !c.permits(k.ApplicationID, t.ID)
		})
		thread.Tasks = take(c, thread.Tasks, &c.tasks)
		for j := range thread.Tasks {
			thread.Tasks[j].Stores = c.cleanStores(thread.Tasks[j].Stores)
		}
	}
}

// permits says whether a task's ID is one, and its partition does not make the subtopologies larger than any can be.
func (c *cleaner) permits(applicationID, id string) bool {
	subtopology, partition, ok := ParseTaskID(id)
	if !ok {
		c.malformed++
		return false
	}
	key := applicationID + "\n" + subtopology
	before, known := c.largest[key]
	more := int(partition) + 1
	if known {
		more = max(0, int(partition-before))
	}
	if c.all+more > maxAllTasks {
		c.cut = true
		return false
	}
	c.all += more
	c.largest[key] = max(before, partition)
	return true
}

// cleanStores drops stores without a name, and all but the first of those with one name.
func (c *cleaner) cleanStores(stores []Store) []Store {
	seen := map[string]bool{"": true}
	for i := range stores {
		stores[i] = Store{Name: text(stores[i].Name, maxName), Scope: text(stores[i].Scope, maxName)}
	}
	stores = slices.DeleteFunc(stores, func(s Store) bool {
		drop := seen[s.Name]
		seen[s.Name] = true
		return drop
	})
	return take(c, stores, &c.stores)
}

func (c *cleaner) jvm(j *JVM) {
	j.Version, j.Threads, j.ThreadsPeak = count(j.Version), count(j.Threads), count(j.ThreadsPeak)
	j.Vendor, j.Name = text(j.Vendor, maxName), text(j.Name, maxName)
	clampAll(&j.HeapMax, &j.HeapUsed, &j.HeapLive, &j.Metaspace, &j.CodeCache, &j.Direct)
	j.Collectors = atMost(c, j.Collectors, maxFlags)
	for i := range j.Collectors {
		j.Collectors[i] = text(j.Collectors[i], maxName)
	}
	j.Flags = slices.DeleteFunc(j.Flags, func(flag string) bool { return len(flag) > maxName || !memoryFlag.MatchString(flag) })
	j.Flags = atMost(c, j.Flags, maxFlags)
}

func cleanCgroup(g *Cgroup) {
	if g.Version != 1 && g.Version != 2 {
		g.Version = 0
	}
	clampAll(&g.Limit, &g.Usage, &g.Anon, &g.File, &g.Kernel, &g.Peak, &g.OOMKills)
}

// findings cleans the agent's findings, and puts before them what was dropped or cut.
func (c *cleaner) findings(r *Report) {
	var all []Finding
	if c.malformed > 0 {
		all = append(all, Finding{Reason: ReasonTaskMalformed, Message: fmt.Sprintf(
			"%d of the tasks in the pod's report are not counted, since their IDs are not <subtopology>_<partition>", c.malformed)})
	}
	for _, f := range r.Findings {
		f = Finding{Reason: text(f.Reason, maxName), Message: text(f.Message, maxText)}
		if f.Reason != "" && f.Reason != ReasonCut && !slices.Contains(all, f) && len(all) < maxFindings {
			all = append(all, f)
		}
	}
	if c.cut || slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Reason == ReasonCut }) {
		all = append([]Finding{{Reason: ReasonCut, Message: "the pod's report says more than is taken of one; the rest is not counted"}}, all...)
	}
	r.Findings = all[:min(len(all), maxFindings)]
}
