// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// short returns an amount for people, with at most one decimal of the largest fitting unit.
func short(b Bytes) string {
	sign := ""
	if b < 0 {
		sign = "-"
		b = Bytes(0).Sub(b)
	}
	for _, u := range []struct {
		size Bytes
		name string
	}{{GiB * 10, " GiB"}, {MiB, " MiB"}, {KiB, " KiB"}} {
		if b >= u.size {
			unit := u.size
			if u.name == " GiB" {
				unit = GiB
			}
			return sign + strings.TrimSuffix(strconv.FormatFloat(float64(b)/float64(unit), 'f', 1, 64), ".0") + u.name
		}
	}
	return sign + strconv.FormatInt(int64(b), 10) + " B"
}

// Explain returns the plan as a text: the verdict, the load, the top-down split, the lines with the largest first, the deficits, the
// settings and the warnings.
func (p Plan) Explain() string {
	var b strings.Builder
	p.explainVerdict(&b)
	p.explainSplit(&b)
	p.explainLines(&b)
	p.explainRest(&b)
	return b.String()
}

// explainVerdict writes the verdict and the load.
func (p Plan) explainVerdict(b *strings.Builder) {
	required := "no limit holds the load"
	if p.RequiredLimit < MaxBytes {
		required = "the required limit is " + short(p.RequiredLimit)
	}
	if p.RequiredLimitAtDefaults > p.RequiredLimit && p.RequiredLimitAtDefaults < MaxBytes {
		required += ", or " + short(p.RequiredLimitAtDefaults) + " with no config lowered"
	}
	verdict := map[Verdict]string{Fits: "fits", LimitTooSmall: "does not fit", HeapTooSmall: "the heap is too small"}[p.Verdict]
	fmt.Fprintf(b, "limit %s: %s, %s\n", short(p.Limit), verdict, required)
	fmt.Fprintf(b, "load: at most %d active tasks, at most %d of all roles; stream threads: %d\n\n", p.Load.Active, p.Load.Total, p.Load.Threads)
}

// explainSplit writes the three lines of the top-down split.
func (p Plan) explainSplit(b *strings.Builder) {
	s := p.Split
	fmt.Fprintf(b, "allocable(thread) = heap / threads - Producer - Consumer = %s / %d - %s - %s = %s\n",
		short(s.Heap), s.Threads, short(s.Producer), short(s.Consumer), short(s.Allocable))
	fmt.Fprintf(b, "Cache(thread)     = allocable - Buffer = %s - %s = %s%s\n",
		short(s.Allocable), short(s.Buffer), short(s.Cache), comparison(s.Cache, s.CacheRequired))
	fmt.Fprintf(b, "State             = limit - headroom - heap - JVM = %s - %s - %s - %s = %s%s\n\n",
		short(p.Limit), short(p.Headroom), short(p.Limit.Sub(p.Headroom).Sub(s.Native)), short(s.JVM), short(s.State), comparison(s.State, s.StateRequired))
}

// comparison compares an amount with the required one.
func comparison(left, required Bytes) string {
	if left < required {
		return fmt.Sprintf("; %s required, %s missing", short(required), short(required.Sub(left)))
	}
	return fmt.Sprintf("; %s required", short(required))
}

// explainLines writes the lines of both pools as a table.
func (p Plan) explainLines(b *strings.Builder) {
	width := p.nameWidth()
	row := func(pool, name, bound, expected, from, how string) {
		text := fmt.Sprintf("%-7s %-*s %10s %10s  %-9s %s", pool, width, name, bound, expected, from, how)
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	row("POOL", "LINE", "BOUND", "EXPECTED", "FROM", "HOW")
	for _, pool := range []Pool{Heap, Native} {
		lines := slices.DeleteFunc(slices.Clone(p.Lines), func(line Line) bool { return line.Pool != pool })
		slices.SortStableFunc(lines, func(x, y Line) int { return cmp.Compare(y.Bound, x.Bound) })
		var bound, expected Bytes
		for _, line := range lines {
			row(line.Pool.String(), line.Name, short(line.Bound), short(line.Expected), line.From.String(), how(line))
			bound = bound.Add(line.Bound)
			expected = expected.Add(line.Expected)
		}
		row(pool.String(), "sum", short(bound), short(expected), "", "")
	}
	row("", "heap of the JVM", short(p.Heap), short(p.Heap), "", "collector: "+p.Collector.String())
	row("", "total", short(p.Bound), short(p.Expected), "", "heap + native")
	row("", "headroom", short(p.Headroom), "", "", "")
	row("", "limit", short(p.Limit), "", "", "")
}

// nameWidth returns the width of the column of names.
func (p Plan) nameWidth() int {
	width := 26
	for _, l := range p.Lines {
		width = max(width, len(l.Name))
	}
	return width
}

// how returns the formula of a line with its numbers.
func how(l Line) string {
	if l.Count == 0 {
		return l.Why
	}
	return fmt.Sprintf("%d x %s: %s", l.Count, short(l.Unit), l.Why)
}

// explainRest writes the deficits, the settings and the warnings.
func (p Plan) explainRest(b *strings.Builder) {
	section := func(title string, texts []string) {
		if len(texts) == 0 {
			return
		}
		fmt.Fprintf(b, "\n%s:\n", title)
		for _, text := range texts {
			fmt.Fprintf(b, "  - %s\n", text)
		}
	}
	var deficits, configs []string
	for _, d := range p.Deficits {
		deficits = append(deficits, d.Message)
	}
	for _, c := range p.Configs {
		configs = append(configs, strings.TrimSuffix(c.Name+"="+c.Value, "="))
	}
	section("deficits", deficits)
	section("settings", configs)
	section("warnings", p.Warnings)
}
