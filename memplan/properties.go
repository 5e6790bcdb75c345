// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NewWorkload is a workload with the documented defaults of a version, each with its provenance. It has no subtopologies. A version
// that is not known (0.0.0) counts as the newest that the planner knows.
func NewWorkload(version Fact[Version]) Workload {
	w := Workload{
		Version: version,
		Brokers: Known(3, Assumed),
		Records: Records{
			Average:      Known(1*KiB, Assumed),
			Largest:      Known(1*MiB, Assumed),
			LargestBatch: Known(Bytes(1_048_588), Default), // message.max.bytes of the broker
		},
		RocksDB: RocksDB{
			BlockCache:      Known(defaultBlockCache, Default),
			WriteBuffer:     Known(defaultWriteBuffer, Default),
			MaxWriteBuffers: Known(defaultMaxWriteBuffers, Default),
		},
		JVM: NewJVM(),
		// A small application after a full collection held 36 MiB (a field report of 2026); the rest is margin.
		Application: ApplicationMemory{LiveSet: Known(48*MiB, Assumed)},
	}
	for i := range settings {
		settings[i].value.reset(&w, settings[i].role)
	}
	return w
}

// ApplyProperties puts the application's own properties onto the workload, with provenance App. Aliases and prefixes are decided as
// Kafka Streams does; a property that the version does not know yet is ignored, as Kafka Streams ignores it. Bad values
// give an error that names the property and what must be true; the rest is applied all the same.
// Properties that cost no memory are ignored.
func (w *Workload) ApplyProperties(properties map[string]string) error {
	var errs []error
	for i := range settings {
		s := &settings[i]
		name, text, ok := lookUp(properties, s.value.prefixes(s.role), s.validNames(w.Version))
		if !ok {
			continue
		}
		if err := s.value.parse(w, s.role, strings.TrimSpace(text)); err != nil {
			errs = append(errs, fmt.Errorf("property %s=%q: %w", name, text, err))
		}
	}
	if err := w.checkGuarantee(properties); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(unique(errs)...)
}

// lookUp finds the property that is in force.
func lookUp(properties map[string]string, prefixes, names []string) (name, value string, ok bool) {
	for _, prefix := range prefixes {
		for _, n := range names {
			if value, ok = properties[prefix+n]; ok {
				return prefix + n, value, true
			}
		}
	}
	return "", "", false
}

// checkGuarantee refuses what the version no longer has.
func (w *Workload) checkGuarantee(properties map[string]string) error {
	value := strings.TrimSpace(properties["processing.guarantee"])
	removed := strings.EqualFold(value, "exactly_once") || strings.EqualFold(value, "exactly_once_beta")
	if removed && hasFeature(effectiveVersion(w.Version), eosV1Gone) && w.Version.Value != (Version{}) {
		return fmt.Errorf("property processing.guarantee=%q: Kafka Streams %v does not have it; it must be exactly_once_v2 since 4.0", value, w.Version.Value)
	}
	return nil
}

// unique removes errors of the same text: one property may go to several consumers.
func unique(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(err error) bool {
		double := seen[err.Error()]
		seen[err.Error()] = true
		return double
	})
}
