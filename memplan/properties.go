// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NewWorkload returns a workload with the documented defaults, each with its provenance. It has no subtopologies. An unknown version
// (0.0.0) counts as the newest known version.
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

// ApplyProperties sets the application's own properties, with provenance App. Names and prefixes win as in Kafka Streams. Properties of
// newer versions, and those without an effect on memory, are ignored. The error names each property with a bad value and its valid values;
// the other properties are set.
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

// lookUp returns the effective property.
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

// checkGuarantee returns an error for a guarantee that the version no longer has.
func (w *Workload) checkGuarantee(properties map[string]string) error {
	value := strings.TrimSpace(properties["processing.guarantee"])
	removed := strings.EqualFold(value, "exactly_once") || strings.EqualFold(value, "exactly_once_beta")
	if removed && hasFeature(effectiveVersion(w.Version), eosV1Gone) && w.Version.Value != (Version{}) {
		return fmt.Errorf("property processing.guarantee=%q: Kafka Streams %v does not support it; it must be exactly_once_v2 since 4.0", value, w.Version.Value)
	}
	return nil
}

// unique removes duplicate errors: one property may set several consumers.
func unique(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(err error) bool {
		duplicate := seen[err.Error()]
		seen[err.Error()] = true
		return duplicate
	})
}
