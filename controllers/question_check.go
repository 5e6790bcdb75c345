// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// checkSpec says what of a StreamApp an API server would refuse and the planner could misread. One that comes from a file has met none of
// the rules of its resource definition.
func checkSpec(spec *v1alpha1.StreamAppSpec) error {
	var errs []error
	failf := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if kind := spec.TargetRef.Kind; kind != v1alpha1.KindStatefulSet && kind != v1alpha1.KindDeployment {
		failf("`targetRef.kind` is %q: it must be StatefulSet or Deployment", kind)
	}
	if mode := spec.Mode; mode != "" && mode != v1alpha1.ModeObserve && mode != v1alpha1.ModeEnforce {
		failf("`mode` is %q: it must be Observe or Enforce", mode)
	}
	errs = append(errs, checkMemory(&spec.Memory), checkStreams(&spec.Streams), checkStores(spec.Streams.Stores))
	errs = append(errs, atLeast("jvm.applicationHeap", spec.JVM.ApplicationHeap, 0), atLeast("jvm.applicationNative", spec.JVM.ApplicationNative, 0))
	if v := spec.JVM.OptionsVariable; v != "" && v != v1alpha1.JDKJavaOptions && v != v1alpha1.JavaToolOptions {
		failf("`jvm.optionsVariable` is %q: it must be %s or %s", v, v1alpha1.JDKJavaOptions, v1alpha1.JavaToolOptions)
	}
	return errors.Join(errs...)
}

// leastLimit is the smallest limit that the resource definition of StreamApp permits.
const leastLimit = 64 << 20

func checkMemory(m *v1alpha1.MemorySpec) error {
	errs := []error{atLeast("memory.minLimit", m.MinLimit, leastLimit), atLeast("memory.maxLimit", m.MaxLimit, leastLimit)}
	if m.MinLimit != nil && m.MaxLimit != nil && m.MinLimit.Cmp(*m.MaxLimit) > 0 {
		errs = append(errs, fmt.Errorf("`memory.minLimit` is %s: it must be less than or equal to `memory.maxLimit`, %s", m.MinLimit, m.MaxLimit))
	}
	for _, n := range []struct {
		field string
		value *int32
		most  int32
	}{{"memory.podFailuresToTolerate", m.PodFailuresToTolerate, 100}, {"memory.headroomPercent", m.HeadroomPercent, 50}} {
		if n.value != nil && (*n.value < 0 || *n.value > n.most) {
			errs = append(errs, fmt.Errorf("`%s` is %d: it must be from 0 to %d", n.field, *n.value, n.most))
		}
	}
	for i, pin := range m.Pins {
		if _, known := pinnedRegions[pin.Region]; !known && pin.Region != v1alpha1.RegionHeap {
			errs = append(errs, fmt.Errorf("`memory.pins[%d].region` is %q: it must be a region such as BlockCache", i, pin.Region))
		}
		if pin.Size == nil {
			errs = append(errs, fmt.Errorf("`memory.pins[%d].size` is not set: it must be an amount such as 128Mi", i))
		}
		errs = append(errs, atLeast(fmt.Sprintf("memory.pins[%d].size", i), pin.Size, 1))
	}
	return errors.Join(errs...)
}

// mostPartitions is the most tasks and partitions of a subtopology that the resource definition of StreamApp permits.
const mostPartitions = 1_000_000

func checkStreams(s *v1alpha1.StreamsSpec) error {
	errs := []error{
		atLeast("streams.records.averageSize", s.Records.AverageSize, 1), atLeast("streams.records.largestSize", s.Records.LargestSize, 1),
		atLeast("streams.records.largestBatchSize", s.Records.LargestBatchSize, 1),
	}
	within := func(field string, value, least, most int32) {
		if value < least || value > most {
			errs = append(errs, fmt.Errorf("`%s` is %d: it must be from %d to %d", field, value, least, most))
		}
	}
	within("streams.threads", s.Threads, 0, 1024)
	within("streams.standbyReplicas", deref(s.StandbyReplicas), 0, 100)
	within("streams.warmupReplicas", deref(s.WarmupReplicas), 0, 10_000)
	if _, known := guarantees[s.ProcessingGuarantee]; !known && s.ProcessingGuarantee != "" {
		errs = append(errs, fmt.Errorf("`streams.processingGuarantee` is %q: it must be AtLeastOnce, ExactlyOnce or ExactlyOnceV2", s.ProcessingGuarantee))
	}
	if _, known := protocols[s.GroupProtocol]; !known && s.GroupProtocol != "" {
		errs = append(errs, fmt.Errorf("`streams.groupProtocol` is %q: it must be Classic or Streams", s.GroupProtocol))
	}
	var ids []int32
	for i := range s.Subtopologies {
		sub := &s.Subtopologies[i]
		switch {
		case sub.ID == nil:
			errs = append(errs, fmt.Errorf("`streams.subtopologies[%d].id` is not set: it must be the first number of the tasks' ids", i))
			continue
		case slices.Contains(ids, *sub.ID):
			errs = append(errs, fmt.Errorf("`streams.subtopologies[%d].id` is %d, as of another before it", i, *sub.ID))
		}
		within(fmt.Sprintf("streams.subtopologies[%d].tasks", i), sub.Tasks, 1, mostPartitions)
		within(fmt.Sprintf("streams.subtopologies[%d].writtenPartitions", i), deref(sub.WrittenPartitions), 0, mostPartitions)
		within(fmt.Sprintf("streams.subtopologies[%d].inputPartitionsPerTask", i), sub.InputPartitionsPerTask, 0, 10_000)
		ids = append(ids, *sub.ID)
	}
	return errors.Join(errs...)
}

func checkStores(stores []v1alpha1.Store) error {
	var errs []error
	for i := range stores {
		store := &stores[i]
		if _, known := storeKinds[store.Kind]; !known && store.Kind != "" && store.Kind != v1alpha1.StoreGlobal {
			errs = append(errs, fmt.Errorf("`streams.stores[%d].kind` is %q: it must be a kind such as KeyValue or Window", i, store.Kind))
		}
		if store.Name == "" {
			errs = append(errs, fmt.Errorf("`streams.stores[%d].name` is not set: it must be the name of the store", i))
		}
		if store.RetentionSeconds < 0 || store.SegmentSeconds < 0 {
			errs = append(errs, fmt.Errorf("`streams.stores[%d]` has a negative time: retention and segments must be seconds of at least 1", i))
		}
	}
	return errors.Join(errs...)
}

// atLeast checks an amount that may be missing.
func atLeast(field string, q *resource.Quantity, least int64) error {
	if q == nil || q.Value() >= least {
		return nil
	}
	return fmt.Errorf("`%s` is %s: it must be at least %s", field, q, humanBytes(least))
}
