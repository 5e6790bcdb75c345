// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"streamweir.dev/streamweir/api/v1alpha1"
)

// workloadFacts is what a pass knows of the Deployment or StatefulSet.
type workloadFacts struct {
	kind       v1alpha1.WorkloadKind
	name       string
	uid        types.UID
	replicas   int
	rollingOut bool
	template   *corev1.PodTemplateSpec
	// startsInTurn: the pods of a cold start come one by one, so that the first holds every task for a while.
	startsInTurn bool
	// minReady is how long a pod must be ready before its controller goes on to the next.
	minReady time.Duration
	// createFails: the controller of a Deployment says that it cannot create pods.
	createFails string
}

func readStatefulSet(set *appsv1.StatefulSet) *workloadFacts {
	facts := &workloadFacts{
		kind: v1alpha1.KindStatefulSet, name: set.Name, uid: set.UID, replicas: replicasOf(set.Spec.Replicas), template: &set.Spec.Template,
		minReady:     time.Duration(set.Spec.MinReadySeconds) * time.Second,
		startsInTurn: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
	}
	facts.rollingOut = set.Status.ObservedGeneration < set.Generation || behind(set, facts.replicas)
	return facts
}

// behind tells whether pods of an older revision are still to be replaced, or the last one's replacement to become ready. With a
// partition some stay old for as long as the user wants.
func behind(set *appsv1.StatefulSet, replicas int) bool {
	strategy := set.Spec.UpdateStrategy
	if set.Status.CurrentRevision == set.Status.UpdateRevision || strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false
	}
	if strategy.RollingUpdate == nil || strategy.RollingUpdate.Partition == nil || *strategy.RollingUpdate.Partition == 0 {
		return true
	}
	return int(set.Status.UpdatedReplicas) < replicas-int(*strategy.RollingUpdate.Partition)
}

// newReplicaSetAvailable is the reason of the condition Progressing once a rollout is done. It stays, whatever becomes of the pods later
// (k8s.io/kubernetes pkg/controller/deployment/util, NewRSAvailableReason).
const newReplicaSetAvailable = "NewReplicaSetAvailable"

func readDeployment(deployment *appsv1.Deployment) *workloadFacts {
	facts := &workloadFacts{
		kind: v1alpha1.KindDeployment, name: deployment.Name, uid: deployment.UID,
		replicas: replicasOf(deployment.Spec.Replicas), template: &deployment.Spec.Template,
		minReady: time.Duration(deployment.Spec.MinReadySeconds) * time.Second,
	}
	facts.rollingOut = deployment.Status.ObservedGeneration < deployment.Generation ||
		deployment.Status.UpdatedReplicas < min(deployment.Status.Replicas, int32(facts.replicas))
	for _, c := range deployment.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == appsv1.DeploymentReplicaFailure:
			facts.createFails = c.Message
		case c.Type == appsv1.DeploymentProgressing && c.Reason != newReplicaSetAvailable:
			facts.rollingOut = true // the last new pods are made, but not available yet
		}
	}
	return facts
}

// replicasOf applies the documented default of both kinds.
func replicasOf(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}

// containerFacts is what the template says of the container that runs Kafka Streams.
type containerFacts struct {
	name, image    string
	limit, request *resource.Quantity
	cpuLimit       *resource.Quantity
	// guaranteed: the pods of the template are of the class Guaranteed, so request and limit have to stay equal.
	guaranteed, bestEffort, cpuBound bool
	options                          optionsFacts
	args                             []string // command and arguments, in which JVM flags may stand
	env                              map[string]string
	stateInMemory, statePersistent   bool
}

// optionsFacts is where the variable that the JVM's options go through has its value from.
type optionsFacts struct {
	value         string // a plain value in env; the last one counts
	fromValue     bool   // env has the variable by valueFrom, be it as one of duplicates: the admission policy then keeps away
	hasEnvFrom    bool
	configMaps    []envSource // envFrom: ConfigMaps that may hold it
	secrets       []string    // envFrom: Secrets that may hold it, which the operator may not read
	foreignMount  string      // something else is mounted there, which would hide the plan, or be hidden by it
	foreignFile   bool        // it names an options file of its own, beside which a JVM takes no other
	foreignVolume bool        // another volume has the name of the plan's
}

// envSource is a ConfigMap named in envFrom.
type envSource struct {
	name, prefix string
}

// findContainer picks the container: the named one, or without a name the only one.
func findContainer(template *corev1.PodTemplateSpec, name string) *corev1.Container {
	containers := template.Spec.Containers
	if name == "" && len(containers) == 1 {
		return &containers[0]
	}
	if i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
		return &containers[i]
	}
	return nil
}

// readContainer takes the facts of the container from the template. variable is the one that JVM options are injected through.
func readContainer(template *corev1.PodTemplateSpec, c *corev1.Container, variable string) *containerFacts {
	facts := &containerFacts{
		name: c.Name, image: c.Image, limit: memoryOf(c.Resources.Limits), request: memoryOf(c.Resources.Requests),
		cpuBound: cpuBound(template.Spec.Containers) && cpuBound(template.Spec.InitContainers),
		args:     slices.Concat(c.Command, c.Args),
		env:      map[string]string{},
	}
	all := slices.Concat(template.Spec.InitContainers, template.Spec.Containers)
	facts.guaranteed = facts.cpuBound && !slices.ContainsFunc(all, func(c corev1.Container) bool { return !memoryEqual(c.Resources) })
	facts.bestEffort = !slices.ContainsFunc(all, func(c corev1.Container) bool {
		return len(c.Resources.Limits) > 0 || len(c.Resources.Requests) > 0
	})
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			facts.env[e.Name] = e.Value
		} else {
			delete(facts.env, e.Name)
		}
	}
	if cpu, ok := c.Resources.Limits[corev1.ResourceCPU]; ok {
		facts.cpuLimit = &cpu
	}
	facts.options = readOptions(c, variable)
	facts.options.foreignVolume = takesPlanVolume(template.Spec.Volumes)
	facts.readVolumes(template, c)
	return facts
}

func memoryEqual(r corev1.ResourceRequirements) bool {
	limit, request := memoryOf(r.Limits), memoryOf(r.Requests)
	return limit != nil && (request == nil || limit.Cmp(*request) == 0)
}

// vmOptionsFile is the flag that names a file with JVM options. With two of them in one variable a JVM refuses to start, so the admission
// policy leaves such containers alone.
const vmOptionsFile = "-XX:VMOptionsFile="

func readOptions(c *corev1.Container, variable string) optionsFacts {
	var facts optionsFacts
	for _, e := range c.Env {
		if e.Name == variable { // the last of duplicate names is the one that the container gets
			facts.value, facts.fromValue = e.Value, facts.fromValue || e.ValueFrom != nil
		}
	}
	facts.foreignFile = strings.Contains(facts.value, vmOptionsFile) && !strings.Contains(facts.value, string(v1alpha1.VMOptions))
	facts.hasEnvFrom = len(c.EnvFrom) > 0
	for _, from := range c.EnvFrom {
		key, possible := strings.CutPrefix(variable, from.Prefix)
		switch {
		case !possible || key == "":
		case from.ConfigMapRef != nil:
			facts.configMaps = append(facts.configMaps, envSource{name: from.ConfigMapRef.Name, prefix: from.Prefix})
		case from.SecretRef != nil:
			facts.secrets = append(facts.secrets, from.SecretRef.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if hidesPlan(m.MountPath) && m.Name != v1alpha1.PlanVolume && m.Name != v1alpha1.AgentVolume {
			facts.foreignMount = m.MountPath
		}
	}
	return facts
}

// hidesPlan tells whether a mount is at, below or above the plan's folder: it would hide the plan, or be hidden by it.
func hidesPlan(mountPath string) bool {
	clean, folder := path.Clean(mountPath), path.Dir(v1alpha1.PlanMountPath)
	return clean == path.Dir(folder) || clean == folder || strings.HasPrefix(clean, folder+"/")
}

// takesPlanVolume tells whether a volume of the template has the name of the plan's volume, and is another.
func takesPlanVolume(volumes []corev1.Volume) bool {
	return slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
		ours := v.ConfigMap != nil && strings.HasPrefix(v.ConfigMap.Name, v1alpha1.ConfigMapPrefix)
		return (v.Name == v1alpha1.PlanVolume || v.Name == v1alpha1.AgentVolume) && !ours
	})
}

// readVolumes finds out what kind of disk the container's state may lie on: memory-backed volumes count as memory, persistent ones
// keep old task directories over a restart.
func (f *containerFacts) readVolumes(template *corev1.PodTemplateSpec, c *corev1.Container) {
	for _, mount := range c.VolumeMounts {
		i := slices.IndexFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 { // a volumeClaimTemplate of a StatefulSet
			f.statePersistent = true
			continue
		}
		switch volume := template.Spec.Volumes[i]; {
		case volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory:
			f.stateInMemory = true
		case volume.PersistentVolumeClaim != nil, volume.HostPath != nil:
			f.statePersistent = true
		}
	}
}
