// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// after is the world after a pass whose writes all went well, and whose limits the kubelets have in force.
func after(t *testing.T, g given) given {
	t.Helper()
	p := passOf(t, g)
	if p.want.injection == nil {
		t.Fatalf("nothing is injected: held %v, blocked %v", p.want.held, p.want.blocked)
	}
	g.plan = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: planConfigMapName(testApp), OwnerReferences: []metav1.OwnerReference{{UID: "workload-uid"}}},
		Data:       maps.Clone(p.want.planData),
	}
	g.injection = &v1alpha1.PodInjection{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: testApp, CreationTimestamp: metav1.NewTime(testNow.Add(-2 * time.Hour)),
			OwnerReferences: []metav1.OwnerReference{{UID: "app-uid"}},
		},
		Spec: *p.want.injection,
	}
	if p.want.withdrawn != "" {
		g.injection.Annotations = map[string]string{annotationWithdrawn: p.want.withdrawn}
	}
	g.app = p.obs.app.DeepCopy()
	g.app.Status = p.status(&applied{})
	return g
}

func TestWhatIsInjected(t *testing.T) {
	cases := map[string]struct {
		given given
		want  change[v1alpha1.PodInjectionSpec]
	}{
		"a StatefulSet": {given{}, func(*v1alpha1.PodInjectionSpec) {}},
		"a Deployment": {
			given{workload: deployment(3, podTemplate("1Gi"))},
			func(s *v1alpha1.PodInjectionSpec) { s.Owner.Kind = v1alpha1.KindDeployment },
		},
		"through the variable that every JVM reads": {
			given{app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OptionsVariable = v1alpha1.JavaToolOptions })},
			func(s *v1alpha1.PodInjectionSpec) {
				s.OptionsVariable, s.Options = v1alpha1.JavaToolOptions, v1alpha1.VMOptions
			},
		},
		"the user says what the variable holds": {
			given{app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OwnOptions = new("-Xss2m") })},
			func(s *v1alpha1.PodInjectionSpec) { s.OwnOptions = new("-Xss2m") },
		},
		"a ConfigMap gives the variable: a reference keeps it": {
			given{inherited: new("-Xss2m")},
			func(s *v1alpha1.PodInjectionSpec) { s.OwnOptions = new("$(JDK_JAVA_OPTIONS)") },
		},
		"envFrom gives something else, as has been looked up": {
			given{workload: statefulSet(3, podTemplate("1Gi", container(func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}}}}
			})))},
			func(s *v1alpha1.PodInjectionSpec) { s.OwnOptions = new("") },
		},
		"a ConfigMap that does not give it: there is nothing to keep": {
			given{workload: statefulSet(3, podTemplate("1Gi", container(func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
			})))},
			func(s *v1alpha1.PodInjectionSpec) { s.OwnOptions = new("") },
		},
		"a Secret may give the variable: nothing is said": {
			given{workload: statefulSet(3, podTemplate("1Gi", container(func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "opts"}}}}
			})))},
			func(*v1alpha1.PodInjectionSpec) {},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := passOf(t, c.given)
			want := v1alpha1.PodInjectionSpec{
				Owner: v1alpha1.WorkloadOwner{Kind: v1alpha1.KindStatefulSet, Name: testApp}, Container: testContainer,
				OptionsVariable: v1alpha1.JDKJavaOptions, Options: v1alpha1.LauncherOptions,
				PlanConfigMap: "streamweir-plan-orders", PlanRevision: p.want.generation,
			}
			c.want(&want)
			wantNoDiff(t, "injection", &want, p.want.injection)
		})
	}
}

func TestNothingIsWanted(t *testing.T) {
	cases := map[string]given{
		"in mode Observe":         {app: streamApp(limitsBetween("", "4Gi"), func(app *v1alpha1.StreamApp) { app.Spec.Mode = v1alpha1.ModeObserve })},
		"by default":              {app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Mode = "" })},
		"without a workload":      {workload: none{}, group: groupOf(4, 4, 4)},
		"without the container":   {group: groupOf(4, 4, 4), app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = "other" })},
		"without a memory limit":  {workload: statefulSet(3, podTemplate("", container(func(c *corev1.Container) { c.Resources = memoryResources("1Gi", "") })))},
		"for BestEffort pods":     {workload: statefulSet(3, podTemplate(""))},
		"for contradicting flags": {workload: statefulSet(3, podTemplate("1Gi", javaOptions("-XX:+UseG1GC -XX:+UseSerialGC"))), group: groupOf(4, 4, 4)},
	}
	for name, g := range cases {
		t.Run(name, func(t *testing.T) {
			want := passOf(t, g).want
			if want.injection != nil || want.planData != nil || len(want.resizes) > 0 || len(want.touches) > 0 {
				t.Errorf("wanted %+v, want nothing", want)
			}
		})
	}
}

func TestNothingIsWantedByTheYounger(t *testing.T) {
	obs := observed(t, given{group: groupOf(4, 4, 4)})
	obs.rival = "older"
	lost := countLossesOf(obs)
	if want := decide(obs, lost, plan(obs, lost)); want.injection != nil || len(want.resizes) > 0 {
		t.Errorf("wanted %+v beside an older StreamApp, want nothing", want)
	}
}

// javaOptions sets JDK_JAVA_OPTIONS in a template.
func javaOptions(value string) change[corev1.PodTemplateSpec] {
	return container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: value}} })
}

// TestAPlanWithoutTasksIsSafeForALoweredTemplate: what is published must never be for more than a new pod gets.
func TestAPlanWithoutTasksIsSafeForALoweredTemplate(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4)})
	if publishedFor(observed(t, g)) <= 900*mib {
		t.Fatalf("the plan in force is for %s, want more than 900Mi", humanBytes(publishedFor(observed(t, g))))
	}
	g.group, g.groupErr = nil, &assignment.Error{Class: assignment.ClassUnreachable}
	g.workload = statefulSet(3, podTemplate("900Mi"))
	next := after(t, g)
	if got := publishedFor(observed(t, next)); got > 900*mib {
		t.Errorf("the plan is for %s, and new pods get 900Mi", humanBytes(got))
	}
}

func TestHolds(t *testing.T) {
	inForce := after(t, given{group: groupOf(4, 4, 4)})
	kept := func(change func(*given)) given {
		g := inForce
		change(&g)
		return g
	}
	cases := map[string]struct {
		given given
		want  string
	}{
		"nothing is in the way": {inForce, ""},
		"the tasks are not known any more": {
			kept(func(g *given) { g.group, g.groupErr = nil, &assignment.Error{Class: assignment.ClassUnreachable} }), v1alpha1.ReasonAssignmentUnknown,
		},
		"the tasks are not known any more, and the template's limit is lower than what the plan is for": {
			kept(func(g *given) {
				g.group, g.groupErr = nil, &assignment.Error{Class: assignment.ClassUnreachable}
				g.workload = statefulSet(3, podTemplate("900Mi"))
			}), "",
		},
		"the tasks were never known: there is a first plan":   {given{}, ""},
		"nobody tells the tasks, so the plan goes on without": {after(t, given{}), ""},
		"a value that Kafka Streams would refuse": {
			kept(func(g *given) {
				g.app = streamApp(func(app *v1alpha1.StreamApp) {
					app.Spec.Streams.Configs = []v1alpha1.Config{{Name: "buffered.records.per.partition", Value: "many"}}
				})
			}), v1alpha1.ReasonInvalidSettings,
		},
		"too small a limit for what runs now": {
			given{group: groupOf(40, 40, 40), workload: statefulSet(3, podTemplate("512Mi")), app: streamApp(limitsBetween("", "768Mi")), pods: runningPodsOf(3, "512Mi")},
			v1alpha1.ReasonInsufficientMemory,
		},
		"too small a limit that may not be touched": {
			given{group: groupOf(40, 40, 40), workload: statefulSet(3, podTemplate("512Mi")), app: streamApp(), pods: runningPodsOf(3, "512Mi")},
			v1alpha1.ReasonInsufficientMemory,
		},
		"too small a limit for the first pods": {
			given{group: groupOf(40, 40, 40), workload: statefulSet(3, podTemplate("512Mi")), app: streamApp()}, v1alpha1.ReasonInsufficientMemory,
		},
		"too small a limit for any plan at all": {
			given{workload: statefulSet(3, podTemplate("64Mi")), app: streamApp(), pods: runningPodsOf(3, "64Mi")}, v1alpha1.ReasonInsufficientMemory,
		},
		"a heap that takes too large a share of any limit": {
			given{group: groupOf(4, 4, 4), workload: statefulSet(3, podTemplate("1Gi", javaOptions("-XX:MaxRAMPercentage=95"))), app: streamApp(limitsBetween("1Gi", ""))},
			v1alpha1.ReasonInsufficientMemory,
		},
		"scaled to zero": {
			kept(func(g *given) { g.workload, g.pods = statefulSet(0, podTemplate("1Gi")), []*corev1.Pod{} }), v1alpha1.ReasonNoPods,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := passOf(t, c.given).want
			if want.held.reason != c.want {
				t.Fatalf("held = %+v, want reason %q", want.held, c.want)
			}
			if want.held.found() && (want.injection != nil || want.planData != nil || len(want.resizes) > 0 || want.held.message == "") {
				t.Errorf("held, but wanted %+v", want)
			}
		})
	}
}

func TestASecondPassWantsNothingElse(t *testing.T) {
	for name, g := range map[string]given{
		"with a group": {group: groupOf(4, 4, 4)}, "with a heavy pod": {group: groupOf(10, 1, 1)}, "with no source": {},
		"with the app's own heap": {group: groupOf(4, 4, 4), workload: statefulSet(3, podTemplate("2Gi", javaOptions("-Xmx512m"))), pods: runningPodsOf(3, "2Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			first := passOf(t, g)
			next := after(t, g)
			if g.group == nil {
				return // held from now on: see TestHolds
			}
			second := passOf(t, next)
			wantNoDiff(t, "injection", first.want.injection, second.want.injection)
			wantNoDiff(t, "plan", first.want.planData, second.want.planData)
		})
	}
}

// TestPublishedForTheSmallest: what is mounted must be safe for every pod that reads it.
func TestWithoutAnySourceThePlanFollowsTheTemplate(t *testing.T) {
	g := after(t, given{app: streamApp()})
	g.workload, g.pods = statefulSet(3, podTemplate("2Gi")), runningPodsOf(3, "2Gi")
	options := passOf(t, g).want.planData[planfile.OptionsKey]
	if want := fmt.Sprintf("-XX:MaxRAM=%d\n", 2048*mib); !strings.Contains(options, want) {
		t.Errorf("the plan is %q, want one for the new limit: %q", options, want)
	}
}

func TestPublishedForTheSmallest(t *testing.T) {
	group := groupOf(4, 4, 4)
	pods := func(limits ...string) (all []*corev1.Pod) {
		for i, limit := range limits {
			all = append(all, runningPod(i, limit))
		}
		return all
	}
	maxRAM := func(g given) string {
		options := passOf(t, g).want.planData[planfile.OptionsKey]
		_, rest, _ := strings.Cut(options, "-XX:MaxRAM=")
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	workload := statefulSet(3, podTemplate("2Gi"))
	cases := map[string]struct {
		pods []*corev1.Pod
		want int64
	}{
		"all have the new limit":                 {pods("2Gi", "2Gi", "2Gi"), 2048},
		"one has less":                           {pods("2Gi", "1536Mi", "2Gi"), 1536},
		"one has more":                           {pods("2Gi", "3Gi", "2Gi"), 2048},
		"one was raised, but not by the kubelet": {[]*corev1.Pod{runningPod(0, "1536Mi", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = memoryResources("1Gi", "2Gi") }), runningPod(1, "2Gi"), runningPod(2, "2Gi")}, 1536},
		"one has less, and is pending":           {[]*corev1.Pod{runningPod(0, "1536Mi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), runningPod(1, "2Gi"), runningPod(2, "2Gi")}, 1536},
		"one has less, and does not read it":     {[]*corev1.Pod{runningPod(0, "1536Mi", func(p *corev1.Pod) { p.Annotations = nil }), runningPod(1, "2Gi"), runningPod(2, "2Gi")}, 2048},
		"one has less, and has ended":            {[]*corev1.Pod{runningPod(0, "2Gi"), runningPod(1, "2Gi"), runningPod(2, "2Gi"), runningPod(3, "1536Mi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, 2048},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := maxRAM(given{group: group, workload: workload, pods: c.pods, app: streamApp()})
			if want := quantity(c.want * mib); got != strconv.FormatInt(want.Value(), 10) {
				t.Errorf("MaxRAM = %s, want %d MiB", got, c.want)
			}
		})
	}
}

func TestTouches(t *testing.T) {
	g := after(t, given{group: groupOf(4, 4, 4)})
	generation := g.injection.Spec.PlanRevision
	told := func(p *corev1.Pod) { p.Annotations[v1alpha1.PublishedAnnotation] = generation }
	g.pods = []*corev1.Pod{
		runningPod(0, "1Gi", told),
		runningPod(1, "1Gi"),
		runningPod(2, "1Gi", func(p *corev1.Pod) { p.Annotations = map[string]string{} }), // does not read it
		runningPod(3, "1Gi", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
	}
	want := passOf(t, g).want
	if want.generation != generation {
		t.Fatalf("generation = %q, want %q as before", want.generation, generation)
	}
	wantNoDiff(t, "touches", []string{"orders-1"}, want.touches)
}

func TestInjectionBlocked(t *testing.T) {
	withContainer := func(apply change[corev1.Container]) given {
		return given{workload: statefulSet(3, podTemplate("1Gi", container(apply)))}
	}
	secret := func(c *corev1.Container) {
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "opts"}}}}
	}
	ownOptions := streamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OwnOptions = new("$(JDK_JAVA_OPTIONS)") })
	cases := map[string]struct {
		given given
		want  string
		says  string
	}{
		"nothing": {given{}, "", ""},
		"valueFrom": {withContainer(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", ValueFrom: &corev1.EnvVarSource{}}}
		}), v1alpha1.ReasonOptionsNotVisible, "valueFrom"},
		"a Secret":                         {withContainer(secret), v1alpha1.ReasonOptionsNotVisible, "jvm.ownOptions"},
		"a Secret, and the user says what": {given{app: ownOptions, workload: withContainer(secret).workload}, "", ""},
		"a Secret, and a value that hides it": {withContainer(func(c *corev1.Container) {
			secret(c)
			c.Env = []corev1.EnvVar{{Name: "JDK_JAVA_OPTIONS", Value: "-Xss1m"}}
		}), "", ""},
		"a mount in the plan's place": {withContainer(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/etc/streamweir"}}
		}), v1alpha1.ReasonConflict, "/etc/streamweir"},
		"a volume with the plan's name": {given{workload: statefulSet(3, podTemplate("1Gi", func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = []corev1.Volume{{Name: v1alpha1.PlanVolume}}
		}))}, v1alpha1.ReasonConflict, v1alpha1.PlanVolume},
		"two options files": {given{
			app: streamApp(func(app *v1alpha1.StreamApp) { app.Spec.JVM.OptionsVariable = v1alpha1.JavaToolOptions }),
			workload: withContainer(func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-XX:VMOptionsFile=/my/file"}}
			}).workload,
		}, v1alpha1.ReasonConflict, "options file"},
		"BestEffort":      {given{workload: statefulSet(3, podTemplate(""))}, v1alpha1.ReasonBestEffort, "memory limit"},
		"no memory limit": {withContainer(func(c *corev1.Container) { c.Resources = memoryResources("1Gi", "") }), v1alpha1.ReasonNoMemoryLimit, "memory limit"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := injectionBlocked(observed(t, c.given))
			if got.reason != c.want || !strings.Contains(got.message, c.says) {
				t.Errorf("blocked = %+v, want reason %q and a message with %q", got, c.want, c.says)
			}
		})
	}
}

// failing is a Deployment whose controller cannot create pods.
func failing(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Message: "exceeded quota: shared, requested: limits.memory=2Gi, used: limits.memory=3Gi, limited: limits.memory=4Gi"}}
}
