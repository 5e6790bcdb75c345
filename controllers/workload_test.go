// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
)

func TestStatefulSetRollingOut(t *testing.T) {
	cases := map[string]struct {
		change change[appsv1.StatefulSet]
		want   bool
	}{
		"all pods are of one revision":                {func(*appsv1.StatefulSet) {}, false},
		"a new revision":                              {func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "2" }, true},
		"changed, and its controller has not seen it": {func(s *appsv1.StatefulSet) { s.Generation = 2 }, true},
		"OnDelete: nothing rolls by itself": {func(s *appsv1.StatefulSet) {
			s.Status.UpdateRevision, s.Spec.UpdateStrategy.Type = "2", appsv1.OnDeleteStatefulSetStrategyType
		}, false},
		"a partition, and pods above it are still old": {func(s *appsv1.StatefulSet) {
			s.Status.UpdateRevision, s.Status.UpdatedReplicas = "2", 0
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
		}, true},
		"a partition, and all pods above it are new: it may stay so for weeks": {func(s *appsv1.StatefulSet) {
			s.Status.UpdateRevision, s.Status.UpdatedReplicas = "2", 1
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := readStatefulSet(statefulSet(3, podTemplate("1Gi"), c.change)).rollingOut; got != c.want {
				t.Errorf("rollingOut = %v, want %v", got, c.want)
			}
		})
	}
}

func TestDeploymentRollingOut(t *testing.T) {
	progressing := func(status corev1.ConditionStatus, reason string) change[appsv1.Deployment] {
		return func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason}}
		}
	}
	cases := map[string]struct {
		change change[appsv1.Deployment]
		want   bool
	}{
		"all pods are new":                            {func(*appsv1.Deployment) {}, false},
		"some pods are old":                           {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, true},
		"changed, and its controller has not seen it": {func(d *appsv1.Deployment) { d.Generation = 2 }, true},
		"a surge: old pods beside all the new ones":   {func(d *appsv1.Deployment) { d.Status.Replicas = 4 }, false},
		"the last new pod is made but not available":  {progressing(corev1.ConditionTrue, "ReplicaSetUpdated"), true},
		"done, whatever becomes of its pods later":    {progressing(corev1.ConditionTrue, "NewReplicaSetAvailable"), false},
		"stuck for longer than its deadline":          {progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := readDeployment(deployment(3, podTemplate("1Gi"), c.change)).rollingOut; got != c.want {
				t.Errorf("rollingOut = %v, want %v", got, c.want)
			}
		})
	}
}

func TestWorkloadFacts(t *testing.T) {
	ordered := readStatefulSet(statefulSet(2, podTemplate("1Gi"), func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = "" }))
	if !ordered.startsInTurn || ordered.replicas != 2 || ordered.kind != v1alpha1.KindStatefulSet || ordered.uid != "workload-uid" {
		t.Errorf("facts = %+v, want OrderedReady by default, 2 replicas", ordered)
	}
	unset := readDeployment(deployment(3, podTemplate("1Gi"), func(d *appsv1.Deployment) { d.Spec.Replicas = nil }))
	if unset.replicas != 1 || unset.startsInTurn || unset.createFails != "" {
		t.Errorf("facts = %+v, want one replica by default, started at once", unset)
	}
	failing := readDeployment(deployment(3, podTemplate("1Gi"), func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}
	}))
	if failing.createFails != "exceeded quota" {
		t.Errorf("createFails = %q, want the controller's message", failing.createFails)
	}
}

func TestFindContainer(t *testing.T) {
	two := func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "proxy"})
	}
	initContainer := func(template *corev1.PodTemplateSpec) {
		template.Spec.InitContainers = []corev1.Container{{Name: "proxy"}}
	}
	cases := map[string]struct {
		change change[corev1.PodTemplateSpec]
		name   string
		want   string
	}{
		"the only one":                             {func(*corev1.PodTemplateSpec) {}, "", "app"},
		"the only one, beside a native sidecar":    {initContainer, "", "app"},
		"the named one":                            {two, "proxy", "proxy"},
		"two, and none is named":                   {two, "", ""},
		"no container has the name":                {two, "other", ""},
		"an init container does not run the app":   {initContainer, "proxy", ""},
		"the only one, but another name was given": {func(*corev1.PodTemplateSpec) {}, "other", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := findContainer(podTemplate("1Gi", c.change), c.name); found != nil {
				got = found.Name
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// readApp reads the container of a template.
func readApp(changes ...change[corev1.PodTemplateSpec]) *containerFacts {
	template := podTemplate("1Gi", changes...)
	return readContainer(template, &template.Spec.Containers[0], "JDK_JAVA_OPTIONS")
}

// container changes the application's container of a template.
func container(apply change[corev1.Container]) change[corev1.PodTemplateSpec] {
	return func(template *corev1.PodTemplateSpec) { apply(&template.Spec.Containers[0]) }
}

func TestReadOptions(t *testing.T) {
	plain := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	from := corev1.EnvVar{Name: "JDK_JAVA_OPTIONS", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}
	configMap := func(name, prefix string) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	secret := func(name, prefix string) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	cases := map[string]struct {
		change change[corev1.Container]
		want   optionsFacts
	}{
		"no env at all": {func(*corev1.Container) {}, optionsFacts{}},
		"a plain value": {
			func(c *corev1.Container) { c.Env = []corev1.EnvVar{plain("JDK_JAVA_OPTIONS", "-Xmx1g")} },
			optionsFacts{value: "-Xmx1g"},
		},
		"another variable": {
			func(c *corev1.Container) { c.Env = []corev1.EnvVar{plain("JAVA_TOOL_OPTIONS", "-Xmx1g")} }, optionsFacts{},
		},
		"duplicate names: the last one counts": {
			func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{plain("JDK_JAVA_OPTIONS", "-Xmx1g"), plain("JDK_JAVA_OPTIONS", "-Xmx2g")}
			}, optionsFacts{value: "-Xmx2g"},
		},
		"valueFrom": {
			func(c *corev1.Container) { c.Env = []corev1.EnvVar{from} }, optionsFacts{fromValue: true},
		},
		"duplicate names: a plain value after valueFrom": {
			func(c *corev1.Container) { c.Env = []corev1.EnvVar{from, plain("JDK_JAVA_OPTIONS", "-Xmx2g")} },
			optionsFacts{value: "-Xmx2g", fromValue: true},
		},
		"duplicate names: valueFrom after a plain value": {
			func(c *corev1.Container) { c.Env = []corev1.EnvVar{plain("JDK_JAVA_OPTIONS", "-Xmx2g"), from} }, optionsFacts{fromValue: true},
		},
		"envFrom a ConfigMap and a Secret": {
			func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{configMap("a", ""), secret("b", "")} },
			optionsFacts{hasEnvFrom: true, configMaps: []envSource{{name: "a"}}, secrets: []string{"b"}},
		},
		"a prefix that the variable begins with": {
			func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{configMap("a", "JDK_"), secret("b", "JDK_JAVA_")}
			},
			optionsFacts{hasEnvFrom: true, configMaps: []envSource{{name: "a", prefix: "JDK_"}}, secrets: []string{"b"}},
		},
		"a prefix that it does not begin with": {
			func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{configMap("a", "APP_"), secret("b", "jdk_")}
			}, optionsFacts{hasEnvFrom: true},
		},
		"a prefix that is the whole name: no key is left": {
			func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{configMap("a", "JDK_JAVA_OPTIONS")} }, optionsFacts{hasEnvFrom: true},
		},
		"a mount of the user's at the plan's place": {
			func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: v1alpha1.PlanMountPath}}
			}, optionsFacts{foreignMount: "/etc/streamweir/plan"},
		},
		"a mount below the plan's folder": {
			func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: "/etc/streamweir/extra"}}
			}, optionsFacts{foreignMount: "/etc/streamweir/extra"},
		},
		"a mount of all of /etc": {
			func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: "/etc/"}} },
			optionsFacts{foreignMount: "/etc/"},
		},
		"mounts beside it": {
			func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: "/etc/streamweirs"}, {Name: "mine", MountPath: "/etc/ssl"}, {Name: "mine", MountPath: "/"}}
			}, optionsFacts{},
		},
		"an options file of its own": {
			func(c *corev1.Container) { c.Env = []corev1.EnvVar{plain("JDK_JAVA_OPTIONS", "-XX:VMOptionsFile=/my")} },
			optionsFacts{value: "-XX:VMOptionsFile=/my", foreignFile: true},
		},
		"the plan's options file, written into the template": {
			func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{plain("JDK_JAVA_OPTIONS", string(v1alpha1.VMOptions))}
			},
			optionsFacts{value: string(v1alpha1.VMOptions)},
		},
		"the same place in other words": {
			func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: v1alpha1.PlanMountPath + "/"}}
			}, optionsFacts{foreignMount: "/etc/streamweir/plan/"},
		},
		"the plan's own volume, written into the template": {
			func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: v1alpha1.PlanVolume, MountPath: v1alpha1.PlanMountPath}}
			}, optionsFacts{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wantNoDiff(t, "options", c.want, readApp(container(c.change)).options, cmp.AllowUnexported(optionsFacts{}, envSource{}))
		})
	}
}

func TestTakesPlanVolume(t *testing.T) {
	configMap := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	cases := map[string]struct {
		volume corev1.Volume
		want   bool
	}{
		"another name":                   {corev1.Volume{Name: "data", VolumeSource: configMap("mine")}, false},
		"its name, for something else":   {corev1.Volume{Name: v1alpha1.PlanVolume}, true},
		"its name, for another's config": {corev1.Volume{Name: v1alpha1.PlanVolume, VolumeSource: configMap("mine")}, true},
		"its name, for the plan":         {corev1.Volume{Name: v1alpha1.PlanVolume, VolumeSource: configMap(planConfigMapName(testApp))}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readApp(func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{c.volume} })
			if facts.options.foreignVolume != c.want {
				t.Errorf("foreignVolume = %v, want %v", facts.options.foreignVolume, c.want)
			}
		})
	}
}

func TestEnvHoldsPlainValuesOnly(t *testing.T) {
	facts := readApp(container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{
			{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "A", Value: "3"},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}
	}))
	wantNoDiff(t, "env", map[string]string{"A": "3"}, facts.env)
}

func TestQualityOfService(t *testing.T) {
	resources := func(cpuRequest, cpuLimit, request, limit string) corev1.ResourceRequirements {
		r := memoryResources(request, limit)
		for list, cpu := range map[*corev1.ResourceList]string{&r.Requests: cpuRequest, &r.Limits: cpuLimit} {
			if cpu == "" {
				continue
			}
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		return r
	}
	one := func(r corev1.ResourceRequirements) change[corev1.PodTemplateSpec] {
		return container(func(c *corev1.Container) { c.Resources = r })
	}
	cases := map[string]struct {
		changes                          []change[corev1.PodTemplateSpec]
		guaranteed, bestEffort, cpuBound bool
	}{
		"nothing":                             {[]change[corev1.PodTemplateSpec]{one(resources("", "", "", ""))}, false, true, false},
		"CPU and memory equal":                {[]change[corev1.PodTemplateSpec]{one(resources("1", "1", "1Gi", "1Gi"))}, true, false, true},
		"limits alone: requests become so":    {[]change[corev1.PodTemplateSpec]{one(resources("", "1", "", "1Gi"))}, true, false, true},
		"memory equal, no CPU":                {[]change[corev1.PodTemplateSpec]{one(resources("", "", "1Gi", "1Gi"))}, false, false, false},
		"CPU equal, a smaller memory request": {[]change[corev1.PodTemplateSpec]{one(resources("1", "1", "512Mi", "1Gi"))}, false, false, true},
		"a sidecar without resources": {[]change[corev1.PodTemplateSpec]{one(resources("1", "1", "1Gi", "1Gi")), func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"})
		}}, false, false, false},
		"an init container without resources": {[]change[corev1.PodTemplateSpec]{one(resources("1", "1", "1Gi", "1Gi")), func(p *corev1.PodTemplateSpec) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		}}, false, false, false},
		"nothing here, but a sidecar has a request": {[]change[corev1.PodTemplateSpec]{one(resources("", "", "", "")), func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Resources: resources("1", "", "", "")})
		}}, false, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readApp(c.changes...)
			if facts.guaranteed != c.guaranteed || facts.bestEffort != c.bestEffort || facts.cpuBound != c.cpuBound {
				t.Errorf("guaranteed %v, bestEffort %v, cpuBound %v; want %v, %v, %v",
					facts.guaranteed, facts.bestEffort, facts.cpuBound, c.guaranteed, c.bestEffort, c.cpuBound)
			}
		})
	}
}

func TestStateDirectory(t *testing.T) {
	mounted := func(source corev1.VolumeSource) change[corev1.PodTemplateSpec] {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = []corev1.Volume{{Name: "state", VolumeSource: source}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/var/lib/streams"}}
		}
	}
	cases := map[string]struct {
		change               change[corev1.PodTemplateSpec]
		inMemory, persistent bool
	}{
		"no volume": {func(*corev1.PodTemplateSpec) {}, false, false},
		"emptyDir":  {mounted(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), false, false},
		"emptyDir in memory": {
			mounted(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}), true, false,
		},
		"a claim":             {mounted(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), false, true},
		"a directory of node": {mounted(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), false, true},
		"a ConfigMap":         {mounted(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), false, false},
		"a volumeClaimTemplate of the StatefulSet": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}, false, true},
		"memory that another container mounts": {func(p *corev1.PodTemplateSpec) {
			mounted(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})(p)
			p.Spec.Containers[0].VolumeMounts = nil
		}, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readApp(c.change)
			if facts.stateInMemory != c.inMemory || facts.statePersistent != c.persistent {
				t.Errorf("in memory %v, persistent %v; want %v, %v", facts.stateInMemory, facts.statePersistent, c.inMemory, c.persistent)
			}
		})
	}
}
