// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/agent/planfile"
	"streamweir.dev/streamweir/controllers/whatif"
)

const renderExample = `  # All parts of the plan, with comments that say where each goes
  kubectl streamweir render -f orders.yaml --topology describe.txt --partitions orders=12

  # Only the source of the config setter, in a package of the application
  kubectl streamweir render -f orders.yaml --part setter --class com.example.orders.BoundedRocksDB > src/main/java/com/example/orders/BoundedRocksDB.java

  # Only the patch for the workload
  kubectl streamweir render orders --bootstrap-servers kafka:9092 --part patch > patch.yaml`

//go:embed templates
var templates embed.FS

// parts of a rendered plan, in their order.
var parts = []string{"patch", "jvm", "properties", "setter"}

func renderCommand() *cobra.Command {
	s, part, class := &source{}, "", ""
	command := &cobra.Command{
		Use:   "render [NAME | KIND/NAME]",
		Short: "Print the plan as files for those who put it in force by hand",
		Long: `Print the plan as files, for those who do not let the operator inject it: GitOps, native images.

The parts are: patch, for the workload (limit, options of the JVM); jvm, the options one a line; properties, for Kafka Streams; setter, the
source of a RocksDBConfigSetter that makes all stores share one cache. The plan counts on all of them being in force. A native image takes
no options of a JVM: give it its heap with -R:MaxHeapSize, or at its start with -Xmx.`,
		Example: renderExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkRender(part, class); err != nil {
				return err
			}
			question, err := s.question(command.Context(), command.InOrStdin(), args)
			if err != nil {
				return err
			}
			question.Bounded = true
			answer, err := whatif.Explain(question)
			if err != nil {
				return err
			}
			text, err := render(answer, class, part)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(command.OutOrStdout(), text); err != nil {
				return err
			}
			if err := verdict(answer); err != nil {
				return fmt.Errorf("%w: %s", err, strings.Join(append(answer.Missing, answer.Remedies...), "; "))
			}
			return nil
		},
	}
	s.addFlags(command)
	command.Flags().StringVar(&part, "part", "", "Only this part: "+strings.Join(parts, ", ")+".")
	command.Flags().StringVar(&class, "class", "BoundedRocksDB", "Name of the config setter's class, with its package.")
	_ = command.RegisterFlagCompletionFunc("part", cobra.FixedCompletions(parts, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// checkRender refuses flags before any work is done.
func checkRender(part, class string) error {
	if part != "" && !slices.Contains(parts, part) {
		return fmt.Errorf("--part=%s: it must be one of %s", part, strings.Join(parts, ", "))
	}
	if !javaName(class) {
		return fmt.Errorf("--class=%s: it must be the name of a Java class, such as com.example.BoundedRocksDB", class)
	}
	return nil
}

// javaName says whether a name is that of a class, as far as ASCII goes.
func javaName(class string) bool {
	for piece := range strings.SplitSeq(class, ".") {
		for i, r := range piece {
			letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			if !letter && (i == 0 || r < '0' || r > '9') {
				return false
			}
		}
		if piece == "" {
			return false
		}
	}
	return true
}

// rendered is what the templates print.
type rendered struct {
	Answer               *whatif.Answer
	Plan                 planfile.Plan
	Package, Class, Full string
	Patch                string
}

// render prints one part, or all with comments between them.
func render(answer *whatif.Answer, class, part string) (string, error) {
	r := rendered{Answer: answer, Plan: answer.Start.Plan, Class: class, Full: class}
	if i := strings.LastIndex(class, "."); i >= 0 {
		r.Package, r.Class = class[:i], class[i+1:]
	}
	var err error
	if r.Patch, err = patch(answer); err != nil {
		return "", err
	}
	name := "all"
	if part != "" {
		name = part
	}
	parsed, err := template.ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = parsed.ExecuteTemplate(&b, name+".tmpl", r)
	return b.String(), err
}

// object is a piece of a patch.
type object = map[string]any

// patch is a strategic merge patch for the workload.
func patch(a *whatif.Answer) (string, error) {
	resources := object{"limits": object{"memory": a.Limit.String()}}
	if a.Start.Request != nil {
		resources["requests"] = object{"memory": a.Start.Request.String()}
	}
	container := object{"name": a.Container, "resources": resources}
	var env []object
	if options := a.Start.Plan.Options; len(options) > 0 {
		value := strings.TrimSpace(strings.Join(options, " ") + " " + a.Start.OwnOptions)
		env = append(env, object{"name": a.Start.OptionsVariable, "value": value})
	}
	if a.Start.LimitArenas {
		env = append(env, object{"name": "MALLOC_ARENA_MAX", "value": "2"})
	}
	if len(env) > 0 {
		container["env"] = env
	}
	data, err := yaml.Marshal(object{"spec": object{"template": object{"spec": object{"containers": []object{container}}}}})
	return string(data), err
}
