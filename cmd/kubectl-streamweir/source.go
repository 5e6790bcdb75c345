// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"streamweir.dev/streamweir/api/v1alpha1"
	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/controllers/whatif"
)

// source is where a question's facts come from: what the flags say that all commands have.
type source struct {
	files                 []string
	namespace, container  string
	kubeconfig, context   string
	topology, properties  string
	partitions            map[string]int
	kafkaClusters, output string
	bootstrapServers      []string
}

// addFlags defines the flags.
func (s *source) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVarP(&s.files, "filename", "f", nil,
		"Files with manifests, - for standard input: no cluster is asked. Kinds other than StreamApp, workloads and what concerns them are skipped.")
	flags.StringVarP(&s.namespace, "namespace", "n", "", "Namespace; in files, that of objects that name none.")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "Path of the kubeconfig file.")
	flags.StringVar(&s.context, "context", "", "Context of the kubeconfig file.")
	flags.StringVar(&s.container, "container", "", "Container that runs the application, where there is no StreamApp that names it.")
	flags.StringVar(&s.topology, "topology", "", "File with the text of Topology#describe().")
	flags.StringToIntVar(&s.partitions, "partitions", nil, "Partitions of topics, for --topology: orders=12,customers=6.")
	flags.StringVar(&s.properties, "properties", "", "File with the application's own properties. What the StreamApp says counts before it.")
	flags.StringSliceVar(&s.bootstrapServers, "bootstrap-servers", nil, "Brokers (host:port) that show the group, in plain text.")
	flags.StringVar(&s.kafkaClusters, "kafka-clusters", "", "The operator's file of Kafka clusters: the one that the StreamApp names is asked.")
	command.MarkFlagsMutuallyExclusive("topology", "bootstrap-servers", "kafka-clusters")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	command.ValidArgsFunction = s.complete
}

// addOutput defines the flag of the format.
func (s *source) addOutput(command *cobra.Command) {
	command.Flags().StringVarP(&s.output, "output", "o", "table", "table for people, json or yaml for programs.")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// checkOutput refuses a format before any work is done.
func (s *source) checkOutput() error {
	switch s.output {
	case "table", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output=%s: it must be table, json or yaml", s.output)
}

// named says whether any source besides the objects was named.
func (s *source) named() bool {
	return s.topology != "" || s.properties != "" || s.kafkaClusters != "" || len(s.bootstrapServers) > 0
}

// question reads everything that a question is made of.
func (s *source) question(ctx context.Context, in io.Reader, args []string) (whatif.Question, error) {
	question := whatif.Question{Now: time.Now()}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	var err error
	if len(s.files) > 0 {
		question.App, question.Objects, err = s.offline(in, name)
	} else {
		question.App, question.Objects, err = s.live(ctx, name)
	}
	if err != nil {
		return question, err
	}
	question.App.Spec.Container = cmp.Or(question.App.Spec.Container, s.container)
	return question, s.facts(ctx, &question)
}

// facts reads the files that the flags name, and asks Kafka.
func (s *source) facts(ctx context.Context, question *whatif.Question) error {
	if s.topology != "" {
		text, err := os.ReadFile(s.topology)
		if err != nil {
			return fmt.Errorf("--topology: %w", err)
		}
		question.Topology, question.Partitions = string(text), map[string]int32{}
		for topic, n := range s.partitions {
			if n < 1 || n > maxPartitions {
				return fmt.Errorf("--partitions: topic %s has %d partitions: it must be from 1 to %d", topic, n, maxPartitions)
			}
			question.Partitions[topic] = int32(n)
		}
	} else if len(s.partitions) > 0 {
		return errors.New("--partitions are those of a topology: give --topology as well")
	}
	if s.properties != "" {
		text, err := os.ReadFile(s.properties)
		if err != nil {
			return fmt.Errorf("--properties: %w", err)
		}
		if question.Properties, err = parseProperties(string(text)); err != nil {
			return fmt.Errorf("%s: %w", s.properties, err)
		}
	}
	var err error
	question.Group, err = s.group(ctx, question.App)
	return err
}

// maxPartitions is what Kafka's protocol has room for (int32).
const maxPartitions = 1<<31 - 1

// askWithin bounds how long brokers are asked.
const askWithin = 30 * time.Second

// group asks Kafka for the application's group; nil where no brokers were named.
func (s *source) group(ctx context.Context, app *v1alpha1.StreamApp) (*assignment.Group, error) {
	config := assignment.ClusterConfig{Name: "bootstrap-servers", BootstrapServers: s.bootstrapServers}
	switch {
	case s.kafkaClusters != "":
		clusters, err := assignment.LoadClusters(s.kafkaClusters)
		if err != nil {
			return nil, fmt.Errorf("--kafka-clusters: %w", err)
		}
		if config, err = find(clusters, app.Spec.Kafka.Cluster); err != nil {
			return nil, fmt.Errorf("--kafka-clusters: %w", err)
		}
	case len(s.bootstrapServers) == 0:
		return nil, nil
	}
	cluster, err := assignment.NewCluster(config)
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	id := cmp.Or(app.Spec.Kafka.ApplicationID, app.Name)
	result := cluster.Describe(ctx, []string{id})[id]
	if result.Err != nil {
		return nil, fmt.Errorf("asking Kafka for group %s: %w", id, result.Err)
	}
	if !result.Group.Assigned {
		return nil, fmt.Errorf("group %s is %s, so its assignment is not known: ask again when it is Stable, or give --topology", id, result.Group.State)
	}
	return &result.Group, nil
}

// find is the cluster of a name.
func find(clusters []assignment.ClusterConfig, name string) (assignment.ClusterConfig, error) {
	var names []string
	for _, c := range clusters {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return assignment.ClusterConfig{}, fmt.Errorf("the file has no cluster %q, which `kafka.cluster` of the StreamApp names: it has %s",
		name, strings.Join(names, ", "))
}
