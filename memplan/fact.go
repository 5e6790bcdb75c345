// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Provenance says where a number came from.
type Provenance uint8

// The provenances, weakest first, so that the zero value claims nothing.
const (
	// Assumed is a value on the safe side that no source shows.
	Assumed Provenance = iota
	// Default is the documented default of Kafka, RocksDB or the JVM.
	Default
	// Derived was computed top-down by the plan.
	Derived
	// Spec was pinned by the user of the planner.
	Spec
	// App was set by the application itself.
	App
	// Measured was read from the running process.
	Measured
)

// String is the provenance in lower case, as it is shown to people and kept in status.
func (p Provenance) String() string {
	switch p {
	case Default:
		return "default"
	case Derived:
		return "derived"
	case Spec:
		return "spec"
	case App:
		return "app"
	case Measured:
		return "measured"
	default:
		return "assumed"
	}
}

// Fact is a value and where it came from.
type Fact[T any] struct {
	Value T
	From  Provenance
}

// Known returns a fact.
func Known[T any](value T, from Provenance) Fact[T] { return Fact[T]{Value: value, From: from} }

// weakest is the provenance of a number made of several: it is known no better than its least known part.
func weakest(first Provenance, rest ...Provenance) Provenance {
	for _, p := range rest {
		first = min(first, p)
	}
	return first
}
