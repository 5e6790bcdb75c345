// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/assignment"
)

// clustersOf returns the list clusters of a file.
func clustersOf(t *testing.T, text string) []json.RawMessage {
	t.Helper()
	var file struct {
		Clusters []json.RawMessage `json:"clusters"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return file.Clusters
}

func TestParseClusters(t *testing.T) {
	cases := map[string]struct {
		file       string
		want       []assignment.ClusterConfig
		wantFaults []string
	}{
		"all fields": {
			file: `
clusters:
- name: prod
  bootstrapServers: ["kafka-0.kafka:9093", "[fd00::1]:9093"]
  tls: {caFile: /tls/ca.crt, certFile: /tls/tls.crt, keyFile: /tls/tls.key, serverName: kafka}
  sasl: {mechanism: SCRAM-SHA-512, usernameFile: /sasl/user, passwordFile: /sasl/password}
  allowedNamespaces: [shop]
  allowedGroups: ["orders", "payments-*"]
`,
			want: []assignment.ClusterConfig{{
				Name: "prod", BootstrapServers: []string{"kafka-0.kafka:9093", "[fd00::1]:9093"},
				TLS: &assignment.TLSConfig{CAFile: "/tls/ca.crt", CertFile: "/tls/tls.crt", KeyFile: "/tls/tls.key",
					ServerName: "kafka"},
				SASL:              &assignment.SASLConfig{Mechanism: "SCRAM-SHA-512", UsernameFile: "/sasl/user", PasswordFile: "/sasl/password"},
				AllowedNamespaces: []string{"shop"}, AllowedGroups: []string{"orders", "payments-*"},
			}},
		},
		"required fields only, as JSON": {
			file: `{"clusters": [{"name": "dev", "bootstrapServers": ["localhost:9092"], "allowedNamespaces": ["*"]}]}`,
			want: []assignment.ClusterConfig{{Name: "dev", BootstrapServers: []string{"localhost:9092"}, AllowedNamespaces: []string{"*"}}},
		},
		"TLS with all defaults": {
			file: `{"clusters": [{"name": "dev", "bootstrapServers": ["localhost:9092"], "allowedNamespaces": ["*"], "tls": {}}]}`,
			want: []assignment.ClusterConfig{{
				Name: "dev", BootstrapServers: []string{"localhost:9092"}, AllowedNamespaces: []string{"*"}, TLS: &assignment.TLSConfig{},
			}},
		},
		"no clusters": {file: `clusters: []`},
		"a value of another type": {file: `{clusters: [{name: a, bootstrapServers: "a:1"}]}`,
			wantFaults: []string{`cluster "a": json: cannot unmarshal string`}},
		"an unknown key": {file: `{clusters: [{name: a, allowedNamespaces: [shop], bootstrapServers: ["a:1"], tsl: {}}]}`,
			wantFaults: []string{`cluster "a": json: unknown field "tsl"`}},
		"a password in plain text": {file: `{clusters: [{name: a, allowedNamespaces: [shop], bootstrapServers: ["a:1"], sasl: {password: x}}]}`,
			wantFaults: []string{`cluster "a": json: unknown field "password"`}},
		"no name and no servers": {file: `{clusters: [{}]}`,
			wantFaults: []string{"clusters[0]: name must be set", "clusters[0]: bootstrapServers must name at least one host:port"}},
		"a name that is not a DNS label": {file: `{clusters: [{name: Prod_EU, allowedNamespaces: [shop], bootstrapServers: ["a:1"]}]}`,
			wantFaults: []string{`cluster "Prod_EU": name must be a DNS label`}},
		"a name twice": {file: `{clusters: [{name: a, allowedNamespaces: [shop], bootstrapServers: ["a:1"]}, {name: a, allowedNamespaces: [shop], bootstrapServers: ["a:1"]}]}`,
			wantFaults: []string{`cluster "a": name must be unique`}},
		"malformed servers": {file: `{clusters: [{name: a,
			bootstrapServers: [kafka, "kafka:0", "kafka:65536", "kafka:x", ":9092"]}]}`, wantFaults: []string{
			`cluster "a": bootstrapServers[0]: "kafka" must be host:port`,
			`cluster "a": bootstrapServers[1]: "kafka:0" must be host:port, with a port from 1 to 65535`,
			`bootstrapServers[2]: "kafka:65536"`, `bootstrapServers[3]: "kafka:x"`, `bootstrapServers[4]: ":9092"`}},
		"half a certificate": {file: `{clusters: [{name: a, allowedNamespaces: [shop], bootstrapServers: ["a:1"], tls: {certFile: x}}]}`,
			wantFaults: []string{`cluster "a": tls: certFile and keyFile must both be set, or neither`}},
		"SASL without files": {file: `{clusters: [{name: a, allowedNamespaces: [shop], bootstrapServers: ["a:1"], sasl: {mechanism: GSSAPI}}]}`, wantFaults: []string{
			`cluster "a": sasl.mechanism: "GSSAPI" must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512`,
			`cluster "a": sasl.usernameFile must be set`, `cluster "a": sasl.passwordFile must be set`}},
		"no namespaces": {file: `{clusters: [{name: a, bootstrapServers: ["a:1"]}]}`,
			wantFaults: []string{`cluster "a": allowedNamespaces must name at least one namespace; ["*"] allows all`}},
		"all namespaces and one more": {file: `{clusters: [{name: a, allowedNamespaces: [shop, "*"], bootstrapServers: ["a:1"]}]}`,
			wantFaults: []string{`cluster "a": allowedNamespaces must be ["*"] alone, or a list of namespaces`}},
		"empty entries that would allow nothing": {file: `{clusters: [{name: a, bootstrapServers: ["a:1"],
			allowedNamespaces: [""], allowedGroups: ["x", ""]}]}`,
			wantFaults: []string{`cluster "a": allowedNamespaces[0] must not be empty`, `cluster "a": allowedGroups[1] must not be empty`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := assignment.ParseClusters(clustersOf(t, c.file))
			if len(c.wantFaults) == 0 {
				if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
					t.Errorf("parsed: %v (-want +got):\n%s", err, diff)
				}
				return
			}
			for _, want := range c.wantFaults {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, should contain %q", err, want)
				}
			}
		})
	}
}

func TestPermits(t *testing.T) {
	closed := assignment.ClusterConfig{AllowedNamespaces: []string{"shop", "bank"}, AllowedGroups: []string{"orders", "payments-*"}}
	cases := map[string]struct {
		config           assignment.ClusterConfig
		namespace, group string
		want             bool
	}{
		"nothing without namespaces":             {assignment.ClusterConfig{}, "any", "any", false},
		"every group of every namespace":         {assignment.ClusterConfig{AllowedNamespaces: []string{"*"}}, "any", "any", true},
		"a named group":                          {closed, "shop", "orders", true},
		"a group with an allowed prefix":         {closed, "bank", "payments-eu", true},
		"the prefix itself":                      {closed, "bank", "payments-", true},
		"a group with an allowed name as prefix": {closed, "shop", "orders-eu", false},
		"a group with half the prefix":           {closed, "shop", "payments", false},
		"another namespace":                      {closed, "other", "orders", false},
		"a namespace with a longer name":         {closed, "shop2", "orders", false},
		"a star as all groups":                   {assignment.ClusterConfig{AllowedNamespaces: []string{"*"}, AllowedGroups: []string{"*"}}, "any", "any", true},
		"namespaces alone, with any group":       {assignment.ClusterConfig{AllowedNamespaces: []string{"shop"}}, "shop", "any", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.config.Permits(c.namespace, c.group); got != c.want {
				t.Errorf("Permits(%q, %q) is %v", c.namespace, c.group, got)
			}
		})
	}
}
