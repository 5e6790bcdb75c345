// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ClusterConfig configures one Kafka cluster of the operator.
type ClusterConfig struct {
	// Name is the name in the field `kafka.cluster` of StreamApps: a DNS label.
	Name string `json:"name"`
	// BootstrapServers are one or more host:port.
	BootstrapServers []string `json:"bootstrapServers"`
	// TLS enables TLS. Without it connections are in plain text.
	TLS *TLSConfig `json:"tls,omitempty"`
	// SASL enables SASL authentication.
	SASL *SASLConfig `json:"sasl,omitempty"`
	// AllowedNamespaces are the namespaces of StreamApps with access to the cluster; AllNamespaces allows all. An empty list allows none.
	AllowedNamespaces []string `json:"allowedNamespaces"`
	// AllowedGroups are the groups available to StreamApps: a name, or a prefix followed by "*". An empty list allows all.
	AllowedGroups []string `json:"allowedGroups,omitempty"`
}

// AllNamespaces is the entry of AllowedNamespaces that allows every namespace.
const AllNamespaces = "*"

// TLSConfig configures TLS. All files are in PEM form and are read for each connection.
type TLSConfig struct {
	// CAFile contains the trusted authorities, by default those of the system.
	CAFile string `json:"caFile,omitempty"`
	// CertFile contains the operator's own certificate. It requires KeyFile.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile contains the key of CertFile.
	KeyFile string `json:"keyFile,omitempty"`
	// ServerName is the expected name in the brokers' certificates, by default the host of the connection.
	ServerName string `json:"serverName,omitempty"`
}

// SASLConfig configures SASL. The files are read for each connection, so that a Secret can be renewed while the operator runs. White space
// around their content is trimmed.
type SASLConfig struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Mechanism string `json:"mechanism"`
	// UsernameFile contains the user name.
	UsernameFile string `json:"usernameFile"`
	// PasswordFile contains the password.
	PasswordFile string `json:"passwordFile"`
}

// Supported SASL mechanisms.
const (
	MechanismPlain       = "PLAIN"
	MechanismSCRAMSHA256 = "SCRAM-SHA-256"
	MechanismSCRAMSHA512 = "SCRAM-SHA-512"
)

// ParseClusters parses Kafka clusters, each in JSON. Unknown keys are errors. The error lists all faults with cluster and field.
func ParseClusters(raws []json.RawMessage) ([]ClusterConfig, error) {
	var clusters []ClusterConfig
	var faults []error
	names := map[string]bool{}
	for i, raw := range raws {
		cluster, found := parseCluster(raw)
		at := fmt.Sprintf("clusters[%d]", i)
		if cluster.Name != "" {
			at = fmt.Sprintf("cluster %q", cluster.Name)
		}
		if cluster.Name != "" && names[cluster.Name] {
			found = append(found, errors.New("name must be unique"))
		}
		for _, fault := range found {
			faults = append(faults, fmt.Errorf("%s: %w", at, fault))
		}
		names[cluster.Name] = true
		clusters = append(clusters, cluster)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return clusters, nil
}

// parseCluster parses one cluster. The result contains the name even if there are unknown keys, for the message.
func parseCluster(raw json.RawMessage) (ClusterConfig, []error) {
	var config ClusterConfig
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&config); err != nil {
		_ = json.Unmarshal(raw, &config) // Only for the name; the error above is returned.
		return config, []error{err}
	}
	return config, config.faults()
}

// dnsLabel is a DNS label of RFC 1123 in lower case.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// faults returns the faults of a cluster's configuration.
func (c ClusterConfig) faults() []error {
	var faults []error
	switch {
	case c.Name == "":
		faults = append(faults, errors.New("name must be set"))
	case !dnsLabel.MatchString(c.Name):
		faults = append(faults, errors.New("name must be a DNS label"))
	}
	if len(c.BootstrapServers) == 0 {
		faults = append(faults, errors.New("bootstrapServers must name at least one host:port"))
	}
	for i, server := range c.BootstrapServers {
		if err := checkServer(server); err != nil {
			faults = append(faults, fmt.Errorf("bootstrapServers[%d]: %w", i, err))
		}
	}
	if c.TLS != nil && (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		faults = append(faults, errors.New("tls: certFile and keyFile must both be set, or neither"))
	}
	faults = append(faults, c.SASL.faults()...)
	if len(c.AllowedNamespaces) == 0 {
		faults = append(faults, errors.New(`allowedNamespaces must name at least one namespace; ["*"] allows all`))
	}
	faults = append(faults, emptyEntries("allowedNamespaces", c.AllowedNamespaces)...)
	if len(c.AllowedNamespaces) > 1 && slices.Contains(c.AllowedNamespaces, AllNamespaces) {
		faults = append(faults, errors.New(`allowedNamespaces must be ["*"] alone, or a list of namespaces`))
	}
	return append(faults, emptyEntries("allowedGroups", c.AllowedGroups)...)
}

// faults returns the faults of a SASL configuration, none for nil.
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

// emptyEntries returns an error for each empty string in a list. An empty entry would allow nothing.
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

// Permits returns whether a StreamApp of a namespace may use a group of this cluster.
func (c ClusterConfig) Permits(namespace, group string) bool {
	if !slices.Contains(c.AllowedNamespaces, namespace) && !slices.Contains(c.AllowedNamespaces, AllNamespaces) {
		return false
	}
	return len(c.AllowedGroups) == 0 || slices.ContainsFunc(c.AllowedGroups, func(allowed string) bool {
		prefix, isPrefix := strings.CutSuffix(allowed, "*")
		return allowed == group || (isPrefix && strings.HasPrefix(group, prefix))
	})
}
