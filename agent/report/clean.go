// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
)

// Limits of a report. Only a faulty or malicious process exceeds them.
const (
	// maxAmount bounds amounts in bytes, counts and times: 1 PiB. Sums of thousands of them, and their products with hundreds, do not
	// overflow.
	maxAmount = 1 << 50
	// maxCount bounds counts of type int.
	maxCount = 1_000_000

	maxClients  = 64
	maxThreads  = 1_000
	maxTasks    = 10_000
	maxStores   = 10_000
	maxSettings = 500
	maxCaches   = 800
	maxFlags    = 200
	maxFindings = 50

	// maxPartition is the largest partition of a task.
	maxPartition = 99_999
	// maxAllTasks bounds the tasks of all subtopologies together, where a subtopology has all tasks up to its largest partition.
	maxAllTasks = 1_000_000

	// maxName bounds names and IDs in bytes: Kafka's limit for topics is 249 (org.apache.kafka.common.internals.Topic).
	maxName = 256
	// maxText bounds values and messages.
	maxText = 1 << 10
	// maxTopology bounds the description of the topology.
	maxTopology = 128 << 10
)

// cleaner applies the limits to one report. Its counters are the remaining quantities.
type cleaner struct {
	threads  int
	tasks    int
	stores   int
	settings int

	largest   map[string]int32 // The largest partition by application and subtopology.
	allTasks  int              // The number of tasks up to these partitions.
	cut       bool             // A limit was exceeded.
	malformed int              // The number of tasks with a malformed ID.
}

func newCleaner() *cleaner {
	return &cleaner{threads: maxThreads, tasks: maxTasks, stores: maxStores, settings: maxSettings, largest: map[string]int32{}}
}

func (c *cleaner) clean(r *Report) {
	r.Agent = line(r.Agent, maxName)
	r.Seq = max(0, r.Seq)
	r.Started = amount(r.Started)
	r.Bounded = oneOf(r.Bounded, BoundedOff, BoundedPending, BoundedActive)
	r.Plan = Plan{
		OnDisk: line(r.Plan.OnDisk, maxName),
		Active: line(r.Plan.Active, maxName),
		Source: oneOf(r.Plan.Source, PlanBootstrap, PlanMounted, PlanClamped),
	}
	c.cleanRocksDB(&r.RocksDB)
	r.Clients = limited(c, r.Clients, maxClients)
	for i := range r.Clients {
		c.cleanClient(&r.Clients[i])
	}
	c.cleanJVM(&r.JVM)
	cleanCgroup(&r.Cgroup)
	r.Allocator = Allocator{Name: line(r.Allocator.Name, maxName), Arenas: count(r.Allocator.Arenas)}
	c.cleanFindings(r)
	r.Truncated = r.Truncated || c.cut
}

func (c *cleaner) cleanRocksDB(r *RocksDB) {
	clamp(&r.CacheCapacity, &r.CacheUsage, &r.CachePinned, &r.WriteBufferManager, &r.ArenaBlock, &r.WriteBuffer, &r.Opened, &r.Closed)
	r.OwnCaches = limited(c, r.OwnCaches, maxCaches)
	for i := range r.OwnCaches {
		cache := &r.OwnCaches[i]
		cache.Capacity = amount(cache.Capacity)
		cache.Stores = count(cache.Stores)
	}
}

func (c *cleaner) cleanClient(client *Client) {
	client.ApplicationID = line(client.ApplicationID, maxName)
	client.ClientID = line(client.ClientID, maxName)
	client.Version = line(client.Version, maxName)
	client.State = line(client.State, maxName)
	client.Topology = lines(client.Topology, maxTopology)
	client.Settings = c.cleanSettings(client.Settings)
	client.Threads = take(c, client.Threads, &c.threads)
	c.cleanTasks(client)
	client.GlobalStores = c.cleanStores(client.GlobalStores)
	client.Brokers = count(client.Brokers)
	clamp(&client.Records.AverageSize, &client.Records.LargestSize, &client.StateDir.Bytes)
	client.StateDir.Type = line(client.StateDir.Type, maxName)
}

// cleanSettings removes settings outside of the allow-list, and all but the first setting of each name.
func (c *cleaner) cleanSettings(settings []Setting) []Setting {
	seen := map[string]bool{}
	settings = slices.DeleteFunc(settings, func(s Setting) bool {
		remove := seen[s.Name] || !isAllowed(s.Name)
		seen[s.Name] = true
		return remove
	})
	settings = take(c, settings, &c.settings)
	for i := range settings {
		setting := &settings[i]
		setting.Value = line(setting.Value, maxText)
		setting.By = oneOf(setting.By, SetByApp, SetByPlan)
	}
	return settings
}

// cleanTasks cleans the tasks of a client's threads.
func (c *cleaner) cleanTasks(client *Client) {
	active := map[string]bool{} // By ID, whether the task is active in one of the threads.
	for i := range client.Threads {
		for j := range client.Threads[i].Tasks {
			task := &client.Threads[i].Tasks[j]
			task.Role = oneOf(task.Role, RoleActive, RoleStandby)
			active[task.ID] = active[task.ID] || task.Role == RoleActive
		}
	}
	seen := map[string]bool{}
	for i := range client.Threads {
		thread := &client.Threads[i]
		thread.Name = line(thread.Name, maxName)
		thread.Tasks = slices.DeleteFunc(thread.Tasks, func(task Task) bool {
			if seen[task.ID] || active[task.ID] != (task.Role == RoleActive) {
				return true
			}
			seen[task.ID] = true
			return !c.permits(client.ApplicationID, task.ID)
		})
		thread.Tasks = take(c, thread.Tasks, &c.tasks)
		for j := range thread.Tasks {
			thread.Tasks[j].Stores = c.cleanStores(thread.Tasks[j].Stores)
		}
	}
}

// permits returns whether the ID of a task is well-formed and its partition keeps all subtopologies within maxAllTasks.
func (c *cleaner) permits(applicationID, id string) bool {
	subtopology, partition, ok := ParseTaskID(id)
	if !ok {
		c.malformed++
		return false
	}
	key := applicationID + "\n" + subtopology
	before, known := c.largest[key]
	added := int(partition) + 1
	if known {
		added = max(0, int(partition-before))
	}
	if c.allTasks+added > maxAllTasks {
		c.cut = true
		return false
	}
	c.allTasks += added
	c.largest[key] = max(before, partition)
	return true
}

// cleanStores removes stores without a name, and all but the first store of each name.
func (c *cleaner) cleanStores(stores []Store) []Store {
	seen := map[string]bool{"": true}
	for i := range stores {
		stores[i] = Store{Name: line(stores[i].Name, maxName), Scope: line(stores[i].Scope, maxName)}
	}
	stores = slices.DeleteFunc(stores, func(s Store) bool {
		remove := seen[s.Name]
		seen[s.Name] = true
		return remove
	})
	return take(c, stores, &c.stores)
}

func (c *cleaner) cleanJVM(jvm *JVM) {
	jvm.Version = count(jvm.Version)
	jvm.Threads = count(jvm.Threads)
	jvm.ThreadsPeak = count(jvm.ThreadsPeak)
	jvm.Vendor = line(jvm.Vendor, maxName)
	jvm.Name = line(jvm.Name, maxName)
	clamp(&jvm.HeapMax, &jvm.HeapUsed, &jvm.HeapLive, &jvm.Metaspace, &jvm.CodeCache, &jvm.Direct)
	jvm.Collectors = limited(c, jvm.Collectors, maxFlags)
	for i := range jvm.Collectors {
		jvm.Collectors[i] = line(jvm.Collectors[i], maxName)
	}
	jvm.Flags = slices.DeleteFunc(jvm.Flags, func(flag string) bool { return len(flag) > maxName || !memoryFlag.MatchString(flag) })
	jvm.Flags = limited(c, jvm.Flags, maxFlags)
}

func cleanCgroup(cgroup *Cgroup) {
	if cgroup.Version != 1 && cgroup.Version != 2 {
		cgroup.Version = 0
	}
	clamp(&cgroup.Limit, &cgroup.High, &cgroup.Usage, &cgroup.Anon, &cgroup.File, &cgroup.Kernel, &cgroup.Peak, &cgroup.OOMKills)
}

// cleanFindings cleans the agent's findings and puts those of the cleaner before them.
func (c *cleaner) cleanFindings(r *Report) {
	cutBefore := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Reason == ReasonCut })
	var all []Finding
	if c.malformed > 0 {
		all = append(all, Finding{Reason: ReasonTaskMalformed, Message: fmt.Sprintf(
			"%d tasks in the pod's report are ignored: their IDs do not have the form <subtopology>_<partition>", c.malformed)})
	}
	for _, finding := range r.Findings {
		finding = Finding{Reason: line(finding.Reason, maxName), Message: line(finding.Message, maxText)}
		own := finding.Reason == "" || finding.Reason == ReasonCut
		if !own && !slices.Contains(all, finding) && len(all) < maxFindings {
			all = append(all, finding)
		}
	}
	if c.cut || cutBefore {
		cut := Finding{Reason: ReasonCut, Message: "the pod's report exceeds the limits of a report; the excess is ignored"}
		all = append([]Finding{cut}, all...)
	}
	r.Findings = all[:min(len(all), maxFindings)]
}
