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
	"streamweir.dev/streamweir/internal/operatorconfig"
)

// source names the sources of facts. Its flags are common to all commands.
type source struct {
	files                []string
	namespace, container string
	kubeconfig, context  string
	topology, properties string
	partitions           map[string]int
	operatorConfig       string
	output               string
	bootstrapServers     []string
}

// addFlags defines the flags of the sources.
func (s *source) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVarP(&s.files, "filename", "f", nil,
		"Files with manifests, or - for standard input; no cluster is read. Kinds that do not affect the answer are skipped.")
	flags.StringVarP(&s.namespace, "namespace", "n", "", "Namespace. For files, the namespace of objects without one.")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "Path of the kubeconfig file.")
	flags.StringVar(&s.context, "context", "", "Context of the kubeconfig file.")
	flags.StringVar(&s.container, "container", "", "Container of the application, if no StreamApp names it.")
	flags.StringVar(&s.topology, "topology", "", "File with the output of Topology#describe().")
	flags.StringToIntVar(&s.partitions, "partitions", nil, "Partitions of the topics of --topology: orders=12,customers=6.")
	flags.StringVar(&s.properties, "properties", "", "File with the application's own properties. The StreamApp takes precedence.")
	flags.StringSliceVar(&s.bootstrapServers, "bootstrap-servers", nil, "Brokers (host:port) of the Kafka group, without TLS and authentication.")
	flags.StringVar(&s.operatorConfig, "operator-config", "", "File with the operator's configuration. The StreamApp names the Kafka cluster to read.")
	command.MarkFlagsMutuallyExclusive("topology", "bootstrap-servers", "operator-config")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	command.ValidArgsFunction = s.complete
}

// addOutput defines the flag for the output format.
func (s *source) addOutput(command *cobra.Command) {
	command.Flags().StringVarP(&s.output, "output", "o", "table", "Output format: table, json or yaml.")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// checkOutput validates the output format before any work.
func (s *source) checkOutput() error {
	switch s.output {
	case "table", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output=%s: it must be table, json or yaml", s.output)
}

// hasOtherSources returns whether the flags name a source besides the objects.
func (s *source) hasOtherSources() bool {
	return s.topology != "" || s.properties != "" || s.operatorConfig != "" || len(s.bootstrapServers) > 0
}

// question reads the objects and the facts of a question.
func (s *source) question(ctx context.Context, in io.Reader, args []string) (whatif.Question, error) {
	question, err := s.objects(ctx, in, args)
	if err != nil {
		return question, err
	}
	return question, s.facts(ctx, &question)
}

// objects reads the StreamApp and its objects, from files or a cluster.
func (s *source) objects(ctx context.Context, in io.Reader, args []string) (whatif.Question, error) {
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
	return question, err
}

// facts reads the files of the flags and the Kafka group.
func (s *source) facts(ctx context.Context, question *whatif.Question) error {
	question.App.Spec.Container = cmp.Or(question.App.Spec.Container, s.container)
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
		return errors.New("--partitions requires --topology")
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

// maxPartitions is the largest number in Kafka's protocol (int32).
const maxPartitions = 1<<31 - 1

// describeWithin bounds the time for reading a group.
const describeWithin = 30 * time.Second

// group reads the application's Kafka group; nil without brokers.
func (s *source) group(ctx context.Context, app *v1alpha1.StreamApp) (*assignment.Group, error) {
	config := assignment.ClusterConfig{Name: "bootstrap-servers", BootstrapServers: s.bootstrapServers}
	switch {
	case s.operatorConfig != "":
		operator, err := operatorconfig.Load(s.operatorConfig)
		if err != nil {
			return nil, fmt.Errorf("--operator-config: %w", err)
		}
		if config, err = findCluster(operator.Clusters, app.Spec.Kafka.Cluster); err != nil {
			return nil, fmt.Errorf("--operator-config: %w", err)
		}
	case len(s.bootstrapServers) == 0:
		return nil, nil
	}
	cluster, err := assignment.NewCluster(config)
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	id := cmp.Or(app.Spec.Kafka.ApplicationID, app.Name)
	result := cluster.Describe(ctx, []string{id})[id]
	if result.Err != nil {
		return nil, fmt.Errorf("reading Kafka group %s: %w", id, result.Err)
	}
	if !result.Group.Assigned {
		return nil, fmt.Errorf("group %s is in state %s and has no assignment; retry when it is Stable, or use --topology", id, result.Group.State)
	}
	return &result.Group, nil
}

// findCluster returns the cluster with this name.
func findCluster(clusters []assignment.ClusterConfig, name string) (assignment.ClusterConfig, error) {
	var names []string
	for _, c := range clusters {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return assignment.ClusterConfig{}, fmt.Errorf("the file has no cluster %q; `kafka.cluster` of the StreamApp must be one of %s",
		name, strings.Join(names, ", "))
}
