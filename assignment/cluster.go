// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Limits of single steps. A few of them fit into the timeout of a poll ([DefaultIntervals]).
const (
	dialTimeout    = 3 * time.Second
	requestTimeout = 5 * time.Second
	requestTries   = 3
	// Pauses between tries, as in Kafka's own clients (retry.backoff.ms and retry.backoff.max.ms, KIP-580).
	retryPause    = 100 * time.Millisecond
	maxRetryPause = time.Second
)

// errCredentials is the error of an unusable credentials file.
var errCredentials = errors.New("the credentials of the cluster are unusable")

// Cluster is the client of one Kafka cluster. It implements [Describer].
type Cluster struct {
	config ClusterConfig
	client *kgo.Client

	mu        sync.Mutex // One description at a time.
	protocols map[string]Protocol
	catalog   *catalog
	apps      map[string]appTopics
}

// NewCluster returns a client. It connects and reads the files of the configuration when it is first used.
func NewCluster(config ClusterConfig) (*Cluster, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(config.BootstrapServers...),
		kgo.ClientID("streamweir"),
		kgo.Dialer(dialer(config.TLS)),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.RequestRetries(requestTries),
		kgo.RetryTimeout(requestTimeout),
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(retryPause<<min(tries, 10), maxRetryPause) }),
		kgo.DisableClientMetrics(),
	}
	if config.SASL != nil {
		options = append(options, kgo.SASL(config.SASL.mechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, &Error{Class: ClassUnreachable, Err: err}
	}
	return &Cluster{config: config, client: client, protocols: map[string]Protocol{}, apps: map[string]appTopics{}}, nil
}

// Close ends all connections.
func (c *Cluster) Close() { c.client.Close() }

// dialer returns the function for connecting. It reads the TLS files again for each connection.
func dialer(config *TLSConfig) func(ctx context.Context, network, host string) (net.Conn, error) {
	plainDialer := &net.Dialer{Timeout: dialTimeout}
	if config == nil {
		return plainDialer.DialContext
	}
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		settings, err := config.settings(host)
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{NetDialer: plainDialer, Config: settings}).DialContext(ctx, network, host)
	}
}

// settings reads the TLS files.
func (t *TLSConfig) settings(address string) (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if host, _, err := net.SplitHostPort(address); err == nil && settings.ServerName == "" {
		settings.ServerName = host
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: tls.caFile: %w", errCredentials, err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: tls.caFile %s must contain certificates in PEM form", errCredentials, t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w: tls.certFile and tls.keyFile: %w", errCredentials, err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// mechanism returns the SASL mechanism. It reads its files again for each connection.
func (s *SASLConfig) mechanism() sasl.Mechanism {
	scramAuth := func(context.Context) (scram.Auth, error) {
		user, password, err := s.read()
		return scram.Auth{User: user, Pass: password}, err
	}
	switch s.Mechanism {
	case MechanismSCRAMSHA256:
		return scram.Sha256(scramAuth)
	case MechanismSCRAMSHA512:
		return scram.Sha512(scramAuth)
	}
	return plain.Plain(func(context.Context) (plain.Auth, error) {
		user, password, err := s.read()
		return plain.Auth{User: user, Pass: password}, err
	})
}

// read reads user and password.
func (s *SASLConfig) read() (user, password string, err error) {
	if user, err = readSecret("sasl.usernameFile", s.UsernameFile); err != nil {
		return "", "", err
	}
	password, err = readSecret("sasl.passwordFile", s.PasswordFile)
	return user, password, err
}

// readSecret reads one value from a file and trims white space.
func readSecret(field, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", errCredentials, field, err)
	}
	value := strings.TrimSpace(string(data))
	if value == "" {
		return "", fmt.Errorf("%w: %s %s must not be empty", errCredentials, field, path)
	}
	return value, nil
}
