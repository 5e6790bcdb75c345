// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"strings"
	"testing"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestInvalidSpecs(t *testing.T) {
	subtopologies := func(s ...v1alpha1.Subtopology) func(*v1alpha1.StreamAppSpec) {
		return func(spec *v1alpha1.StreamAppSpec) { spec.Streams.Subtopologies = s }
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.StreamAppSpec)
		want   string
	}{
		"a kind of target": {
			func(s *v1alpha1.StreamAppSpec) { s.TargetRef.Kind = "DaemonSet" },
			`spec.targetRef.kind: Unsupported value: "DaemonSet": supported values: "StatefulSet", "Deployment"`,
		},
		"a mode": {
			func(s *v1alpha1.StreamAppSpec) { s.Mode = "Force" },
			`spec.mode: Unsupported value: "Force": supported values: "Observe", "Hold", "Enforce"`,
		},
		"a kind of store": {
			func(s *v1alpha1.StreamAppSpec) { s.Streams.Stores[0].Kind = "Queue" },
			`spec.streams.stores[0].kind: Unsupported value: "Queue": supported values: "KeyValue", "Window"`,
		},
		"a region": {
			func(s *v1alpha1.StreamAppSpec) { s.Memory.Pins = []v1alpha1.Pin{{Region: "Swap"}} },
			`spec.memory.pins[0].region: Unsupported value: "Swap": supported values: "Heap"`,
		},
		"a pin without a size": {
			func(s *v1alpha1.StreamAppSpec) { s.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionHeap}} },
			"spec.memory.pins[0].size: Required value",
		},
		"a pin of nothing": {
			func(s *v1alpha1.StreamAppSpec) {
				s.Memory.Pins = []v1alpha1.Pin{{Region: v1alpha1.RegionHeap, Size: testobjects.Memory("0")}}
			},
			`spec.memory.pins[0].size: Invalid value: "0": size must be larger than 0`,
		},
		"a subtopology without an ID": {subtopologies(v1alpha1.Subtopology{}), "spec.streams.subtopologies[0].id: Required value"},
		"a subtopology twice": {
			subtopologies(v1alpha1.Subtopology{ID: new(int32(0)), Tasks: 1}, v1alpha1.Subtopology{ID: new(int32(0)), Tasks: 1}),
			`spec.streams.subtopologies[1]: Duplicate value: {"id":0}`,
		},
		"too many tasks": {
			subtopologies(v1alpha1.Subtopology{ID: new(int32(0)), Tasks: 2e9}),
			"spec.streams.subtopologies[0].tasks: Invalid value: 2000000000: should be less than or equal to 1000000",
		},
		"limits in reverse order": {
			func(s *v1alpha1.StreamAppSpec) {
				s.Memory.MinLimit = testobjects.Memory("2Gi")
				s.Memory.MaxLimit = testobjects.Memory("1Gi")
			},
			`spec.memory: Invalid value: {"maxLimit":"1Gi","minLimit":"2Gi"}: minLimit must not be larger than maxLimit`,
		},
		"a limit below that of any JVM": {
			func(s *v1alpha1.StreamAppSpec) { s.Memory.MaxLimit = testobjects.Memory("300m") },
			`spec.memory.maxLimit: Invalid value: "300m": maxLimit must be at least 64Mi`,
		},
		"too many threads": {
			func(s *v1alpha1.StreamAppSpec) { s.Streams.Threads = 5000 },
			"spec.streams.threads: Invalid value: 5000: should be less than or equal to 1024",
		},
		"a negative headroom": {
			func(s *v1alpha1.StreamAppSpec) { s.Memory.HeadroomPercent = new(int32(-1)) },
			"spec.memory.headroomPercent: Invalid value: -1: should be greater than or equal to 0",
		},
		"an options variable": {
			func(s *v1alpha1.StreamAppSpec) { s.JVM.OptionsVariable = "JAVA_OPTS" },
			`spec.jvm.optionsVariable: Unsupported value: "JAVA_OPTS": supported values: "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"`,
		},
		"a retention of a store without one": {
			func(s *v1alpha1.StreamAppSpec) { s.Streams.Stores[0].RetentionSeconds = 60 },
			`spec.streams.stores[0]: Invalid value: {"kind":"KeyValue","name":"counts","retentionSeconds":60}: retentionSeconds must not be set`,
		},
		"a credential, without its value": {
			func(s *v1alpha1.StreamAppSpec) {
				s.Streams.Configs = []v1alpha1.Config{{Name: "sasl.jaas.config", Value: "secret"}}
			},
			"spec.streams.configs[0]: Invalid value: configs must not contain credentials: they are for settings that affect memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Explain(question(withSpec(tc.change)))
			if err == nil || !strings.HasPrefix(err.Error(), "StreamApp orders is invalid: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestEveryViolationIsNamed(t *testing.T) {
	_, err := Explain(question(withSpec(func(s *v1alpha1.StreamAppSpec) {
		s.Mode = "Force"
		s.Streams.Threads = 5000
	})))
	if err == nil || !strings.Contains(err.Error(), "spec.mode: ") || !strings.Contains(err.Error(), "; spec.streams.threads: ") {
		t.Errorf("error %v, want both fields in it", err)
	}
}

// A StreamApp that is made for a workload has the name of the workload, which may be longer than that of a StreamApp.
func TestLongNameOfAWorkload(t *testing.T) {
	name := strings.Repeat("a", 64)
	set := testobjects.StatefulSet(3, testobjects.PodTemplate("4Gi"))
	set.Name = name
	answer := explain(t, question(func(q *Question) {
		q.App.Name = name
		q.App.Spec.TargetRef.Name = name
		q.Objects = Objects{set}
	}))
	if answer.Verdict != VerdictFits {
		t.Errorf("verdict %s, want %s", answer.Verdict, VerdictFits)
	}
}

func TestValueAt(t *testing.T) {
	value := map[string]any{"a": []any{map[string]any{"b": "c"}}}
	for path, want := range map[string]any{"a[0].b": "c", "a[1].b": nil, "a[x]": nil, "a[0].b.c": nil, "x.y": nil} {
		if got := valueAt(value, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
