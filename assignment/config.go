// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// ClusterConfig is one Kafka cluster of the operator's configuration.
type ClusterConfig struct {
	// Name that StreamApps use: a DNS label, as their field `kafka.cluster` demands.
	Name string `json:"name"`
	// BootstrapServers, host:port each; at least one.
	BootstrapServers []string `json:"bootstrapServers"`
	// TLS; absent: plain text.
	TLS *TLSConfig `json:"tls,omitempty"`
	// SASL; absent: none.
	SASL *SASLConfig `json:"sasl,omitempty"`
	// AllowedNamespaces whose StreamApps may use the cluster; absent or empty: all.
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`
	// AllowedGroups that StreamApps may name: a group's name, or the beginning of names with "*" at its end; absent or
	// empty: all.
	AllowedGroups []string `json:"allowedGroups,omitempty"`
}

// TLSConfig is how the operator speaks TLS to a cluster. All files are PEM, and are read when a connection is made.
type TLSConfig struct {
	// CAFile holds the authorities to trust; empty: the system's.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the operator's own certificate; both or none.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile belongs to CertFile.
	KeyFile string `json:"keyFile,omitempty"`
	// ServerName is what the brokers' certificates must name; empty: the host that is connected to.
	ServerName string `json:"serverName,omitempty"`
}

// SASLConfig is how the operator proves who it is. The files are read when a connection is made, so that a Secret can
// be renewed while the operator runs; white space around their content is dropped.
type SASLConfig struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Mechanism string `json:"mechanism"`
	// UsernameFile holds the user's name.
	UsernameFile string `json:"usernameFile"`
	// PasswordFile holds the password.
	PasswordFile string `json:"passwordFile"`
}

// The SASL mechanisms that are supported.
const (
	MechanismPlain       = "PLAIN"
	MechanismSCRAMSHA256 = "SCRAM-SHA-256"
	MechanismSCRAMSHA512 = "SCRAM-SHA-512"
)

// LoadClusters reads the operator's configuration of Kafka clusters: YAML or JSON with one key, clusters. Unknown keys
// are refused. Every fault is named, with cluster and field.
func LoadClusters(path string) ([]ClusterConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the Kafka clusters: %w", err)
	}
	clusters, err := ParseClusters(data)
	if err != nil {
		return nil, fmt.Errorf("file %s of Kafka clusters: %w", path, err)
	}
	return clusters, nil
}

// ParseClusters is [LoadClusters] without the file.
func ParseClusters(data []byte) ([]ClusterConfig, error) {
	var file struct {
		Clusters []json.RawMessage `json:"clusters"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("must be YAML with the key clusters: %w", err)
	}
	var clusters []ClusterConfig
	var faults []error
	names := map[string]bool{}
	for i, raw := range file.Clusters {
		c, found := parseCluster(raw)
		at := fmt.Sprintf("clusters[%d]", i)
		if c.Name != "" {
			at = fmt.Sprintf("cluster %q", c.Name)
		}
		if c.Name != "" && names[c.Name] {
			found = append(found, errors.New("name must be there once"))
		}
		for _, fault := range found {
			faults = append(faults, fmt.Errorf("%s: %w", at, fault))
		}
		names[c.Name] = true
		clusters = append(clusters, c)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return clusters, nil
}

// parseCluster reads one cluster. Unknown keys are refused; the name is given even then, for the message.
func parseCluster(raw json.RawMessage) (ClusterConfig, []error) {
	var c ClusterConfig
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&c); err != nil {
		_ = json.Unmarshal(raw, &c) // Only for the name; the fault is told.
		return c, []error{err}
	}
	return c, c.faults()
}

// dnsLabel is a name as RFC 1123 has it, in small letters.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// faults lists what is wrong with a cluster's configuration.
func (c ClusterConfig) faults() []error {
	var faults []error
	switch {
	case c.Name == "":
		faults = append(faults, errors.New("name must be set"))
	case !dnsLabel.MatchString(c.Name):
		faults = append(faults, errors.New("name must be a DNS label, or no StreamApp can name it"))
	}
	if len(c.BootstrapServers) == 0 {
		faults = append(faults, errors.New("bootstrapServers must name at least one host:port"))
	}
	for i, server := range c.BootstrapServers {
		if err := checkServer(server); err != nil {
			faults = append(faults, fmt.Errorf("bootstrapServers[%d]: %w", i, err))
		}
	}
	if t := c.TLS; t != nil && (t.CertFile == "") != (t.KeyFile == "") {
		faults = append(faults, errors.New("tls: certFile and keyFile must both be set, or neither"))
	}
	faults = append(faults, c.SASL.faults()...)
	faults = append(faults, emptyEntries("allowedNamespaces", c.AllowedNamespaces)...)
	return append(faults, emptyEntries("allowedGroups", c.AllowedGroups)...)
}

// faults lists what is wrong with a SASL configuration; nil is none.
func (s *SASLConfig) faults() []error {
	if s == nil {
		return nil
	}
	var faults []error
	if !slices.Contains([]string{MechanismPlain, MechanismSCRAMSHA256, MechanismSCRAMSHA512}, s.Mechanism) {
		faults = append(faults, fmt.Errorf("sasl.mechanism: %q must be %s, %s or %s", s.Mechanism, MechanismPlain,
			MechanismSCRAMSHA256, MechanismSCRAMSHA512))
	}
	if s.UsernameFile == "" {
		faults = append(faults, errors.New("sasl.usernameFile must be set"))
	}
	if s.PasswordFile == "" {
		faults = append(faults, errors.New("sasl.passwordFile must be set"))
	}
	return faults
}

// emptyEntries finds empty strings in a list, which would allow nothing while looking like something.
func emptyEntries(field string, entries []string) []error {
	var faults []error
	for i, entry := range entries {
		if entry == "" {
			faults = append(faults, fmt.Errorf("%s[%d] must not be empty", field, i))
		}
	}
	return faults
}

// checkServer checks one bootstrap server.
func checkServer(server string) error {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return fmt.Errorf("%q must be host:port", server)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" {
		return fmt.Errorf("%q must be host:port, with a port from 1 to 65535", server)
	}
	return nil
}

// Permits says whether a StreamApp of a namespace may name a group of this cluster.
func (c ClusterConfig) Permits(namespace, group string) bool {
	if len(c.AllowedNamespaces) > 0 && !slices.Contains(c.AllowedNamespaces, namespace) {
		return false
	}
	return len(c.AllowedGroups) == 0 || slices.ContainsFunc(c.AllowedGroups, func(allowed string) bool {
		prefix, isPrefix := strings.CutSuffix(allowed, "*")
		return allowed == group || isPrefix && strings.HasPrefix(group, prefix)
	})
}
