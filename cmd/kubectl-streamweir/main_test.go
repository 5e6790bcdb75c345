// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/controllers/decision"
	"streamweir.dev/streamweir/controllers/whatif"
	"streamweir.dev/streamweir/internal/golden"
)

// call runs a command line in the folder of the test data, without a cluster.
func call(t *testing.T, line string, in string) (code int, out, errOut string) {
	t.Helper()
	t.Chdir("testdata")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), strings.Fields(line), strings.NewReader(in), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

const ordersTopology = " --topology orders.topology.txt --partitions orders=12,counts=12"

func TestExamplesInREADME(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"explain -f raw-spans-grouper.yaml --properties raw-spans-grouper.properties": {
			"StatefulSet default/raw-spans-grouper: 2 pods, 8 tasks", "4 x 128 MiB: producers x buffer.memory", "pinned", "MaxDirectMemorySize is 128 MiB",
		},
		"explain -f streams-app.yaml --topology streams-app.topology.txt --partitions input=4,output=4": {
			"Deployment default/streams-app: 1 pod, 4 tasks", "A new pod gets 2G ", "its name does not show whether it has windows",
		},
		"explain -f timeseries-aggregator.yaml --properties timeseries-aggregator.properties": {
			"Deployment haystack-apps/timeseries-aggregator: 1 pod, 8 tasks", "heap of the JVM              1024 MiB",
		},
	} {
		t.Run(strings.Fields(line)[2], func(t *testing.T) {
			if !strings.Contains(string(readme), "\nkubectl streamweir "+line+"\n") {
				t.Errorf("the README does not show %q", line)
			}
			code, out, errOut := call(t, line, "")
			if code != exitDoesNotFit || errOut != "" {
				t.Errorf("exit code %d, %s", code, errOut)
			}
			for _, text := range want {
				if !strings.Contains(out, text) {
					t.Errorf("no %q in\n%s", text, out)
				}
			}
		})
	}
}

// TestDiffExampleInREADME has its own exit code: the example shows differences.
func TestDiffExampleInREADME(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := "diff -f orders.yaml --mode Enforce" + ordersTopology
	if !strings.Contains(string(readme), "\nkubectl streamweir "+line+"\n") {
		t.Errorf("the README does not show %q", line)
	}
	code, out, errOut := call(t, line, "")
	if code != exitDiffers || errOut != "" {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	for _, text := range []string{
		"StatefulSet default/orders (StreamApp orders), mode Enforce instead of Observe: ", "-XX:MaxRAM ", "rocksdb.cache.bytes", "injected",
		"CascadeSafe is False (WouldCascade)",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
	if strings.Contains(out, "placeholder") || !strings.HasSuffix(out, "\nNothing was written.\n") {
		t.Errorf("the output has the name of an agent, or another last line:\n%s", out)
	}
}

// TestDiffShowsOthersAfterAnError: one application that cannot be compared hides no other one.
func TestDiffShowsOthersAfterAnError(t *testing.T) {
	s := &source{files: []string{filepath.Join("testdata", "orders.yaml")}}
	question, err := s.objects(t.Context(), strings.NewReader(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	invalid := question
	invalid.App = question.App.DeepCopy()
	invalid.App.Name = "refunds"
	invalid.App.Spec.TargetRef.Kind = "Job"
	differences, err := s.compare(t.Context(), []whatif.Question{invalid, question}, v1alpha1.ModeEnforce)
	if len(differences) != 1 || differences[0].StreamApp != question.App.Name {
		t.Errorf("differences %+v, want those of %s", differences, question.App.Name)
	}
	if err == nil || !strings.Contains(err.Error(), "/refunds: ") || !strings.Contains(err.Error(), "Job") {
		t.Errorf("error %v, want one for refunds", err)
	}
}

func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		line, want string
		code       int
	}{
		"fits":                  {"simulate -f orders.yaml --limit 4Gi" + ordersTopology, "It fits: it tolerates ", exitFits},
		"does not fit":          {"explain -f orders.yaml --properties orders.properties" + ordersTopology, "raise the limit of container app to", exitDoesNotFit},
		"fits if bounded":       {"render -f orders.yaml" + ordersTopology, "new LRUCache(", exitFits},
		"does not fit, bounded": {"render -f orders.yaml --properties tight.properties" + ordersTopology, "it does not fit: ", exitDoesNotFit},
		"no such file":          {"explain -f none.yaml", "none.yaml", exitNoAnswer},
		"no tasks":              {"explain -f orders.yaml", "the application's tasks are unknown", exitNoAnswer},
		"no cluster":            {"explain orders", "or give manifests with -f", exitNoAnswer},
		"no application":        {"explain", "an application is required", exitNoAnswer},
		"no change":             {"simulate -f orders.yaml", "no change is given", exitNoAnswer},
		"an unknown unit":       {"simulate -f orders.yaml --limit 2GB", "such as 2Gi", exitNoAnswer},
		"a negative number":     {"simulate -f orders.yaml --pod-failures -1", "--pod-failures=-1: it must be at least 0", exitNoAnswer},
		"a negative factor":     {"simulate -f orders.yaml --partitions-times -2", "it must be larger than 0", exitNoAnswer},
		"zero partitions":       {"explain -f orders.yaml --topology orders.topology.txt --partitions orders=0", "topic orders has 0 partitions", exitNoAnswer},
		"no topology":           {"explain -f orders.yaml --partitions orders=1", "--partitions requires --topology", exitNoAnswer},
		"an unknown format":     {"explain -f orders.yaml -o xml", "it must be table, json or yaml", exitNoAnswer},
		"an unknown part":       {"render -f orders.yaml --part all", "it must be one of patch, jvm, properties, setter", exitNoAnswer},
		"an invalid class":      {"render -f orders.yaml --class 1a.B", "the name of a Java class", exitNoAnswer},
		"two sources":           {"explain -f orders.yaml --topology orders.topology.txt --bootstrap-servers a:1", "none of the others can be", exitNoAnswer},
		"differences":           {"diff -f orders.yaml --mode Enforce" + ordersTopology, "Nothing was written.", exitDiffers},
		"no differences":        {"diff -f orders.yaml" + ordersTopology, "mode Observe: no differences.", exitFits},
		"an unknown mode":       {"diff -f orders.yaml --mode Force", `supported values: "Observe", "Hold", "Enforce"`, exitNoAnswer},
		"a name and all":        {"diff orders -A", "omit the name", exitNoAnswer},
		"no cluster for diff":   {"diff", "finding the cluster", exitNoAnswer},
		"an unknown command":    {"guess", "unknown command", exitNoAnswer},
		"an invalid topology":   {"explain -f orders.yaml --topology orders.yaml --partitions a=1", "topology: line 1", exitNoAnswer},
		"no configuration file": {"explain -f orders.yaml --operator-config none.yaml", "--operator-config: ", exitNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := call(t, tc.line, "")
			if code != tc.code || !strings.Contains(out+errOut, tc.want) {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", code, tc.code, tc.want, out, errOut)
			}
		})
	}
}

func TestJSONAndYAMLAreEqual(t *testing.T) {
	var asJSON, asYAML whatif.Answer
	_, out, _ := call(t, "explain -o json -f -"+ordersTopology, read(t, "orders.yaml"))
	if err := json.Unmarshal([]byte(out), &asJSON); err != nil {
		t.Fatal(err)
	}
	t.Chdir("..")
	_, out, _ = call(t, "explain -o yaml -f orders.yaml"+ordersTopology, "")
	if err := yaml.UnmarshalStrict([]byte(out), &asYAML); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON, asYAML); diff != "" {
		t.Error(diff)
	}
	if asJSON.Tasks != 24 || asJSON.Verdict != whatif.VerdictDoesNotFit || asJSON.RequiredLimit.Cmp(*asJSON.Limit) <= 0 || len(asJSON.Lines) == 0 {
		t.Errorf("%+v, want 24 tasks and a required limit above the limit", asJSON)
	}
}

func TestSimulationHasBothStates(t *testing.T) {
	var both simulation
	_, out, _ := call(t, "simulate -o json --replicas 6 -f orders.yaml"+ordersTopology, "")
	if err := json.Unmarshal([]byte(out), &both); err != nil {
		t.Fatal(err)
	}
	if both.Now.Instances != 3 || both.Then.Instances != 6 || both.Then.RequiredLimit.Cmp(*both.Now.RequiredLimit) >= 0 {
		t.Errorf("now %d pods require %s, then %d require %s", both.Now.Instances, both.Now.RequiredLimit, both.Then.Instances, both.Then.RequiredLimit)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answerForGolden has a value in every field. The numbers are not from a plan.
func answerForGolden() *whatif.Answer {
	q := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	return &whatif.Answer{
		Namespace: "shop", StreamApp: "orders", WorkloadKind: v1alpha1.KindStatefulSet, Workload: "orders", Container: "app",
		Verdict: whatif.VerdictDoesNotFit, Instances: 3, Tasks: 24, PodFailuresToTolerate: new(1), PodFailuresTolerated: 0,
		Limit: q("2Gi"), RequiredLimit: q("2400Mi"), Heap: q("512Mi"), Expected: q("2091909392"), ColdStart: q("3Gi"),
		Load: decision.Load{Threads: 2, Active: 12, Total: 14},
		Lines: []v1alpha1.Line{
			{Pool: v1alpha1.PoolNative, Name: "memtables", Bound: q("612Mi"), Expected: q("600Mi"), Count: new(int64(12)), Source: v1alpha1.SourceDefault},
			{Pool: v1alpha1.PoolHeap, Name: "producer", Bound: q("64Mi"), Expected: q("960Ki"), Source: v1alpha1.SourceApp},
		},
		Missing: []string{"the limit is too small"}, Remedies: []string{"raise it"}, Warnings: []string{"beware"},
		Pods:  []whatif.Pod{{Name: "orders-0", Tasks: new(int32(8)), Limit: q("2Gi"), RequiredLimit: q("2400Mi")}, {Name: "orders-1"}},
		Facts: []decision.ResolvedFact{{Name: "brokers", Value: "3", Source: v1alpha1.SourceAssumed, OverrideWith: "`--bootstrap-servers`"}},
		Start: whatif.Start{
			Plan: planfile.Plan{
				Options: []string{"-XX:MaxRAM=2147483648", "-XX:MaxRAMPercentage=25.0000"},
				RocksDB: planfile.RocksDB{Cache: 251658240, WriteBufferManager: 104857600, ArenaBlock: 327680, WriteBuffer: 10485760},
				Streams: []planfile.Config{{Name: "main.consumer.fetch.max.bytes", Value: 8388608}},
			},
			OptionsVariable: "JDK_JAVA_OPTIONS", OwnOptions: "-Dmine=1", LimitArenas: true, Request: q("2Gi"),
		},
		Assumptions: []string{"topology, line 12: so many partitions"},
	}
}

// differenceForGolden has a value in every field but Frozen. The numbers are not from a plan.
func differenceForGolden() *whatif.Difference {
	return &whatif.Difference{
		Namespace: "shop", StreamApp: "orders", WorkloadKind: v1alpha1.KindStatefulSet, Workload: "orders",
		Mode: v1alpha1.ModeObserve, NewMode: v1alpha1.ModeEnforce,
		Changes: []whatif.FieldChange{
			{Object: "new pods", Field: "memory limit", Now: "2Gi", Then: "3Gi"},
			{Object: "PodInjection orders", Field: "agent", Then: "injected"},
			{Object: "ConfigMap streamweir-plan-orders", Field: "-XX:MaxRAM", Now: "2147483648"},
		},
		PodFailuresTolerated: new(-1), PodFailuresToleratedAfter: new(1), Capped: "`maxLimit` is 3Gi",
		Conditions: []string{"Applied is False (RestartRequired): restart the pods"}, Notes: []string{"the reports are not read"},
	}
}

func TestPages(t *testing.T) {
	answer := answerForGolden()
	status := &page{}
	status.answer(answer)
	golden.Compare(t, "status.golden", status.String())

	unknown := answerForGolden()
	unknown.Verdict, unknown.RequiredLimit, unknown.Lines, unknown.Pods, unknown.Text = whatif.VerdictUnknown, nil, nil, nil, "lines of the planner\n"
	comparison := &page{}
	comparison.simulation(answer, unknown)
	golden.Compare(t, "simulation.golden", comparison.String())

	difference := &page{}
	difference.differences([]*whatif.Difference{differenceForGolden(), {
		Namespace: "shop", StreamApp: "refunds", WorkloadKind: v1alpha1.KindDeployment, Workload: "refunds",
		Mode: v1alpha1.ModeEnforce, NewMode: v1alpha1.ModeEnforce, Frozen: "the tasks are unknown; the last plan stays active",
	}})
	golden.Compare(t, "diff.golden", difference.String())

	all, err := render(answer, "com.example.BoundedRocksDB", "")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "render.golden", all)
}

func TestPartsAreInTheWhole(t *testing.T) {
	all, err := render(answerForGolden(), "Bounded", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		text, err := render(answerForGolden(), "Bounded", part)
		if err != nil || text == "" || !strings.Contains(all, text) {
			t.Errorf("part %s: %q, %v", part, text, err)
		}
	}
}

func TestToleratedText(t *testing.T) {
	for tolerated, want := range map[int]string{-1: "does not fit now", 0: "0", 2: "2"} {
		if got := toleratedText(&whatif.Answer{PodFailuresTolerated: tolerated}); got != want {
			t.Errorf("%d: %q, want %q", tolerated, got, want)
		}
	}
}

func TestVerdictText(t *testing.T) {
	for want, answer := range map[string]whatif.Answer{
		"It fits: it tolerates 1 pod failure":                         {Verdict: whatif.VerdictFits, PodFailuresTolerated: 1},
		"It fits: it tolerates 2 pod failures (required: 1)":          {Verdict: whatif.VerdictFits, PodFailuresTolerated: 2, PodFailuresToTolerate: new(1)},
		"It does not fit: it tolerates no pod failures (required: 1)": {Verdict: whatif.VerdictDoesNotFit, PodFailuresToTolerate: new(1)},
		"It does not fit, even without a pod failure":                 {Verdict: whatif.VerdictDoesNotFit, PodFailuresTolerated: -1},
		"It is not yet known whether it fits":                         {Verdict: whatif.VerdictUnknown},
		"It fits":                                                     {Verdict: whatif.VerdictFits, Text: "the plan of a cold start"},
	} {
		if got := verdictText(&answer); got != want {
			t.Errorf("%+v: %q, want %q", answer, got, want)
		}
	}
}
