// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
)

// configuredGroups knows clusters by their configuration alone.
type configuredGroups struct {
	Groups
	clusters map[string]assignment.ClusterConfig
}

func (g configuredGroups) Cluster(name string) (assignment.ClusterConfig, bool) {
	cluster, ok := g.clusters[name]
	return cluster, ok
}

func TestGroupRef(t *testing.T) {
	groups := configuredGroups{clusters: map[string]assignment.ClusterConfig{
		"prod": {Name: "prod"}, "other": {Name: "other", AllowedNamespaces: []string{"billing"}}, "tight": {Name: "tight", AllowedGroups: []string{"shop-*"}},
	}}
	cases := map[string]struct {
		kafka   v1alpha1.KafkaSpec
		allowed bool
		want    assignment.Ref
		refused string
		says    string
	}{
		"the group has the StreamApp's name": {kafka: v1alpha1.KafkaSpec{Cluster: "prod"}, want: assignment.Ref{Cluster: "prod", ApplicationID: testApp}},
		"the group has a name of its own": {
			kafka: v1alpha1.KafkaSpec{Cluster: "prod", ApplicationID: "shop-orders"}, want: assignment.Ref{Cluster: "prod", ApplicationID: "shop-orders"},
		},
		"no such cluster":               {kafka: v1alpha1.KafkaSpec{Cluster: "none"}, refused: v1alpha1.ReasonUnknownCluster, says: `"none"`},
		"a cluster of other namespaces": {kafka: v1alpha1.KafkaSpec{Cluster: "other"}, refused: v1alpha1.ReasonUnknownCluster, says: "namespace shop"},
		"a cluster without this group":  {kafka: v1alpha1.KafkaSpec{Cluster: "tight"}, refused: v1alpha1.ReasonUnknownCluster, says: `group "orders"`},
		"a cluster with groups that begin so": {
			kafka: v1alpha1.KafkaSpec{Cluster: "tight", ApplicationID: "shop-orders"}, want: assignment.Ref{Cluster: "tight", ApplicationID: "shop-orders"},
		},
		"brokers, which the operator does not permit": {
			kafka: v1alpha1.KafkaSpec{BootstrapServers: []string{"a:9092"}}, refused: v1alpha1.ReasonBootstrapServersNotPermitted, says: "--allow-bootstrap-servers",
		},
		"brokers, which the operator permits": {
			kafka: v1alpha1.KafkaSpec{BootstrapServers: []string{"a:9092", "b:9092"}}, allowed: true, want: assignment.Ref{BootstrapServers: "a:9092,b:9092", ApplicationID: testApp},
		},
		"no Kafka at all": {refused: v1alpha1.ReasonNoSource, says: "`kafka` is not set"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reconciler := &StreamAppReconciler{Groups: groups, AllowBootstrapServers: c.allowed}
			ref, refused := reconciler.groupRef(streamApp(func(app *v1alpha1.StreamApp) { app.Spec.Kafka = c.kafka }))
			if refused.reason != c.refused || !strings.Contains(refused.message, c.says) {
				t.Errorf("refused = %+v, want reason %q and a message with %q", refused, c.refused, c.says)
			}
			if c.refused == "" && ref != c.want {
				t.Errorf("ref = %+v, want %+v", ref, c.want)
			}
		})
	}
}
