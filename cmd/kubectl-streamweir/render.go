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

const renderExample = `  # All parts of the plan, with a comment before each
  kubectl streamweir render -f orders.yaml --topology describe.txt --partitions orders=12

  # Only the source of the config setter, in a package of the application
  kubectl streamweir render -f orders.yaml --part setter --class com.example.orders.BoundedRocksDB > src/main/java/com/example/orders/BoundedRocksDB.java

  # Only the patch for the workload
  kubectl streamweir render orders --bootstrap-servers kafka:9092 --part patch > patch.yaml`

//go:embed templates
var templates embed.FS

// parts are the parts of a rendered plan, in order.
var parts = []string{"patch", "jvm", "properties", "setter"}

func renderCommand() *cobra.Command {
	s := &source{}
	var part, class string
	command := &cobra.Command{
		Use:   "render [NAME | KIND/NAME]",
		Short: "Print the plan as files to apply by hand",
		Long: `Print the plan as files, for applications into which the operator does not inject it: GitOps, native images.

The parts are: patch, for the workload (limit, JVM options); jvm, the options one per line; properties, for Kafka Streams; setter, the source
of a RocksDBConfigSetter with one shared cache for all stores. The plan is only safe with all of its parts. A native image does not read JVM
options: set its heap with -R:MaxHeapSize when it is built, or with -Xmx when it starts.`,
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
	command.Flags().StringVar(&class, "class", "BoundedRocksDB", "Class of the config setter, with its package.")
	_ = command.RegisterFlagCompletionFunc("part", cobra.FixedCompletions(parts, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// checkRender validates the flags before any work.
func checkRender(part, class string) error {
	if part != "" && !slices.Contains(parts, part) {
		return fmt.Errorf("--part=%s: it must be one of %s", part, strings.Join(parts, ", "))
	}
	if !javaName(class) {
		return fmt.Errorf("--class=%s: it must be the name of a Java class, such as com.example.BoundedRocksDB", class)
	}
	return nil
}

// javaName returns whether a name is that of a Java class. Only ASCII is accepted.
func javaName(class string) bool {
	for piece := range strings.SplitSeq(class, ".") {
		for i, r := range piece {
			letter := r == '_' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
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

// rendered is the input of the templates.
type rendered struct {
	Answer               *whatif.Answer
	Plan                 planfile.Plan
	Package, Class, Full string
	Patch                string
}

// render returns one part, or all parts with comments.
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

// object is a JSON object of a patch.
type object = map[string]any

// patch returns a strategic merge patch for the workload.
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
