// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// NewJVM returns a JVM without any flag: the documented defaults, and the assumed sizes of its regions.
func NewJVM() JVM {
	return JVM{
		MaxRAMPercentage: Known(25.0, Default),
		MinRAMPercentage: Known(50.0, Default),
		CPUs:             Known(2, Assumed), // the fewest of a server-class JVM
		Metaspace:        Known(assumedMetaspace, Assumed),
		CodeCache:        Known(assumedCodeCache, Assumed),
	}
}

// flagParser collects the values of flags.
type flagParser struct {
	jvm        JVM
	collectors map[Collector]string
	order      []Collector
	errs       []error
}

// ParseJVMFlags reads JVM flags as the JVM does: the last one wins, and unknown flags are ignored. A string may have several flags. Flags
// that the JVM would refuse are in the error; the result has the values of the others.
func ParseJVMFlags(flags []string) (JVM, error) {
	p := flagParser{jvm: NewJVM(), collectors: map[Collector]string{}}
	for _, text := range flags {
		for flag := range strings.FieldsSeq(text) {
			p.flag(strings.Trim(flag, `"'`))
		}
	}
	p.finish()
	return p.jvm, errors.Join(p.errs...)
}

// flag reads one flag.
func (p *flagParser) flag(flag string) {
	if option, ok := strings.CutPrefix(flag, "-XX:"); ok {
		name, value, hasValue := strings.Cut(option, "=")
		if hasValue {
			p.option(flag, name, value)
		} else {
			p.toggle(flag, name)
		}
		return
	}
	for prefix, to := range map[string]*Fact[Bytes]{"-Xmx": &p.jvm.MaxHeap, "-Xms": &p.jvm.InitialHeap, "-Xss": &p.jvm.ThreadStack} {
		if value, ok := strings.CutPrefix(flag, prefix); ok {
			p.size(flag, value, to)
		}
	}
}

// option reads -XX:name=value.
func (p *flagParser) option(flag, name, value string) {
	jvm := &p.jvm
	switch name {
	case "MaxHeapSize":
		p.size(flag, value, &jvm.MaxHeap)
	case "InitialHeapSize":
		p.size(flag, value, &jvm.InitialHeap)
	case "MaxRAM":
		p.size(flag, value, &jvm.MaxRAM)
	case "MaxDirectMemorySize":
		p.size(flag, value, &jvm.MaxDirect)
	case "MaxMetaspaceSize":
		p.limit(flag, value, assumedMetaspace, &jvm.Metaspace)
	case "ReservedCodeCacheSize":
		p.limit(flag, value, assumedCodeCache, &jvm.CodeCache)
	case "ThreadStackSize": // in KiB
		p.size(flag, value+"k", &jvm.ThreadStack)
	case "MaxRAMPercentage":
		p.percentage(flag, value, &jvm.MaxRAMPercentage)
	case "MinRAMPercentage":
		p.percentage(flag, value, &jvm.MinRAMPercentage)
	case "ActiveProcessorCount":
		p.processors(flag, value)
	}
}

// toggle reads -XX:+name and -XX:-name: the collectors.
func (p *flagParser) toggle(flag, name string) {
	collector, ok := map[string]Collector{
		"UseSerialGC": Serial, "UseParallelGC": Parallel, "UseG1GC": G1, "UseZGC": ZGC, "UseShenandoahGC": Shenandoah,
	}[strings.TrimLeft(name, "+-")]
	if !ok {
		return
	}
	if strings.HasPrefix(name, "-") {
		delete(p.collectors, collector)
		return
	}
	p.collectors[collector] = flag
	p.order = append(p.order, collector)
}

// size reads a size.
func (p *flagParser) size(flag, value string, to *Fact[Bytes]) {
	size, err := parseSize(value)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("JVM flag %s: %w", flag, err))
		return
	}
	*to = Known(size, App)
}

// limit reads a cap of a region of assumed size: a cap above the assumed size changes nothing.
func (p *flagParser) limit(flag, value string, assumed Bytes, to *Fact[Bytes]) {
	limit := Known(assumed, Assumed)
	p.size(flag, value, &limit)
	if limit.Value >= assumed {
		limit = Known(assumed, Assumed)
	}
	*to = limit
}

// percentage reads a percentage.
func (p *flagParser) percentage(flag, value string, to *Fact[float64]) {
	percent, err := strconv.ParseFloat(value, 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		p.errs = append(p.errs, fmt.Errorf("JVM flag %s: must be a percentage of 0 to 100", flag))
		return
	}
	*to = Known(percent, App)
}

// processors reads ActiveProcessorCount; -1 is the default.
func (p *flagParser) processors(flag, value string) {
	n, err := strconv.ParseInt(value, 10, 32)
	switch {
	case err != nil:
		p.errs = append(p.errs, fmt.Errorf("JVM flag %s: must be a number of processors", flag))
	case n > 0:
		p.jvm.CPUs = Known(int(n), App)
	}
}

// finish sets the values that depend on several flags, and reports contradictions.
func (p *flagParser) finish() {
	jvm := &p.jvm
	if jvm.MaxHeap.Value > 0 {
		jvm.HeapMode = HeapFixed
		if jvm.InitialHeap.Value > jvm.MaxHeap.Value {
			p.errs = append(p.errs, fmt.Errorf("JVM flags: the initial heap of %v is larger than the maximum heap of %v, so the JVM does not start; "+
				"lower -Xms or raise -Xmx", jvm.InitialHeap.Value, jvm.MaxHeap.Value))
		}
	}
	var chosen []string
	for _, collector := range p.order {
		if flag, ok := p.collectors[collector]; ok {
			chosen = append(chosen, flag)
			jvm.Collector = Known(collector, App)
			delete(p.collectors, collector)
		}
	}
	if len(chosen) > 1 {
		p.errs = append(p.errs, fmt.Errorf("JVM flags: %s choose several garbage collectors, so the JVM does not start; keep one", strings.Join(chosen, " and ")))
	}
}

// parseSize reads a size as the JVM does: digits and k, m, g or t in either case.
func parseSize(text string) (Bytes, error) {
	digits := text
	unit := Bytes(1)
	if n := len(text); n > 0 {
		if u, ok := map[byte]Bytes{'k': KiB, 'm': MiB, 'g': GiB, 't': GiB << 10}[text[n-1]|0x20]; ok {
			digits = text[:n-1]
			unit = u
		}
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q must be a size such as 512m: digits and k, m, g or t", text)
	}
	return unit.Mul(Count(number)), nil
}
