// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// runSteps runs the steps in order. It stops at the first error.
func (d *demo) runSteps(ctx context.Context) error {
	steps := []struct {
		title string
		do    func(context.Context) error
	}{
		{"Start a Kubernetes API server and etcd", d.startControlPlane},
		{"Install Streamweir from config/default, as in a real cluster", d.install},
		{"Start Kafka with the application's topic, 12 partitions", d.startKafka},
		{"Start the operator with the permissions of config/rbac", d.startOperator},
		{"Add a StreamApp for the StatefulSet of the application", d.addStreamApp},
		{"Create three pods; the admission policy injects the plan", d.scaleUp},
		{"Start the application: the operator reads the task assignment and plans", d.joinKafka},
		{"Fail a node: Kafka moves the tasks of its pod to the others", d.loseNode},
		{"Wait until plan, memory limits and configuration follow", d.follow},
		{"Show the StreamApp with kubectl", d.showToUser},
	}
	from := time.Now()
	for i, step := range steps {
		d.headline(i+1, len(steps), step.title)
		begin := time.Now()
		if err := step.do(ctx); err != nil {
			return err
		}
		d.printf("   (%.1f s)\n", time.Since(begin).Seconds())
	}
	d.printf("\nAll steps succeeded in %.0f s. Every figure was read back from the API server, from Kafka or from the files in the pods.\n",
		time.Since(from).Seconds())
	return nil
}

// addStreamApp applies the manifests and waits until the operator has published the first plan.
func (d *demo) addStreamApp(ctx context.Context) error {
	text, err := d.applyManifests(ctx)
	if err != nil {
		return err
	}
	d.indented(text)
	if err := d.startNodes(ctx); err != nil {
		return err
	}
	_, err = d.until(ctx, "waiting for the first plan, derived from the limit and the JVM", func(v *view) error {
		if len(v.plan) == 0 {
			return errors.New("no plan is published")
		}
		return nil
	})
	return err
}

// scaleUp creates the pods. The admission policy injects the plan.
func (d *demo) scaleUp(ctx context.Context) error {
	if err := d.scale(ctx); err != nil {
		return err
	}
	v, err := d.until(ctx, "waiting for pods with the plan", both(checkPodsRun(replicas), checkInjected))
	if err != nil {
		return err
	}
	for _, name := range v.running() {
		pod := v.pod(name)
		d.printf("   %s on %s: JDK_JAVA_OPTIONS=%s\n", name, pod.Spec.NodeName, optionsOf(pod))
	}
	return nil
}

// joinKafka starts the application's instances with the addresses of the pods.
func (d *demo) joinKafka(ctx context.Context) error {
	v, err := d.look(ctx)
	if err != nil {
		return err
	}
	pods := v.running()
	hosts := make([]string, 0, len(pods))
	for _, pod := range pods {
		hosts = append(hosts, v.pod(pod).Status.PodIP)
	}
	if err := d.kafka.Join(name, hosts...); err != nil {
		return err
	}
	d.before, err = d.until(ctx, "waiting for the plan for the running tasks", both(checkTasksOn(pods), checkPlanned))
	if err != nil {
		return err
	}
	d.pods(d.before, nil)
	d.lines(d.before)
	return nil
}

// loseNode fails a node and the application's instance on it.
func (d *demo) loseNode(ctx context.Context) error {
	d.lost = d.before.running()[replicas-1]
	pod := d.before.pod(d.lost)
	if err := d.nodes.LoseNode(ctx, pod.Spec.NodeName); err != nil {
		return err
	}
	if err := d.kafka.Lose(name, pod.Status.PodIP); err != nil {
		return err
	}
	d.printf("   %s is unreachable, and so is %s. A real cluster detects this after 40 to 55 s, and Kafka moves the\n"+
		"   tasks after 45 s; here both happen at once.\n", pod.Spec.NodeName, d.lost)
	if err := d.kafka.Settle(name); err != nil {
		return err
	}
	v, err := d.until(ctx, "waiting for the rebalance",
		both(checkPodsRun(replicas-1), checkTasksOn(d.before.running()[:replicas-1])))
	if err != nil {
		return err
	}
	d.moves(d.before, v)
	return nil
}

// follow waits until the operator has adapted plan, limits and configuration.
func (d *demo) follow(ctx context.Context) error {
	after, err := d.until(ctx, "waiting for the new plan, limits and configuration",
		both(checkPodsRun(replicas-1), checkFollowed(d.before)))
	if err != nil {
		return err
	}
	d.pods(after, d.before)
	d.lines(after)
	d.planChanges(d.before, after)
	return nil
}

// showToUser runs kubectl.
func (d *demo) showToUser(ctx context.Context) error {
	output, err := d.kubectl(ctx, "get", "streamapps")
	if err != nil {
		return err
	}
	d.printf("   $ kubectl get streamapps\n")
	d.indented(output)
	if !strings.Contains(output, name) {
		return fmt.Errorf("kubectl does not show the StreamApp %s", name)
	}
	return nil
}

// both combines two checks.
func both(first, second func(*view) error) func(*view) error {
	return func(v *view) error {
		if err := first(v); err != nil {
			return err
		}
		return second(v)
	}
}
