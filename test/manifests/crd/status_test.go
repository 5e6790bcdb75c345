// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/config/crd"
)

// maxStatus is the largest acceptable size of a status, so that many StreamApps can be watched.
const maxStatus = 32 << 10

// fullStatus builds the status of an application with 500 pods, with every list and every message at its maximum.
func fullStatus() v1alpha1.StreamAppStatus {
	amount := new(resource.MustParse("1717986918"))
	status := v1alpha1.StreamAppStatus{
		ObservedGeneration: 12, Mode: v1alpha1.ModeEnforce, Pods: new(int32(500)), UnavailablePods: new(int32(1)),
		PodsUnavailableSinceTime: &metav1.Time{}, Tasks: new(int32(10000)), Limit: amount, RequiredLimit: amount, Expected: amount,
		PodFailuresTolerated: new(int32(2)), PlanRevision: strings.Repeat("0", 64), Heap: amount, DivergentPodsOmitted: new(int32(450)),
		BoundedPods: new(int32(450)), Measured: v1alpha1.MeasuredRegions{
			ImageID: imageID(0), Metaspace: amount, CodeCache: amount, ApplicationHeap: amount, AverageRecord: amount, Age: v1alpha1.ProcessWarmedUp,
		},
	}
	for i := range v1alpha1.MaxImages {
		status.Images = append(status.Images, v1alpha1.ImageStatus{
			ImageID: imageID(i), Image: "registry.example/shop/orders:2026-11-30", State: v1alpha1.ImageProven, SinceTime: &metav1.Time{},
		})
	}
	for _, condition := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionAssignmentKnown, v1alpha1.ConditionFits,
		v1alpha1.ConditionCascadeSafe, v1alpha1.ConditionApplied, v1alpha1.ConditionCompatible,
	} {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPodCreationRefused,
			Message: strings.Repeat("m", v1alpha1.MaxConditionText),
		})
	}
	for i := range v1alpha1.MaxLines {
		status.Lines = append(status.Lines, v1alpha1.Line{
			Pool: v1alpha1.PoolNative, Name: fmt.Sprintf("uncommitted-native-%02d", i), Bound: amount, Expected: amount,
			Count: new(int64(123456)), Source: v1alpha1.SourceMeasured,
		})
	}
	for i := range v1alpha1.MaxSettings {
		status.Settings = append(status.Settings, v1alpha1.Setting{
			Name: fmt.Sprintf("restore.consumer.max.partition.fetch.bytes.%02d", i), Value: "9223372036854775807", Source: v1alpha1.SourceDefault,
		})
	}
	for i := range v1alpha1.MaxDivergentPods {
		status.DivergentPods = append(status.DivergentPods, v1alpha1.PodStatus{
			Name: fmt.Sprintf("%s-%03d", strings.Repeat("p", 59), i), Limit: amount, RequiredLimit: amount, Tasks: new(int32(100)),
			Resize: v1alpha1.ResizeInfeasible, Message: strings.Repeat("m", v1alpha1.MaxText),
		})
	}
	for i := range v1alpha1.MaxWarnings {
		status.Warnings = append(status.Warnings, fmt.Sprintf("%02d%s", i, strings.Repeat("w", v1alpha1.MaxText-2)))
	}
	return status
}

func imageID(i int) string { return fmt.Sprintf("registry.example/shop/orders@sha256:%064d", i) }

func streamAppWithStatus(t *testing.T, status v1alpha1.StreamAppStatus) map[string]any {
	t.Helper()
	app := &v1alpha1.StreamApp{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "StreamApp"},
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
		Spec: v1alpha1.StreamAppSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: v1alpha1.KindStatefulSet, Name: "orders"},
		},
		Status: status,
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestStatusOfALargeApplicationIsValidAndSmall(t *testing.T) {
	status := fullStatus()
	content, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > maxStatus {
		t.Errorf("a full status has %d bytes, want at most %d", len(content), maxStatus)
	}
	object := streamAppWithStatus(t, status)
	// Conditions need times, which a controller would set.
	for _, condition := range object["status"].(map[string]any)["conditions"].([]any) {
		condition.(map[string]any)["lastTransitionTime"] = "2026-11-30T00:00:00Z"
	}
	object["status"].(map[string]any)["podsUnavailableSinceTime"] = "2026-11-30T00:00:00Z"
	for _, image := range object["status"].(map[string]any)["images"].([]any) {
		image.(map[string]any)["sinceTime"] = "2026-11-30T00:00:00Z"
	}
	if errors := loadSchema(t, crd.StreamApps).Validate(object, nil); len(errors) > 0 {
		t.Errorf("got %v, want a valid status", errors.ToAggregate())
	}
}

func TestCapsOfStatusAreThoseOfTheSchema(t *testing.T) {
	s := loadSchema(t, crd.StreamApps)
	for name, grow := range map[string]func(*v1alpha1.StreamAppStatus){
		"lines": func(s *v1alpha1.StreamAppStatus) {
			s.Lines = append(s.Lines, v1alpha1.Line{Pool: v1alpha1.PoolHeap, Name: "more"})
		},
		"settings": func(s *v1alpha1.StreamAppStatus) { s.Settings = append(s.Settings, v1alpha1.Setting{Name: "more"}) },
		"pods that differ": func(s *v1alpha1.StreamAppStatus) {
			s.DivergentPods = append(s.DivergentPods, v1alpha1.PodStatus{Name: "more"})
		},
		"images": func(s *v1alpha1.StreamAppStatus) {
			s.Images = append(s.Images, v1alpha1.ImageStatus{ImageID: "more", State: v1alpha1.ImageStarted})
		},
		"warnings":         func(s *v1alpha1.StreamAppStatus) { s.Warnings = append(s.Warnings, "more") },
		"text of warnings": func(s *v1alpha1.StreamAppStatus) { s.Warnings[0] += "m" },
		"text about a pod": func(s *v1alpha1.StreamAppStatus) {
			s.DivergentPods[0].Message = strings.Repeat("m", v1alpha1.MaxText+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := fullStatus()
			status.Conditions, status.PodsUnavailableSinceTime = nil, nil
			for i := range status.Images {
				status.Images[i].SinceTime = nil
			}
			if errors := s.Validate(streamAppWithStatus(t, status), nil); len(errors) > 0 {
				t.Fatalf("at the cap: got %v, want no error", errors.ToAggregate())
			}
			grow(&status)
			errors := s.Validate(streamAppWithStatus(t, status), nil)
			checkRefused(t, name, errors, "Too")
		})
	}
}

func TestSamples(t *testing.T) {
	s := loadSchema(t, crd.StreamApps)
	files, err := filepath.Glob(filepath.Join(manifest(t, "samples"), "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		samples++
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			object := parse(t, string(content))
			if errors := s.Validate(object, nil); len(errors) > 0 {
				t.Errorf("got %v, want no error", errors.ToAggregate())
			}
			// Decoding and encoding must reproduce the file: types and schema agree.
			app := &v1alpha1.StreamApp{}
			if err := yaml.UnmarshalStrict(content, app); err != nil {
				t.Fatal(err)
			}
			again, err := yaml.Marshal(app)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object, parse(t, string(again))); diff != "" {
				t.Errorf("read and written again (-file +again):\n%s", diff)
			}
		})
	}
	if samples != 4 {
		t.Errorf("%d samples, want 4", samples)
	}
}

// The full sample shows every field, so that it serves as a reference.
func TestFullSampleShowsEveryField(t *testing.T) {
	sample := map[string]any{}
	readYAML(t, manifest(t, "samples", "full.yaml"), &sample)
	spec := loadSchema(t, crd.StreamApps).Structural.Properties["spec"]
	shown := fieldsOf(sample["spec"])
	for path := range schemaFields("", &spec) {
		// A spec can contain only one of the two ways to select a Kafka cluster.
		if !shown[path] && path != ".kafka.cluster" {
			t.Errorf("config/samples/full.yaml does not show spec%s", path)
		}
	}
}
