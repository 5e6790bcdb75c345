// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// Container holds the facts of the application's container in the pod template.
type Container struct {
	Name, Image    string
	Limit, Request *resource.Quantity // memory in a new pod, see limitOf; nil if not set
	CPULimit       *resource.Quantity
	// Guaranteed and BestEffort are QoS classes of the template. In a Guaranteed pod request and limit stay equal.
	Guaranteed, BestEffort bool
	// CPUGuaranteed: every container's CPU request equals its limit, so an equal pair of memory would make the pod Guaranteed.
	CPUGuaranteed bool
	// PodResources: the template has pod-level resources. The admission policy then leaves the memory of the containers alone, since it has to
	// fit into that of the pod.
	PodResources bool
	Options      Options
	// Args are command and arguments, which may contain JVM flags.
	Args []string
	// Env are the plain values of environment variables.
	Env map[string]string
	// StateInMemory and StatePersistent are properties of the mounted volumes: the state directory may be on any of them.
	StateInMemory, StatePersistent bool
	// Neighbours has the memory of the pod's other containers.
	Neighbours NeighbourMemory
}

// NeighbourMemory is the memory of the pod's other containers, in bytes.
type NeighbourMemory struct{ Limits, Requests int64 }

// Options holds the sources of the environment variable for JVM options.
type Options struct {
	// Variable is the name of the variable.
	Variable v1alpha1.OptionsVariable
	// Value is its plain value in the container's env. The last of duplicate names counts.
	Value string
	// FromValue: env sets the variable with valueFrom, in any of the duplicates. The admission policy then leaves the pod alone.
	FromValue bool
	// HasEnvFrom: the container has envFrom entries.
	HasEnvFrom bool
	// Inherited is the value from a ConfigMap of envFrom; nil without one.
	Inherited *string
	// Secrets are the Secrets of envFrom that may contain the variable. The operator must not read them.
	Secrets []string
	// ConflictingMount is a mount path of the template that would hide the plan, or be hidden by it; empty without one.
	ConflictingMount string
	// ConflictingVolume: a volume of the template has the name of the plan's or the agent's volume.
	ConflictingVolume bool
	// OwnOptionsFile: the value names an options file, and a JVM accepts only one.
	OwnOptionsFile bool
}

// optionsVariable returns the variable for JVM options.
func optionsVariable(app *v1alpha1.StreamApp) v1alpha1.OptionsVariable {
	return cmp.Or(app.Spec.JVM.OptionsVariable, v1alpha1.JDKJavaOptions)
}

// FindContainer returns the container with this name, or the only one without a name; nil if there is none.
func FindContainer(template *corev1.PodTemplateSpec, name string) *corev1.Container {
	containers := template.Spec.Containers
	if name == "" && len(containers) == 1 {
		return &containers[0]
	}
	if i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		return &containers[i]
	}
	return nil
}

// ConfigMapsToRead returns the names of the ConfigMaps that may set the variable for JVM options in the application's container.
func ConfigMapsToRead(app *v1alpha1.StreamApp, template *corev1.PodTemplateSpec) []string {
	container := FindContainer(template, app.Spec.Container)
	if container == nil {
		return nil
	}
	var names []string
	for _, source := range container.EnvFrom {
		if _, possible := keyIn(source, optionsVariable(app)); possible && source.ConfigMapRef != nil {
			names = append(names, source.ConfigMapRef.Name)
		}
	}
	return names
}

// keyIn returns the key under which an envFrom source would set a variable.
func keyIn(source corev1.EnvFromSource, variable v1alpha1.OptionsVariable) (string, bool) {
	key, possible := strings.CutPrefix(string(variable), source.Prefix)
	return key, possible && key != ""
}

// containerOf derives the facts of the application's container; nil if the template does not have it.
func containerOf(
	app *v1alpha1.StreamApp, template *corev1.PodTemplateSpec, ranges []corev1.LimitRange, configMaps map[string]*corev1.ConfigMap,
) *Container {
	template = &corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: *storedResources(&template.Spec, ranges)}
	c := FindContainer(template, app.Spec.Container)
	if c == nil {
		return nil
	}
	qos := qosOf(&template.Spec)
	container := &Container{
		Name: c.Name, Image: c.Image, Limit: limitOf(&template.Spec, c), Request: memoryOf(c.Resources.Requests),
		Guaranteed: qos == corev1.PodQOSGuaranteed, BestEffort: qos == corev1.PodQOSBestEffort,
		CPUGuaranteed: cpuGuaranteed(slices.Concat(template.Spec.InitContainers, template.Spec.Containers)),
		PodResources:  template.Spec.Resources != nil,
		Args:          slices.Concat(c.Command, c.Args),
		Env:           map[string]string{},
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			container.Env[e.Name] = e.Value
		} else {
			delete(container.Env, e.Name)
		}
	}
	if cpu, ok := c.Resources.Limits[corev1.ResourceCPU]; ok {
		container.CPULimit = &cpu
	}
	container.Options = optionsOf(c, optionsVariable(app), configMaps)
	container.Options.ConflictingVolume = hasConflictingVolume(template.Spec.Volumes)
	container.readVolumes(template, c)
	for _, other := range containersBeside(&template.Spec, c.Name) {
		container.Neighbours.Limits += other.Resources.Limits.Memory().Value()
		container.Neighbours.Requests += other.Resources.Requests.Memory().Value()
	}
	return container
}

// cpuGuaranteed returns whether every container's CPU request equals its limit.
func cpuGuaranteed(containers []corev1.Container) bool {
	for i := range containers {
		limit, limited := containers[i].Resources.Limits[corev1.ResourceCPU]
		request, requested := containers[i].Resources.Requests[corev1.ResourceCPU]
		differs := requested && limit.Cmp(request) != 0 // without a request the API server sets it to the limit
		if !limited || differs {
			return false
		}
	}
	return true
}

// memoryOf returns the memory in a resource list; nil if it has none.
func memoryOf(list corev1.ResourceList) *resource.Quantity {
	memory, ok := list[corev1.ResourceMemory]
	if !ok {
		return nil
	}
	if _, representable := memory.AsInt64(); !representable {
		memory = quantity(wholeBytes(memory))
	}
	return &memory
}

// wholeBytes returns a quantity in bytes, rounded up. A quantity beyond the int64 range counts as the largest int64, where
// [resource.Quantity.Value] returns 0.
func wholeBytes(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64) >= 0 {
		return math.MaxInt64
	}
	return q.Value()
}

// vmOptionsFile is the flag naming a file with JVM options. A JVM refuses to start with two of them in one variable, so the admission
// policy leaves such containers alone.
const vmOptionsFile = "-XX:VMOptionsFile="

func optionsOf(c *corev1.Container, variable v1alpha1.OptionsVariable, configMaps map[string]*corev1.ConfigMap) Options {
	options := Options{Variable: variable, HasEnvFrom: len(c.EnvFrom) > 0}
	for _, e := range c.Env {
		if e.Name == string(variable) {
			options.Value = e.Value
			options.FromValue = options.FromValue || e.ValueFrom != nil
		}
	}
	options.OwnOptionsFile = strings.Contains(options.Value, vmOptionsFile) && !strings.Contains(options.Value, string(v1alpha1.VMOptions))
	for _, source := range c.EnvFrom {
		key, possible := keyIn(source, variable)
		switch {
		case !possible:
		case source.ConfigMapRef != nil:
			// A missing ConfigMap is optional, or the pods do not start.
			if configMap := configMaps[source.ConfigMapRef.Name]; configMap != nil {
				if value, ok := configMap.Data[key]; ok {
					options.Inherited = &value
				}
			}
		case source.SecretRef != nil:
			options.Secrets = append(options.Secrets, source.SecretRef.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if hidesPlan(m.MountPath) && m.Name != v1alpha1.PlanVolume && m.Name != v1alpha1.AgentVolume {
			options.ConflictingMount = m.MountPath
		}
	}
	return options
}

// hidesPlan returns whether a mount is at, below or above the plan's folder.
func hidesPlan(mountPath string) bool {
	clean := path.Clean(mountPath)
	folder := path.Dir(v1alpha1.PlanMountPath)
	return clean == path.Dir(folder) || clean == folder || strings.HasPrefix(clean, folder+"/")
}

// hasConflictingVolume returns whether a volume of the template has the name of the plan's or the agent's volume and other content.
func hasConflictingVolume(volumes []corev1.Volume) bool {
	return slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
		configMap := ""
		if v.ConfigMap != nil {
			configMap = v.ConfigMap.Name
		}
		return (v.Name == v1alpha1.PlanVolume && !strings.HasPrefix(configMap, v1alpha1.PlanConfigMapPrefix)) ||
			(v.Name == v1alpha1.AgentVolume && !strings.HasPrefix(configMap, v1alpha1.AgentConfigMapPrefix))
	})
}

// readVolumes derives the kinds of disk that the container's state may be on. Memory-backed volumes count as memory. Persistent ones keep
// task directories across restarts.
func (c *Container) readVolumes(template *corev1.PodTemplateSpec, container *corev1.Container) {
	for _, mount := range container.VolumeMounts {
		i := slices.IndexFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 { // a volumeClaimTemplate of a StatefulSet
			c.StatePersistent = true
			continue
		}
		switch volume := template.Spec.Volumes[i]; {
		case volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory:
			c.StateInMemory = true
		case volume.PersistentVolumeClaim != nil, volume.HostPath != nil:
			c.StatePersistent = true
		}
	}
}

// OptionsText returns the value of a variable with JVM options, as far as it is visible: from the container's own env, from a ConfigMap of
// envFrom, or from the spec's ownOptions.
func (c *Container) OptionsText(variable string, ownOptions *string) string {
	if value, ok := c.Env[variable]; ok {
		return value
	}
	if variable != string(c.Options.Variable) {
		return ""
	}
	inherited := ""
	if c.Options.Inherited != nil {
		inherited = *c.Options.Inherited
	}
	if ownOptions != nil {
		return strings.ReplaceAll(*ownOptions, "$("+variable+")", inherited)
	}
	return inherited
}
