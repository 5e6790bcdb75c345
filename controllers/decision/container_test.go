// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testobjects"
)

func TestFindContainer(t *testing.T) {
	unchanged := func(*corev1.PodTemplateSpec) {}
	two := func(template *corev1.PodTemplateSpec) {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "proxy"})
	}
	initContainer := func(template *corev1.PodTemplateSpec) {
		template.Spec.InitContainers = []corev1.Container{{Name: "proxy"}}
	}
	cases := map[string]struct {
		change testobjects.Change[corev1.PodTemplateSpec]
		name   string
		want   string
	}{
		"only one":                          {unchanged, "", "app"},
		"only one, beside a native sidecar": {initContainer, "", "app"},
		"by name":                           {two, "proxy", "proxy"},
		"two, no name":                      {two, "", ""},
		"unknown name":                      {two, "other", ""},
		"name of an init container":         {initContainer, "proxy", ""},
		"only one, with a different name":   {unchanged, "other", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := FindContainer(testobjects.PodTemplate("1Gi", c.change), c.name); found != nil {
				got = found.Name
			}
			if got != c.want {
				t.Errorf("container %q, want %q", got, c.want)
			}
		})
	}
}

// factsOf derives the facts of the container in a changed template.
func factsOf(t *testing.T, configMaps map[string]*corev1.ConfigMap, changes ...testobjects.Change[corev1.PodTemplateSpec]) *Container {
	t.Helper()
	app := testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Container = testobjects.Container })
	c := containerOf(app, testobjects.PodTemplate("1Gi", changes...), nil, configMaps)
	if c == nil {
		t.Fatal("the template has no container")
	}
	return c
}

func TestOptions(t *testing.T) {
	env := func(variables ...corev1.EnvVar) testobjects.Change[corev1.Container] {
		return func(c *corev1.Container) { c.Env = variables }
	}
	plain := func(value string) corev1.EnvVar { return corev1.EnvVar{Name: "JDK_JAVA_OPTIONS", Value: value} }
	fromSecret := corev1.EnvVar{Name: "JDK_JAVA_OPTIONS", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}
	envFrom := func(sources ...corev1.EnvFromSource) testobjects.Change[corev1.Container] {
		return func(c *corev1.Container) { c.EnvFrom = sources }
	}
	configMap := func(name, prefix string) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	secret := func(name, prefix string) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	mount := func(volume string, paths ...string) testobjects.Change[corev1.Container] {
		return func(c *corev1.Container) {
			for _, path := range paths {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
			}
		}
	}
	existing := map[string]*corev1.ConfigMap{
		"a": {Data: map[string]string{"JDK_JAVA_OPTIONS": "-Xss1m", "JAVA_OPTIONS": "-Xss2m"}},
		"z": {Data: map[string]string{"JDK_JAVA_OPTIONS": "-Xss3m"}},
		"o": {Data: map[string]string{"PORT": "80"}},
	}
	cases := map[string]struct {
		change testobjects.Change[corev1.Container]
		want   Options
		read   []string // ConfigMaps to read
	}{
		"no env":                           {func(*corev1.Container) {}, Options{}, nil},
		"plain value":                      {env(plain("-Xmx1g")), Options{Value: "-Xmx1g"}, nil},
		"other variable":                   {env(corev1.EnvVar{Name: "JAVA_TOOL_OPTIONS", Value: "-Xmx1g"}), Options{}, nil},
		"duplicate names: the last counts": {env(plain("-Xmx1g"), plain("-Xmx2g")), Options{Value: "-Xmx2g"}, nil},
		"valueFrom":                        {env(fromSecret), Options{FromValue: true}, nil},
		"plain value after valueFrom":      {env(fromSecret, plain("-Xmx2g")), Options{Value: "-Xmx2g", FromValue: true}, nil},
		"valueFrom after a plain value":    {env(plain("-Xmx2g"), fromSecret), Options{FromValue: true}, nil},
		"envFrom of a ConfigMap and a Secret": {
			envFrom(configMap("a", ""), secret("b", "")), Options{HasEnvFrom: true, Inherited: new("-Xss1m"), Secrets: []string{"b"}}, []string{"a"},
		},
		"envFrom of two ConfigMaps: the last counts": {
			envFrom(configMap("a", ""), configMap("z", ""), configMap("o", "")), Options{HasEnvFrom: true, Inherited: new("-Xss3m")}, []string{"a", "z", "o"},
		},
		"envFrom of a missing ConfigMap": {envFrom(configMap("x", "")), Options{HasEnvFrom: true}, []string{"x"}},
		"prefix of the variable": {
			envFrom(configMap("a", "JDK_"), secret("b", "JDK_JAVA_")), Options{HasEnvFrom: true, Inherited: new("-Xss2m"), Secrets: []string{"b"}}, []string{"a"},
		},
		"not a prefix of the variable":                 {envFrom(configMap("a", "APP_"), secret("b", "jdk_")), Options{HasEnvFrom: true}, nil},
		"prefix equal to the variable: no key remains": {envFrom(configMap("a", "JDK_JAVA_OPTIONS")), Options{HasEnvFrom: true}, nil},
		"mount at the plan's path":                     {mount("mine", v1alpha1.PlanMountPath), Options{ConflictingMount: "/etc/streamweir/plan"}, nil},
		"mount at the plan's path, with a slash":       {mount("mine", v1alpha1.PlanMountPath+"/"), Options{ConflictingMount: "/etc/streamweir/plan/"}, nil},
		"mount below the plan's folder":                {mount("mine", "/etc/streamweir/extra"), Options{ConflictingMount: "/etc/streamweir/extra"}, nil},
		"mount over all of /etc":                       {mount("mine", "/etc/"), Options{ConflictingMount: "/etc/"}, nil},
		"mounts beside the plan's folder":              {mount("mine", "/etc/streamweirs", "/etc/ssl", "/"), Options{}, nil},
		"mount of the plan's own volume":               {mount(v1alpha1.PlanVolume, v1alpha1.PlanMountPath), Options{}, nil},
		"own options file":                             {env(plain("-XX:VMOptionsFile=/my")), Options{Value: "-XX:VMOptionsFile=/my", OwnOptionsFile: true}, nil},
		"the plan's options file, in the template":     {env(plain(string(v1alpha1.VMOptions))), Options{Value: string(v1alpha1.VMOptions)}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.want.Variable = v1alpha1.JDKJavaOptions
			wantNoDiff(t, "options", c.want, factsOf(t, existing, container(c.change)).Options)
			wantNoDiff(t, "ConfigMaps to read", c.read, ConfigMapsToRead(testobjects.StreamApp(), testobjects.PodTemplate("1Gi", container(c.change))))
		})
	}
}

func TestConflictingVolume(t *testing.T) {
	configMap := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	cases := map[string]struct {
		volume corev1.Volume
		want   bool
	}{
		"other name":                              {corev1.Volume{Name: "data", VolumeSource: configMap("mine")}, false},
		"the plan's name, without a ConfigMap":    {corev1.Volume{Name: v1alpha1.PlanVolume}, true},
		"the plan's name, with another ConfigMap": {corev1.Volume{Name: v1alpha1.PlanVolume, VolumeSource: configMap("mine")}, true},
		"the plan's name, with the plan":          {corev1.Volume{Name: v1alpha1.PlanVolume, VolumeSource: configMap(PlanConfigMapName(testobjects.App))}, false},
		"the agent's name, without a ConfigMap":   {corev1.Volume{Name: v1alpha1.AgentVolume}, true},
		"the agent's name, with the agent":        {corev1.Volume{Name: v1alpha1.AgentVolume, VolumeSource: configMap(testAgentMap)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := factsOf(t, nil, func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{c.volume} }).Options.ConflictingVolume
			if got != c.want {
				t.Errorf("ConflictingVolume = %t, want %t", got, c.want)
			}
		})
	}
}

func TestEnvHasPlainValuesOnly(t *testing.T) {
	c := factsOf(t, nil, container(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{
			{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "A", Value: "3"},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}
	}))
	wantNoDiff(t, "env", map[string]string{"A": "3"}, c.Env)
}

func TestQualityOfService(t *testing.T) {
	resources := func(cpuRequest, cpuLimit, request, limit string) corev1.ResourceRequirements {
		r := testobjects.MemoryResources(request, limit)
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
	equal := resources("1", "1", "1Gi", "1Gi")
	sidecar := func(c corev1.Container) testobjects.Change[corev1.PodTemplateSpec] {
		return func(p *corev1.PodTemplateSpec) { p.Spec.Containers = append(p.Spec.Containers, c) }
	}
	alone := func(*corev1.PodTemplateSpec) {}
	initContainer := func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} }
	type class struct{ Guaranteed, BestEffort, CPUGuaranteed bool }
	cases := map[string]struct {
		resources corev1.ResourceRequirements
		others    testobjects.Change[corev1.PodTemplateSpec]
		want      class
	}{
		"no resources":                         {corev1.ResourceRequirements{}, alone, class{BestEffort: true}},
		"CPU and memory equal":                 {equal, alone, class{Guaranteed: true, CPUGuaranteed: true}},
		"limits only: requests become equal":   {resources("", "1", "", "1Gi"), alone, class{Guaranteed: true, CPUGuaranteed: true}},
		"memory equal, no CPU":                 {resources("", "", "1Gi", "1Gi"), alone, class{}},
		"CPU equal, lower memory request":      {resources("1", "1", "512Mi", "1Gi"), alone, class{CPUGuaranteed: true}},
		"equal, sidecar without resources":     {equal, sidecar(corev1.Container{Name: "proxy"}), class{}},
		"equal, init container without":        {equal, initContainer, class{}},
		"no resources, sidecar with a request": {corev1.ResourceRequirements{}, sidecar(corev1.Container{Name: "proxy", Resources: resources("1", "", "", "")}), class{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := factsOf(t, nil, container(func(app *corev1.Container) { app.Resources = c.resources }), c.others)
			wantNoDiff(t, "class", c.want, class{facts.Guaranteed, facts.BestEffort, facts.CPUGuaranteed})
		})
	}
}

func TestStateDirectory(t *testing.T) {
	mounted := func(source corev1.VolumeSource) testobjects.Change[corev1.PodTemplateSpec] {
		return func(p *corev1.PodTemplateSpec) {
			p.Spec.Volumes = []corev1.Volume{{Name: "state", VolumeSource: source}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/var/lib/streams"}}
		}
	}
	inMemory := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}
	claimTemplate := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	notMountedHere := func(p *corev1.PodTemplateSpec) {
		mounted(inMemory)(p)
		p.Spec.Containers[0].VolumeMounts = nil
	}
	type state struct{ InMemory, Persistent bool }
	cases := map[string]struct {
		change testobjects.Change[corev1.PodTemplateSpec]
		want   state
	}{
		"no volume":                       {func(*corev1.PodTemplateSpec) {}, state{}},
		"emptyDir":                        {mounted(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), state{}},
		"emptyDir in memory":              {mounted(inMemory), state{InMemory: true}},
		"PersistentVolumeClaim":           {mounted(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), state{Persistent: true}},
		"hostPath":                        {mounted(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), state{Persistent: true}},
		"ConfigMap":                       {mounted(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), state{}},
		"volumeClaimTemplate":             {claimTemplate, state{Persistent: true}},
		"in memory, in another container": {notMountedHere, state{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := factsOf(t, nil, c.change)
			wantNoDiff(t, "state directory", c.want, state{facts.StateInMemory, facts.StatePersistent})
		})
	}
}
