// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/internal/testobjects"
)

// configuredGroups has only the configuration of clusters.
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
		"prod":       {Name: "prod", AllowedNamespaces: []string{"*"}},
		"billing":    {Name: "billing", AllowedNamespaces: []string{"billing"}},
		"restricted": {Name: "restricted", AllowedNamespaces: []string{"*"}, AllowedGroups: []string{"shop-*"}},
	}}
	tests := map[string]struct {
		kafka            v1alpha1.KafkaSpec
		serversPermitted bool
		want             assignment.Ref
		wantReason       string
		wantMessage      string
	}{
		"default group has the name of the StreamApp": {
			kafka: v1alpha1.KafkaSpec{Cluster: "prod"}, want: assignment.Ref{Cluster: "prod", ApplicationID: testobjects.App},
		},
		"named group": {
			kafka: v1alpha1.KafkaSpec{Cluster: "prod", ApplicationID: "shop-orders"}, want: assignment.Ref{Cluster: "prod", ApplicationID: "shop-orders"},
		},
		"unknown cluster": {
			kafka: v1alpha1.KafkaSpec{Cluster: "none"}, wantReason: v1alpha1.ReasonUnknownCluster, wantMessage: `"none"`,
		},
		"cluster of another namespace": {
			kafka: v1alpha1.KafkaSpec{Cluster: "billing"}, wantReason: v1alpha1.ReasonUnknownCluster, wantMessage: "namespace shop",
		},
		"cluster that does not permit the group": {
			kafka: v1alpha1.KafkaSpec{Cluster: "restricted"}, wantReason: v1alpha1.ReasonUnknownCluster, wantMessage: `group "orders"`,
		},
		"cluster that permits the group by its prefix": {
			kafka: v1alpha1.KafkaSpec{Cluster: "restricted", ApplicationID: "shop-orders"},
			want:  assignment.Ref{Cluster: "restricted", ApplicationID: "shop-orders"},
		},
		"bootstrap servers without permission": {
			kafka:      v1alpha1.KafkaSpec{BootstrapServers: []string{"a:9092"}},
			wantReason: v1alpha1.ReasonBootstrapServersNotPermitted, wantMessage: "--allow-bootstrap-servers",
		},
		"bootstrap servers with permission": {
			kafka: v1alpha1.KafkaSpec{BootstrapServers: []string{"a:9092", "b:9092"}}, serversPermitted: true,
			want: assignment.Ref{BootstrapServers: "a:9092,b:9092", ApplicationID: testobjects.App},
		},
		"no Kafka": {wantReason: v1alpha1.ReasonNoSource, wantMessage: "`kafka` is not set"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reconciler := &StreamAppReconciler{Groups: groups, AllowBootstrapServers: test.serversPermitted}
			ref, unavailable := reconciler.groupRef(testobjects.StreamApp(func(app *v1alpha1.StreamApp) { app.Spec.Kafka = test.kafka }))
			if unavailable.Reason != test.wantReason || !strings.Contains(unavailable.Message, test.wantMessage) {
				t.Errorf("unavailable = %+v, want reason %q and a message with %q", unavailable, test.wantReason, test.wantMessage)
			}
			if test.wantReason == "" && ref != test.want {
				t.Errorf("ref = %+v, want %+v", ref, test.want)
			}
		})
	}
}
