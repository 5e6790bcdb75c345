// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"streamweir.dev/streamweir/agent"
	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/internal/testcluster"
	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

// TestMain starts a control plane and applies config/default to it.
func TestMain(m *testing.M) { testcluster.Main(m) }

// fixture is a namespace with an operator of its own, whose pods are real JVMs with the real agent.
type fixture struct {
	*testcluster.Cluster
	tb  testing.TB
	app *kafkatest.RunningApplication
	jar string

	mu        sync.Mutex
	instances map[string]*kafkatest.Process // by pod
}

// newFixture creates the namespace and runs the operator in it as main does, but without a Kafka cluster.
func newFixture(tb testing.TB, namespace string, app *kafkatest.RunningApplication) *fixture {
	tb.Helper()
	f := &fixture{
		Cluster: testcluster.New(tb, namespace, testcluster.Options{AgentJar: agent.Jar}),
		tb:      tb, app: app, jar: filepath.Join(tb.TempDir(), v1alpha1.AgentJarKey), instances: map[string]*kafkatest.Process{},
	}
	if err := os.WriteFile(f.jar, agent.Jar, 0o600); err != nil {
		tb.Fatal(err)
	}
	return f
}

// startInstance starts the JVM of a pod with the agent, the pod's UID and the folder of the mounted plan, and returns its address.
func (f *fixture) startInstance(name string) string {
	pod := &corev1.Pod{}
	if err := f.Get(pod, name); err != nil {
		return ""
	}
	folder := f.tb.TempDir()
	process := f.app.StartInstance(f.tb, kafkatest.Instance{
		Name:        name,
		Environment: []string{fmt.Sprintf("%s=%s", v1alpha1.PodUIDVariable, pod.UID), "MALLOC_ARENA_MAX=2"},
		JavaOptions: []string{fmt.Sprintf("-javaagent:%s=plan=%s", f.jar, folder)},
	})
	f.mu.Lock()
	f.instances[name] = process
	f.mu.Unlock()
	f.Background(func(ctx context.Context) error { return f.project(ctx, name, folder) })
	return process.Address.String()
}

// planConfigMap is the name of the plan ConfigMap.
const planConfigMap = "streamweir-plan-shop"

// project copies the files that the kubelet mounts into the folder that the JVM reads, on every change.
func (f *fixture) project(ctx context.Context, pod, folder string) error {
	var last string
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		files := f.Kubelet.Mounted(pod, planConfigMap)
		if revision := files[planfile.RevisionKey]; revision == last || revision == "" {
			continue
		}
		for name, content := range files {
			path := filepath.Join(folder, name)
			if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
				return err
			}
			if err := os.Rename(path+".new", path); err != nil {
				return err
			}
		}
		last = files[planfile.RevisionKey]
	}
}

// instance returns the JVM of a pod.
func (f *fixture) instance(name string) *kafkatest.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.instances[name]
}

// processes returns the JVMs of some pods.
func (f *fixture) processes(names ...string) []*kafkatest.Process {
	var all []*kafkatest.Process
	for _, name := range names {
		all = append(all, f.instance(name))
	}
	return all
}
