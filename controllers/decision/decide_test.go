// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// javaOptions sets JDK_JAVA_OPTIONS in a template.
func javaOptions(value string) testobjects.Change[corev1.PodTemplateSpec] {
	return container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: value}} })
}

// envFromConfigMap makes a container take its environment from a ConfigMap.
func envFromConfigMap(c *corev1.Container) {
	c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
}

// envFromSecret makes a container take its environment from a Secret.
func envFromSecret(c *corev1.Container) {
	c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "opts"}}}}
}

// withContainer is a fixture whose template's container is changed.
func withContainer(apply testobjects.Change[corev1.Container]) fixture {
	return fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", container(apply)))}
}

// creationFails is a Deployment whose controller cannot create pods.
func creationFails(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Message: "exceeded quota: shared, requested: limits.memory=2Gi, used: limits.memory=3Gi, limited: limits.memory=4Gi",
	}}
}

// wantNoChanges fails if a decision changes anything.
func wantNoChanges(t *testing.T, d *Decision) {
	t.Helper()
	if d.Injection != nil || d.Files != nil || d.Revision != "" || len(d.Resizes)+len(d.Restarts)+len(d.Refreshes) > 0 {
		t.Errorf("injection %+v, files %v, resizes %v, restarts %v, refreshes %v; want none", d.Injection, d.Files, d.Resizes, d.Restarts, d.Refreshes)
	}
}

func TestInjection(t *testing.T) {
	unchanged := func(*v1alpha1.PodInjectionSpec) {}
	ownOptions := func(value string) testobjects.Change[v1alpha1.PodInjectionSpec] {
		return func(s *v1alpha1.PodInjectionSpec) { s.OwnOptions = &value }
	}
	cases := map[string]struct {
		input      fixture
		configMaps map[string]*corev1.ConfigMap
		want       testobjects.Change[v1alpha1.PodInjectionSpec]
	}{
		"StatefulSet": {fixture{}, nil, unchanged},
		"Deployment": {
			fixture{workload: testobjects.Deployment(3, testobjects.PodTemplate("1Gi"))}, nil,
			func(s *v1alpha1.PodInjectionSpec) { s.Owner.Kind = v1alpha1.KindDeployment },
		},
		"JAVA_TOOL_OPTIONS": {
			fixture{app: testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OptionsVariable = v1alpha1.JavaToolOptions })}, nil,
			func(s *v1alpha1.PodInjectionSpec) {
				s.OptionsVariable = v1alpha1.JavaToolOptions
				s.Options = v1alpha1.VMOptions
			},
		},
		"ownOptions": {
			fixture{app: testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OwnOptions = new("-Xss2m") })}, nil, ownOptions("-Xss2m"),
		},
		"a ConfigMap of envFrom with the variable: a reference keeps its value": {
			fixture{inherited: new("-Xss2m")}, map[string]*corev1.ConfigMap{"env": {Data: map[string]string{"JDK_JAVA_OPTIONS": "-Xss2m"}}},
			ownOptions("$(JDK_JAVA_OPTIONS)"),
		},
		"a ConfigMap of envFrom with other variables: no value to keep": {
			withContainer(envFromConfigMap), map[string]*corev1.ConfigMap{"env": {Data: map[string]string{"PORT": "80"}}}, ownOptions(""),
		},
		"a missing ConfigMap of envFrom: no value to keep":                    {withContainer(envFromConfigMap), nil, ownOptions("")},
		"a Secret of envFrom, perhaps with the variable: nothing replaces it": {withContainer(envFromSecret), nil, unchanged},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, m := c.input.world(t)
			w.ConfigMaps = c.configMaps
			d := Decide(w, m)
			want := v1alpha1.PodInjectionSpec{
				Owner: v1alpha1.WorkloadOwner{Kind: v1alpha1.KindStatefulSet, Name: testobjects.App}, Container: testobjects.Container,
				OptionsVariable: v1alpha1.JDKJavaOptions, Options: v1alpha1.LauncherOptions,
				PlanConfigMap: "streamweir-plan-orders", PlanRevision: d.Revision,
			}
			c.want(&want)
			wantNoDiff(t, "injection", &want, d.Injection)
			if d.Revision == "" {
				t.Error("the plan has no revision")
			}
		})
	}
}

func TestDecideChangesNothing(t *testing.T) {
	group := groupOf(4, 4, 4)
	noLimit := container(func(c *corev1.Container) { c.Resources = testobjects.MemoryResources("1Gi", "") })
	contradicting := testobjects.PodTemplate("1Gi", javaOptions("-XX:+UseG1GC -XX:+UseSerialGC"))
	observe := func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve }
	noMode := func(app *v1alpha1.StreamApp) { app.Spec.Mode = "" }
	otherContainer := func(app *v1alpha1.StreamApp) { app.Spec.Container = "other" }
	cases := map[string]fixture{
		"in mode Observe":            {app: testobjects.StreamApp(testobjects.LimitsBetween("", "4Gi"), observe)},
		"in the default mode":        {app: testobjects.StreamApp(noMode)},
		"without a workload":         {workload: missing{}, group: group},
		"without the container":      {group: group, app: testobjects.StreamApp(otherContainer)},
		"without a memory limit":     {workload: testobjects.StatefulSet(3, testobjects.PodTemplate("", noLimit))},
		"for BestEffort pods":        {workload: testobjects.StatefulSet(3, testobjects.PodTemplate(""))},
		"with contradicting flags":   {workload: testobjects.StatefulSet(3, contradicting), group: group},
		"beside an older StreamApp":  {conflicting: "older", group: group},
		"with heavy tasks, observed": {app: testobjects.StreamApp(testobjects.LimitsBetween("", "4Gi"), observe), group: groupOf(40, 40, 40)},
	}
	for name, g := range cases {
		t.Run(name, func(t *testing.T) { wantNoChanges(t, g.decide(t)) })
	}
}

// TestLoweredTemplateWithoutTasks: a published plan is never for more than a new pod gets.
func TestLoweredTemplateWithoutTasks(t *testing.T) {
	g := fixture{group: groupOf(4, 4, 4)}.after(t)
	if limit := publishedLimit(g.plan); limit <= 900*mib {
		t.Fatalf("the published plan is for %s, want more than 900Mi", bytesText(limit))
	}
	g.group = nil
	g.groupErr = &assignment.Error{Class: assignment.ClassUnreachable}
	g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("900Mi"))
	if limit := publishedLimit(g.after(t).plan); limit > 900*mib {
		t.Errorf("the plan is for %s, and new pods get 900Mi", bytesText(limit))
	}
}

func TestFrozen(t *testing.T) {
	active := fixture{group: groupOf(4, 4, 4)}.after(t)
	with := func(g fixture, change func(*fixture)) fixture {
		change(&g)
		return g
	}
	kafkaFails := func(g *fixture) {
		g.group = nil
		g.groupErr = &assignment.Error{Class: assignment.ClassUnreachable}
	}
	kafkaFailsAndTemplateIsLowered := func(g *fixture) {
		kafkaFails(g)
		g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("900Mi"))
	}
	invalidConfig := func(g *fixture) {
		g.app = testobjects.StreamApp(func(app *v1alpha1.StreamApp) {
			app.Spec.Streams.Configs = []v1alpha1.Config{{Name: "buffered.records.per.partition", Value: "many"}}
		})
	}
	scaledToZero := func(g *fixture) {
		g.workload = testobjects.StatefulSet(0, testobjects.PodTemplate("1Gi"))
		g.pods = []*corev1.Pod{}
	}
	largeHeap := testobjects.PodTemplate("1Gi", javaOptions("-XX:MaxRAMPercentage=95"))
	heavy := fixture{group: groupOf(40, 40, 40), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("512Mi")), app: testobjects.StreamApp()}
	cases := map[string]struct {
		input fixture
		want  string
	}{
		"an active plan, and nothing wrong":     {active, ""},
		"tasks no longer known":                 {with(active, kafkaFails), v1alpha1.ReasonAssignmentUnknown},
		"tasks no longer known, lower template": {with(active, kafkaFailsAndTemplateIsLowered), ""},
		"tasks never known":                     {fixture{}, ""},
		"no source of tasks, second pass":       {fixture{}.after(t), ""},
		"an invalid value of a property":        {with(active, invalidConfig), v1alpha1.ReasonInvalidSettings},
		"maxLimit too small for the load of this moment": {
			with(heavy, func(g *fixture) {
				g.app = testobjects.StreamApp(testobjects.LimitsBetween("", "768Mi"))
				g.pods = testobjects.RunningPods(3, "512Mi")
			}), v1alpha1.ReasonInsufficientMemory,
		},
		"a given limit too small for the load of this moment": {
			with(heavy, func(g *fixture) { g.pods = testobjects.RunningPods(3, "512Mi") }), v1alpha1.ReasonInsufficientMemory,
		},
		"a given limit too small for the first pods": {heavy, v1alpha1.ReasonInsufficientMemory},
		"a given limit too small for any plan": {
			fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("64Mi")), app: testobjects.StreamApp(), pods: testobjects.RunningPods(3, "64Mi")},
			v1alpha1.ReasonInsufficientMemory,
		},
		"a heap with too large a share of any limit": {
			fixture{group: groupOf(4, 4, 4), workload: testobjects.StatefulSet(3, largeHeap), app: testobjects.StreamApp(testobjects.LimitsBetween("1Gi", ""))},
			v1alpha1.ReasonInsufficientMemory,
		},
		"scaled to zero": {with(active, scaledToZero), v1alpha1.ReasonNoPods},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := c.input.decide(t)
			if d.Frozen.Reason != c.want {
				t.Fatalf("frozen = %+v, want reason %q", d.Frozen, c.want)
			}
			if d.Frozen.Found() {
				wantNoChanges(t, d)
				if d.Frozen.Message == "" {
					t.Error("frozen without a message")
				}
			}
		})
	}
}

// TestFrozenAsLongAsTasksAreUnknown: the last plan stays for any number of passes, also where the reports are the only source.
func TestFrozenAsLongAsTasksAreUnknown(t *testing.T) {
	g := reported().after(t)
	g.reports = map[string]report.PodReport{}
	for pass := range 3 {
		d := g.decide(t)
		if d.Frozen.Reason != v1alpha1.ReasonAssignmentUnknown {
			t.Fatalf("pass %d without reports: frozen = %+v, want reason %s", pass+1, d.Frozen, v1alpha1.ReasonAssignmentUnknown)
		}
		g.app = g.app.DeepCopy()
		g.app.Status = d.status()
	}
}

func TestSecondPassChangesNothing(t *testing.T) {
	ownHeap := testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi", javaOptions("-Xmx512m")))
	cases := map[string]fixture{
		"even load":             {group: groupOf(4, 4, 4)},
		"one heavy pod":         {group: groupOf(10, 1, 1)},
		"the application's own": {group: groupOf(4, 4, 4), workload: ownHeap, pods: testobjects.RunningPods(3, "2Gi")},
		"no source of tasks":    {},
		"agents that report":    reported(),
	}
	for name, g := range cases {
		t.Run(name, func(t *testing.T) {
			first, second := g.decide(t), g.after(t).decide(t)
			wantNoDiff(t, "injection", first.Injection, second.Injection)
			wantNoDiff(t, "files", first.Files, second.Files)
		})
	}
}

// publishedMaxRAM returns the value of -XX:MaxRAM in the options of the plan; empty without one.
func publishedMaxRAM(d *Decision) string {
	_, rest, _ := strings.Cut(d.Files[planfile.OptionsKey], "-XX:MaxRAM=")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func TestPlanFollowsTemplateWithoutSource(t *testing.T) {
	g := fixture{app: testobjects.StreamApp()}.after(t)
	g.workload = testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi"))
	g.pods = testobjects.RunningPods(3, "2Gi")
	if got := publishedMaxRAM(g.decide(t)); got != "2147483648" {
		t.Errorf("MaxRAM = %q, want the new limit of 2Gi", got)
	}
}

// TestPlanIsForSmallestLimit: the mounted plan is safe for every reader.
func TestPlanIsForSmallestLimit(t *testing.T) {
	pods := func(limits ...string) []*corev1.Pod {
		var all []*corev1.Pod
		for i, limit := range limits {
			all = append(all, testobjects.RunningPod(i, limit))
		}
		return all
	}
	change := func(pods []*corev1.Pod, ordinal int, apply testobjects.Change[corev1.Pod]) []*corev1.Pod {
		apply(pods[ordinal])
		return pods
	}
	requested := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = testobjects.MemoryResources("1Gi", "2Gi") }
	pending := func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	notInjected := testobjects.NotInjected
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	const (
		mi1536 = "1610612736"
		gi2    = "2147483648"
	)
	cases := map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"all have the template's limit":               {pods("2Gi", "2Gi", "2Gi"), gi2},
		"one has less":                                {pods("2Gi", "1536Mi", "2Gi"), mi1536},
		"one has more":                                {pods("2Gi", "3Gi", "2Gi"), gi2},
		"one has less, and its resize is in progress": {change(pods("1536Mi", "2Gi", "2Gi"), 0, requested), mi1536},
		"one has less and is pending":                 {change(pods("1536Mi", "2Gi", "2Gi"), 0, pending), mi1536},
		"one has less and is not injected":            {change(pods("1536Mi", "2Gi", "2Gi"), 0, notInjected), gi2},
		"one has less and has failed":                 {change(pods("2Gi", "2Gi", "2Gi", "1536Mi"), 3, failed), gi2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := fixture{group: groupOf(4, 4, 4), workload: testobjects.StatefulSet(3, testobjects.PodTemplate("2Gi")), pods: c.pods, app: testobjects.StreamApp()}
			if got := publishedMaxRAM(g.decide(t)); got != c.want {
				t.Errorf("MaxRAM = %s, want %s", got, c.want)
			}
		})
	}
}

func TestRefreshesOfPodsWithoutAgent(t *testing.T) {
	g := fixture{group: groupOf(4, 4, 4)}.after(t)
	revision := g.injection.Spec.PlanRevision
	notified := func(p *corev1.Pod) { p.Annotations[v1alpha1.PublishedAnnotation] = revision }
	notInjected := testobjects.NotInjected
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	g.pods = []*corev1.Pod{
		testobjects.RunningPod(0, "1Gi", notified), testobjects.RunningPod(1, "1Gi"),
		testobjects.RunningPod(2, "1Gi", notInjected), testobjects.RunningPod(3, "1Gi", failed),
	}
	d := g.decide(t)
	if d.Revision != revision {
		t.Fatalf("revision = %q, want %q as before", d.Revision, revision)
	}
	wantNoDiff(t, "refreshes", []PodRefresh{{"orders-1", Refresh{Count: 1, At: testobjects.Now}}}, d.Refreshes)
}

func TestNotInjectable(t *testing.T) {
	mount := func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/etc/streamweir"}}
	}
	volume := func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{{Name: v1alpha1.PlanVolume}} }
	secretWithOwnOptions := withContainer(envFromSecret)
	secretWithOwnOptions.app = testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OwnOptions = new("$(JDK_JAVA_OPTIONS)") })
	optionsFile := withContainer(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-XX:VMOptionsFile=/my/file"}}
	})
	launcherOptionsFile := withContainer(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: "-XX:VMOptionsFile=/my/file"}}
	})
	optionsFile.app = testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OptionsVariable = v1alpha1.JavaToolOptions })
	withOptions := func(variable, value string, args ...string) fixture {
		g := withContainer(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: variable, Value: value}}
			c.Args = args
		})
		g.agent = true
		return g
	}
	withoutAgent := withOptions("JDK_JAVA_OPTIONS", "-XX:AOTMode=on")
	withoutAgent.agent = false
	const aot = "-XX:AOTMode=on"
	cases := map[string]struct {
		input   fixture
		reason  string
		message string // a part of it
	}{
		"injectable":                            {fixture{}, "", ""},
		"AOT cache required, JDK_JAVA_OPTIONS":  {withOptions("JDK_JAVA_OPTIONS", "-XX:AOTCache=/app.aot -XX:AOTMode=on"), v1alpha1.ReasonConflict, aot},
		"AOT cache required, JAVA_TOOL_OPTIONS": {withOptions("JAVA_TOOL_OPTIONS", "-XX:AOTMode=on -Xss1m"), v1alpha1.ReasonConflict, aot},
		"AOT cache required, _JAVA_OPTIONS":     {withOptions("_JAVA_OPTIONS", aot), v1alpha1.ReasonConflict, aot},
		"AOT cache required, command line":      {withOptions("A", "", "sh", "-c", "exec java -XX:AOTMode=on -jar app.jar"), v1alpha1.ReasonConflict, aot},
		"AOT cache required, variable":          {withOptions("A", aot, "java", "$(A)", "-jar", "app.jar"), v1alpha1.ReasonConflict, aot},
		"AOT cache not required in the end":     {withOptions("JDK_JAVA_OPTIONS", aot, "java", "-XX:AOTMode=auto"), "", ""},
		"AOT cache, used if possible":           {withOptions("JDK_JAVA_OPTIONS", "-XX:AOTCache=/app.aot"), "", ""},
		"AOT cache required, without the agent": {withoutAgent, "", ""},
		"valueFrom": {withContainer(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", ValueFrom: &corev1.EnvVarSource{}}}
		}), v1alpha1.ReasonOptionsNotVisible, "valueFrom"},
		"Secret":                 {withContainer(envFromSecret), v1alpha1.ReasonOptionsNotVisible, "jvm.ownOptions"},
		"Secret with ownOptions": {secretWithOwnOptions, "", ""},
		"Secret, replaced by env": {withContainer(func(c *corev1.Container) {
			envFromSecret(c)
			c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: "-Xss1m"}}
		}), "", ""},
		"mount at the plan's path": {withContainer(mount), v1alpha1.ReasonConflict, "/etc/streamweir"},
		"volume with the plan's name": {
			fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate("1Gi", volume))}, v1alpha1.ReasonConflict, v1alpha1.PlanVolume,
		},
		"options file for the launcher: it accepts several": {launcherOptionsFile, "", ""},
		"two options files": {optionsFile, v1alpha1.ReasonConflict, "options file"},
		"BestEffort":        {fixture{workload: testobjects.StatefulSet(3, testobjects.PodTemplate(""))}, v1alpha1.ReasonBestEffort, "memory limit"},
		"no memory limit": {
			withContainer(func(c *corev1.Container) { c.Resources = testobjects.MemoryResources("1Gi", "") }), v1alpha1.ReasonNoMemoryLimit, "memory limit",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.input.facts(t).NotInjectable
			if got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
				t.Errorf("problem = %+v, want reason %q and a message with %q", got, c.reason, c.message)
			}
		})
	}
}
