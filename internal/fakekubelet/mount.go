// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mount is the content of the ConfigMap volumes of a pod.
type mount struct {
	// touch is the state of the pod when the files were read.
	touch podTouch
	// files holds the content of each ConfigMap by its name.
	files map[string]map[string]string
}

// podTouch is the part of a pod that other components change. After a change, a kubelet reads the pod's volumes again.
type podTouch struct {
	uid        types.UID
	generation int64
	metadata   string
}

// touchOf returns the pod's touch. Printed maps are sorted, so equal maps result in equal text.
func touchOf(pod *corev1.Pod) podTouch {
	return podTouch{
		uid: pod.UID, generation: pod.Generation, metadata: fmt.Sprint(pod.Labels, pod.Annotations),
	}
}

// contentOf returns the files of a ConfigMap in a volume.
func contentOf(configMap *corev1.ConfigMap) map[string]string {
	files := map[string]string{}
	maps.Copy(files, configMap.Data)
	for name, data := range configMap.BinaryData {
		files[name] = string(data)
	}
	return files
}

// Mounted returns the content of a ConfigMap in the containers of a pod, or nil if the pod does not mount it. It is read
// when the pod starts and again after each change of the pod, such as an annotation or a resize.
func (c *Cluster) Mounted(pod, configMap string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.mounts[pod].files[configMap])
}

// mountConfigMaps reads the pod's ConfigMap volumes if the pod is new or has changed. It reports whether all required
// ConfigMaps exist; a running pod keeps its last content.
func (c *Cluster) mountConfigMaps(s *snapshot, pod *corev1.Pod) bool {
	touch := touchOf(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	known, read := c.mounts[pod.Name]
	unchanged := known.touch == touch
	keptBySlowKubelet := c.stale[pod.Name] && known.touch.uid == touch.uid
	if read && (unchanged || keptBySlowKubelet) {
		return true
	}
	files := map[string]map[string]string{}
	for _, source := range configMapsOf(pod) {
		found, exists := s.configMaps[source.Name]
		switch {
		case exists:
			files[source.Name] = contentOf(found)
		case source.Optional == nil || !*source.Optional:
			return pod.Status.Phase == corev1.PodRunning
		}
	}
	c.mounts[pod.Name] = mount{touch: touch, files: files}
	return true
}

// forget removes the state of deleted pods.
func (c *Cluster) forget(s *snapshot) {
	alive := map[string]bool{}
	for i := range s.pods {
		alive[s.pods[i].Name] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for pod := range c.mounts {
		if !alive[pod] {
			delete(c.mounts, pod)
		}
	}
}

// configMapsOf returns the ConfigMap sources of the pod's volumes, projected ones included.
func configMapsOf(pod *corev1.Pod) []configMapSource {
	var sources []configMapSource
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap != nil {
			sources = append(sources, configMapSource{volume.ConfigMap.Name, volume.ConfigMap.Optional})
		}
		if volume.Projected == nil {
			continue
		}
		for _, part := range volume.Projected.Sources {
			if part.ConfigMap != nil {
				sources = append(sources, configMapSource{part.ConfigMap.Name, part.ConfigMap.Optional})
			}
		}
	}
	return sources
}

// configMapSource names a ConfigMap that a pod mounts.
type configMapSource struct {
	Name     string
	Optional *bool
}
