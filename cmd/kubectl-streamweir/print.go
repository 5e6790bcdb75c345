// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"streamweir.dev/streamweir/controllers/whatif"
)

// print writes the value for programs, or the page for people.
func (s *source) print(out io.Writer, value any, people func(*page)) error {
	var data []byte
	var err error
	switch s.output {
	case "json":
		data, err = json.MarshalIndent(value, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(value)
	default:
		p := &page{}
		people(p)
		data = []byte(p.String())
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// page is the output for people.
type page struct{ strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

// table writes rows in aligned columns.
func (p *page) table(rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = io.WriteString(w, strings.Join(row, "\t")+"\n") // writing to a Builder does not fail
	}
	_ = w.Flush()
	for line := range strings.Lines(b.String()) {
		p.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}

// list writes a titled list, unless it is empty.
func (p *page) list(title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	p.printf("\n%s:\n", title)
	for _, text := range texts {
		p.printf("  - %s\n", text)
	}
}

// answer writes an answer.
func (p *page) answer(a *whatif.Answer) {
	p.headline(a)
	if a.Text != "" {
		p.printf("\nThe heaviest pod after the pod failures:\n%s", a.Text)
	} else {
		p.lines(a)
	}
	p.pods(a)
	p.facts(a)
	p.list("assumptions", a.Assumptions)
	if a.Text == "" { // the text contains them
		p.list("problems", a.Missing)
		p.list("warnings", a.Warnings)
	}
	p.list("to make it fit", a.Remedies)
}

// headline writes the verdict.
func (p *page) headline(a *whatif.Answer) {
	p.printf("%s %s/%s: %s, %s\n", a.WorkloadKind, a.Namespace, a.Workload, count(a.Instances, "pod"), count(a.Tasks, "task"))
	p.printf("%s. A new pod gets %s and requires %s", verdictText(a), a.Limit.String(), requiredText(a.RequiredLimit))
	if a.ColdStart != nil {
		p.printf("; the first pod of a cold start requires %s", a.ColdStart)
	}
	p.printf(".\n")
}

// verdictText describes the verdict.
func verdictText(a *whatif.Answer) string {
	text := "It does not fit"
	switch {
	case a.Verdict == whatif.VerdictUnknown:
		return "It is not yet known whether it fits"
	case a.Verdict == whatif.VerdictFits:
		text = "It fits"
	case a.PodFailuresTolerated < 0:
		return "It does not fit, even without a pod failure"
	}
	fromStatus := a.Text == ""
	if a.PodFailuresToTolerate == nil && !fromStatus { // a cold start
		return text
	}
	text += ": it tolerates " + count(a.PodFailuresTolerated, "pod failure")
	if a.PodFailuresToTolerate == nil {
		return text
	}
	return fmt.Sprintf("%s (required: %d)", text, *a.PodFailuresToTolerate)
}

func toTolerateText(a *whatif.Answer) string {
	if a.PodFailuresToTolerate == nil {
		return "-"
	}
	return fmt.Sprint(*a.PodFailuresToTolerate)
}

func requiredText(limit *resource.Quantity) string {
	if limit == nil {
		return "more than any limit provides"
	}
	return limit.String()
}

func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lines writes the lines of a status.
func (p *page) lines(a *whatif.Answer) {
	rows := [][]string{{"POOL", "LINE", "BOUND", "EXPECTED", "COUNT", "SOURCE"}}
	for _, line := range a.Lines {
		number := ""
		if line.Count != nil {
			number = fmt.Sprint(*line.Count)
		}
		rows = append(rows, []string{string(line.Pool), line.Name, amount(line.Bound), amount(line.Expected), number, string(line.Source)})
	}
	p.printf("\n")
	p.table(rows)
}

// pods writes the pods.
func (p *page) pods(a *whatif.Answer) {
	if len(a.Pods) == 0 {
		return
	}
	rows := [][]string{{"POD", "TASKS", "LIMIT", "REQUIRED"}}
	for _, pod := range a.Pods {
		tasks := "-"
		if pod.Tasks != nil {
			tasks = fmt.Sprint(*pod.Tasks)
		}
		rows = append(rows, []string{pod.Name, tasks, amount(pod.Limit), amount(pod.RequiredLimit)})
	}
	p.printf("\n")
	p.table(rows)
}

// amount formats a quantity for people. One that is not a multiple of a unit is rounded to a tenth of a MiB.
func amount(q *resource.Quantity) string {
	if q == nil {
		return "-"
	}
	text := q.String()
	if strings.Trim(text, "0123456789") == "" && q.Value() >= 1<<20 {
		return fmt.Sprintf("%.1fMi", float64(q.Value())/(1<<20))
	}
	return text
}

// facts writes the facts of the plan.
func (p *page) facts(a *whatif.Answer) {
	if len(a.Facts) == 0 {
		return
	}
	rows := [][]string{{"FACT", "VALUE", "SOURCE", "OVERRIDE WITH"}}
	for _, fact := range a.Facts {
		rows = append(rows, []string{fact.Name, fact.Value, strings.ToLower(string(fact.Source)), fact.OverrideWith})
	}
	p.printf("\n")
	p.table(rows)
}

// simulation compares two answers and writes the second.
func (p *page) simulation(now, then *whatif.Answer) {
	row := func(name string, value func(*whatif.Answer) string) []string {
		return []string{name, value(now), value(then)}
	}
	p.table([][]string{
		{"", "NOW", "THEN"},
		row("verdict", func(a *whatif.Answer) string { return string(a.Verdict) }),
		row("pods", func(a *whatif.Answer) string { return fmt.Sprint(a.Instances) }),
		row("tasks", func(a *whatif.Answer) string { return fmt.Sprint(a.Tasks) }),
		row("pod failures to tolerate", toTolerateText),
		row("pod failures tolerated", toleratedText),
		row("tasks of the heaviest pod", func(a *whatif.Answer) string { return fmt.Sprintf("%d (%d active)", a.Load.Total, a.Load.Active) }),
		row("limit", func(a *whatif.Answer) string { return amount(a.Limit) }),
		row("required limit", func(a *whatif.Answer) string { return requiredText(a.RequiredLimit) }),
		row("expected peak", func(a *whatif.Answer) string { return amount(a.Expected) }),
		row("heap", func(a *whatif.Answer) string { return amount(a.Heap) }),
	})
	p.printf("\nThen:\n")
	p.answer(then)
}

// toleratedText returns the pod failures tolerated; -1 if the pods do not fit now.
func toleratedText(a *whatif.Answer) string {
	if a.PodFailuresTolerated < 0 {
		return "does not fit now"
	}
	return fmt.Sprint(a.PodFailuresTolerated)
}
