// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package localkafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Loopback is the address of the broker's listener for this process.
const Loopback = "127.0.0.1"

// clusterID is any base64 UUID; each broker has a storage folder of its own.
const clusterID = "c3RyZWFtd2Vpci10ZXN0cw"

// startTimeout is the longest time from the start of the broker until it serves; tests share the cores of the machine.
const startTimeout = 2 * time.Minute

// BrokerOptions configure a broker.
type BrokerOptions struct {
	// Folder is for storage, configuration and log. It must exist.
	Folder string
	// ClassPath is that of the Java programs.
	ClassPath string
	// Heap is the largest Java heap, as in -Xmx.
	Heap string
	// InstanceHost is an address of this machine for a second listener; empty for none.
	InstanceHost string
	// Properties are added to the configuration, or replace parts of it.
	Properties map[string]string
	// Client has further options of the client.
	Client []kgo.Opt
}

// Broker is a running Kafka broker: one node, which is the controller as well.
type Broker struct {
	// Address (host:port) is for clients in this process, InstanceAddress for clients at BrokerOptions.InstanceHost.
	Address         string
	InstanceAddress string
	Process         *Process
	Client          *kgo.Client
}

// StartBroker starts a broker with empty storage and returns when it serves. Stop ends it.
func StartBroker(ctx context.Context, options BrokerOptions) (*Broker, error) {
	properties, b, err := configuration(ctx, options)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(options.Folder, "server.properties")
	if err := os.WriteFile(path, []byte(properties), 0o600); err != nil {
		return nil, err
	}
	b.Client, err = kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Address)}, options.Client...)...)
	if err != nil {
		return nil, err
	}
	argv := Java(options.ClassPath, options.Heap, brokerClass, path, clusterID)
	if b.Process, err = Start(ctx, Command{Name: "broker", Folder: options.Folder, Argv: argv}); err != nil {
		b.Client.Close()
		return nil, err
	}
	err = Eventually(ctx, startTimeout, "the broker serves", func(ctx context.Context) error {
		return errors.Join(Final(b.Process.Failure()), b.Client.Ping(ctx))
	})
	if err != nil {
		return nil, errors.Join(err, b.Stop(), errors.New(b.Process.Tail(logTail)))
	}
	return b, nil
}

// logTail is the number of lines of the broker's log in the error of a failed start.
const logTail = 20

// Stop ends the broker.
func (b *Broker) Stop() error {
	b.Client.Close()
	return b.Process.Signal(syscall.SIGKILL)
}

// CreateTopics creates topics with the number of partitions.
func (b *Broker) CreateTopics(ctx context.Context, partitions int32, names ...string) error {
	responses, err := kadm.NewClient(b.Client).CreateTopics(ctx, partitions, 1, nil, names...)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	return responses.Error()
}

// configuration chooses the addresses and returns the text of server.properties.
func configuration(ctx context.Context, options BrokerOptions) (string, *Broker, error) {
	b := &Broker{}
	var err error
	if b.Address, err = FreeAddress(ctx, Loopback); err != nil {
		return "", nil, err
	}
	controller, err := FreeAddress(ctx, Loopback)
	if err != nil {
		return "", nil, err
	}
	listeners, protocols := "CLIENTS://"+b.Address, "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT"
	if options.InstanceHost != "" {
		if b.InstanceAddress, err = FreeAddress(ctx, options.InstanceHost); err != nil {
			return "", nil, err
		}
		listeners += ",INSTANCES://" + b.InstanceAddress
		protocols += ",INSTANCES:PLAINTEXT"
	}
	properties := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@" + controller,
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "CLIENTS",
		"listeners":                      listeners + ",CONTROLLER://" + controller,
		"advertised.listeners":           listeners,
		"listener.security.protocol.map": protocols,
		"log.dirs":                       filepath.Join(options.Folder, "storage"),
		"num.network.threads":            "2",
		"num.io.threads":                 "2",
		"auto.create.topics.enable":      "false",

		"offsets.topic.num.partitions":                 "1",
		"offsets.topic.replication.factor":             "1",
		"transaction.state.log.num.partitions":         "1",
		"transaction.state.log.replication.factor":     "1",
		"transaction.state.log.min.isr":                "1",
		"share.coordinator.state.topic.num.partitions": "1",
	}
	maps.Copy(properties, options.Properties)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&text, "%s=%s\n", key, properties[key])
	}
	return text.String(), b, nil
}
