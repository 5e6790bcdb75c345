// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Provenance is the source of a number.
type Provenance uint8

// The provenances, weakest first. The zero value is the weakest.
const (
	// Assumed is a value on the safe side without a source.
	Assumed Provenance = iota
	// Default is the documented default of Kafka, RocksDB or the JVM.
	Default
	// Derived: computed top-down by the plan.
	Derived
	// Spec: set by the user of the planner.
	Spec
	// App: set by the application itself.
	App
	// Measured: read from the running process.
	Measured
)

// String returns the provenance in lower case, as in the status and in texts.
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

// Fact is a value with its provenance.
type Fact[T any] struct {
	Value T
	From  Provenance
}

// Known returns a fact.
func Known[T any](value T, from Provenance) Fact[T] { return Fact[T]{Value: value, From: from} }

// weakest returns the provenance of a number with several parts: that of its weakest part.
func weakest(first Provenance, rest ...Provenance) Provenance {
	for _, p := range rest {
		first = min(first, p)
	}
	return first
}
