// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"streamweir.dev/streamweir/controllers/whatif"
)

const deploymentManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: payments}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app}]}}}
`

const serviceManifest = `
apiVersion: v1
kind: Service
metadata: {name: payments}
`

const appManifest = `
apiVersion: streamweir.dev/v1alpha1
kind: StreamApp
metadata: {name: pay}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: payments}}
`

// appWith returns the manifest of a StreamApp with another field in its spec.
func appWith(field string) string {
	return strings.Replace(appManifest, "spec: {", "spec: {"+field+", ", 1)
}

func TestParseManifests(t *testing.T) {
	scaled := "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: x}\n"
	kruise := "apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nmetadata: {name: x}\n"
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(appManifest), "\n", "\n  ")
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"several documents": {deploymentManifest + "---" + appManifest, []string{"*v1.Deployment payments", "*v1alpha1.StreamApp pay"}},
		"other kinds":       {serviceManifest + "---\n" + scaled + "---\n" + kruise + "---" + appManifest, []string{"*v1alpha1.StreamApp pay"}},
		"empty documents":   {"---\n# nothing\n---" + appManifest + "---\n", []string{"*v1alpha1.StreamApp pay"}},
		"a list":            {list, []string{"*v1alpha1.StreamApp pay"}},
		"JSON":              {`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}`, []string{"*v1.Node n"}},
		"nothing":           {"", nil},
		"a comment of helm": {"---\n# Source: chart/templates/x.yaml" + deploymentManifest, []string{"*v1.Deployment payments"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := parseManifests([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, fmt.Sprintf("%T %s", object, object.GetName()))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidManifests(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a template":         {appManifest + "---\nmetadata:\n  {{- with .Values }}\n", "document 2: not valid YAML; render templates first"},
		"a mistyped field":   {strings.Replace(appManifest, "targetRef", "targetref", 1), `unknown field "spec.targetref"`},
		"apps/v1beta2":       {strings.Replace(deploymentManifest, "apps/v1", "apps/v1beta2", 1), "Deployment of apps/v1beta2: Kubernetes serves it as apps/v1 only"},
		"apps/v1beta1":       {strings.NewReplacer("apps/v1", "apps/v1beta1", "Deployment", "StatefulSet").Replace(deploymentManifest), "StatefulSet of apps/v1beta1: "},
		"extensions/v1beta1": {strings.Replace(deploymentManifest, "apps/v1", "extensions/v1beta1", 1), "`apiVersion` must be apps/v1"},
		"an invalid mode":    {appWith("mode: Force"), `StreamApp pay is invalid: spec.mode: Unsupported value: "Force": supported values: "Observe", "Hold", "Enforce"`},
		"an empty object":    {appWith("streams: {}"), "spec.streams: Invalid value: "},
		"a zero":             {appWith("streams: {threads: 0}"), "spec.streams.threads: Invalid value: 0: should be greater than or equal to 1"},
		"a rule of fields": {
			appWith("memory: {minLimit: 2Gi, maxLimit: 1Gi}"),
			`spec.memory: Invalid value: {"maxLimit":"1Gi","minLimit":"2Gi"}: minLimit must not be larger than maxLimit`,
		},
		"a credential": {
			appWith("streams: {configs: [{name: a, value: b}, {name: sasl.jaas.config, value: secret}]}"),
			"document 1: StreamApp pay is invalid: spec.streams.configs[1]: Invalid value: configs must not contain credentials",
		},
		"a StreamApp without a name": {strings.Replace(appManifest, "name: pay", "generateName: pay", 1), "set `metadata.name`"},
		"a StreamApp with a long name": {
			strings.Replace(appManifest, "name: pay", "name: "+strings.Repeat("a", 64), 1), "must have at most 63 characters",
		},
		"no kind":         {"metadata: {name: x}", "document 1"},
		"a huge number":   {strings.Replace(deploymentManifest, "selector:", "replicas: 1e99, selector:", 1), "replicas"},
		"an unknown unit": {strings.Replace(deploymentManifest, "{name: app}", "{name: app, resources: {limits: {memory: 2GB}}}", 1), "quantities must match"},
		"an invalid item": {"apiVersion: v1\nkind: List\nitems: [{apiVersion: apps/v1, kind: Deployment, spec: 7}]", "item 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseManifests([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestPick(t *testing.T) {
	other := strings.ReplaceAll(deploymentManifest, "payments", "orders")
	for name, tc := range map[string]struct{ text, name, want string }{
		"the only StreamApp":              {appManifest + "---" + deploymentManifest, "", "pay of payments"},
		"the only workload":               {deploymentManifest, "", "payments of payments"},
		"a StreamApp by name":             {appManifest + "---" + strings.Replace(appManifest, "name: pay}", "name: two}", 1), "two", "two of payments"},
		"a workload by name":              {deploymentManifest + "---" + other, "orders", "orders of orders"},
		"a workload by kind and name":     {appManifest + "---" + deploymentManifest + "---" + other, "deploy/orders", "orders of orders"},
		"a workload beside the StreamApp": {appManifest + "---" + deploymentManifest + "---" + other, "orders", "orders of orders"},
		"none":                            {serviceManifest, "", "the files have no StreamApp"},
		"none of the name":                {appManifest, "x", "no StreamApp, StatefulSet or Deployment x"},
		"several":                         {deploymentManifest + "---" + other, "", "name one of shop/payments, shop/orders"},
		"another kind":                    {deploymentManifest, "job/payments", "statefulset/NAME or deployment/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "m.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := &source{files: []string{file}, namespace: "shop"}
			app, _, err := s.offline(nil, tc.name)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = app.Name + " of " + app.Spec.TargetRef.Name
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzManifests: for every input there must be an answer or an error, and no panic.
func FuzzManifests(f *testing.F) {
	for _, file := range []string{"orders.yaml", "raw-spans-grouper.yaml", "streams-app.yaml", "timeseries-aggregator.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(deploymentManifest + "---" + appManifest)
	topology, err := os.ReadFile(filepath.Join("testdata", "orders.topology.txt"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &source{files: []string{"-"}}
		app, objects, err := s.offline(strings.NewReader(text), "")
		if err != nil {
			return
		}
		answer, err := whatif.Explain(whatif.Question{
			App: app, Objects: objects, Topology: string(topology), Partitions: map[string]int32{"orders": 3},
		})
		if err == nil && (answer.Limit == nil || answer.Verdict == "") {
			t.Errorf("neither an answer nor an error for %q: %+v", text, answer)
		}
	})
}
