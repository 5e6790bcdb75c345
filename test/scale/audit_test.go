// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// auditPolicy records the operator's requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + operatorUser + `]
- level: None
`

// request is one completed request of the operator.
type request struct {
	verb, resource, namespace, name string
	code                            int
}

// kind returns the verb with the resource, such as "patch pods/resize".
func (r request) kind() string { return r.verb + " " + r.resource }

// isWrite returns whether the request writes an object of an application. Leases, reviews and events of the operator itself do not count.
func (r request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, r.verb) && r.namespace != "" && r.namespace != operatorNamespace
}

// background returns whether the request has nothing to do with a pass: leader election, the reviews of a scrape of metrics, and watches.
func (r request) background() bool {
	return r.namespace == operatorNamespace || strings.HasSuffix(r.resource, "reviews") || r.verb == "watch"
}

// auditLog reads the API server's audit log.
type auditLog struct {
	tb     testing.TB
	reader *bufio.Reader
	rest   string // the beginning of a line that is not complete yet
	all    []request
}

func openAudit(tb testing.TB, path string) *auditLog {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() }) // it is only read
	return &auditLog{tb: tb, reader: bufio.NewReaderSize(file, 1<<20)}
}

// mark returns the number of requests so far.
func (a *auditLog) mark() int {
	a.tb.Helper()
	for {
		line, err := a.reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			a.rest += line
			return len(a.all)
		}
		if err != nil {
			a.tb.Fatal(err)
		}
		a.add(a.rest + line)
		a.rest = ""
	}
}

func (a *auditLog) add(line string) {
	a.tb.Helper()
	var event struct {
		Stage, Verb    string
		ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
		ResponseStatus struct{ Code int }
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		a.tb.Fatalf("audit log: %v: %s", err, line)
	}
	if begun := event.Stage == "ResponseStarted"; begun != (event.Verb == "watch") {
		return // a watch counts when it begins, any other request when it is complete
	}
	r := request{event.Verb, event.ObjectRef.Resource, event.ObjectRef.Namespace, event.ObjectRef.Name, event.ResponseStatus.Code}
	if event.ObjectRef.Subresource != "" {
		r.resource += "/" + event.ObjectRef.Subresource
	}
	a.all = append(a.all, r)
}

// since returns the requests after a mark.
func (a *auditLog) since(mark int) []request {
	a.tb.Helper()
	return a.all[mark:a.mark()]
}

// counts are numbers of requests by kind.
type counts map[string]int

// writesOf counts the writes among requests.
func writesOf(requests []request) counts {
	c := counts{}
	for _, r := range requests {
		if !r.isWrite() {
			continue
		}
		kind := r.kind()
		if r.code >= 400 {
			kind += fmt.Sprintf(" (%d)", r.code)
		}
		c[kind]++
	}
	return c
}

func (c counts) total() int {
	total := 0
	for _, n := range c {
		total += n
	}
	return total
}

// per returns the counts divided by a number, most first.
func (c counts) per(n int) string {
	kinds := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if c[a] != c[b] {
			return c[b] - c[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, kind := range kinds {
		if n == 1 {
			parts = append(parts, fmt.Sprintf("%s %d", kind, c[kind]))
		} else {
			parts = append(parts, fmt.Sprintf("%s %.1f", kind, float64(c[kind])/float64(n)))
		}
	}
	return strings.Join(parts, ", ")
}
