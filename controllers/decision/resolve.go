// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"slices"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/memplan"
)

// application is the resolved application: the workload in each kind of pod, and the notes on its facts.
type application struct {
	planned, target memplan.Workload
	running         map[memplan.PodKind]memplan.Workload
	neighbours      []memplan.Neighbour
	// topology is the described topology; nil without a description.
	topology *describedTopology
	// notes are facts that the user should know, invalid are contradicting flags and bad values of properties.
	notes, invalid []string
}

// resolveApplication resolves the application from all sources. The result is a new value; no source is changed.
func resolveApplication(f *Facts) application {
	var app application
	var topologyErr error
	app.topology, topologyErr = describeTopology(f)
	w, invalid := resolveWorkload(f, app.topology)
	app.planned = w
	app.invalid = slices.Concat(invalid, errorTexts(topologyErr))
	app.target = w
	app.target.Bounded = w.Bounded || f.AgentConfigMap != ""
	app.running = runningVariants(f, w)
	app.neighbours = neighboursOf(&f.Reports)
	app.notes = slices.Concat(specNotes(f, &w), reportNotes(f, app.topology))
	return app
}

// resolveWorkload resolves the workload in a new pod. The returned texts are invalid settings; the rest of the workload holds.
func resolveWorkload(f *Facts, topology *describedTopology) (memplan.Workload, []string) {
	sources, version, versionErr := sourcesOf(f)
	w := memplan.NewWorkload(version)
	settings := reportedSettings(&f.Reports)
	if settings == nil {
		settings = specProperties(f.App)
	}
	propertiesErr := w.ApplyProperties(settings)
	jvm, jvmErr := jvmOf(f)
	w.JVM = jvm
	sources[sourceMeasured] = measuredSource(f.Measured, &w, sources[sourceSpec])
	applySources(&w, sources)
	applyTopology(&w, &f.App.Spec.Streams, f.Assignment.Group, topology)
	w.Bounded = f.AssumeBounded || f.Proven
	if f.Container != nil && f.Container.Limit != nil && w.JVM.HeapMode == memplan.HeapPlanned {
		// The application is known to work with the heap of its template. The plan takes none of it away.
		w.JVM.LeastHeap = w.JVM.HeapUnder(memplan.Bytes(f.Container.Limit.Value()))
	}
	return w, errorTexts(versionErr, propertiesErr, jvmErr)
}

// specProperties returns the properties of the spec.
func specProperties(app *v1alpha1.StreamApp) map[string]string {
	properties := map[string]string{}
	for _, c := range app.Spec.Streams.Configs {
		properties[c.Name] = c.Value
	}
	return properties
}

// errorTexts flattens errors into sentences.
func errorTexts(errs ...error) []string {
	var texts []string
	for _, err := range errs {
		var joined interface{ Unwrap() []error }
		switch {
		case err == nil:
		case errors.As(err, &joined):
			texts = append(texts, errorTexts(joined.Unwrap()...)...)
		default:
			texts = append(texts, err.Error())
		}
	}
	return slices.Clip(texts)
}
