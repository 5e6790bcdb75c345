// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"streamweir.dev/streamweir/agent/report"
)

// podUID is the UID of the pod in the environment of the processes.
const podUID = "11111111-2222-3333-4444-555555555555"

// report reads the agent's present report as the operator does.
func (p *process) report(ctx context.Context) (report.Report, error) {
	var reported report.Report
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(p.port)+report.Path, nil)
	if err != nil {
		return reported, err
	}
	request.Header.Set("Authorization", report.Authorization(planToken))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reported, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, report.MaxBytes+1))
	if err != nil {
		return reported, err
	}
	if response.StatusCode != http.StatusOK {
		return reported, fmt.Errorf("%s with %d bytes", response.Status, len(body))
	}
	decoded, err := report.Decode(body, podUID)
	if err != nil {
		return reported, err
	}
	return *decoded, nil
}

// eventually waits for a report that satisfies check and returns it.
func (p *process) eventually(tb testing.TB, what string, check func(report.Report) error) report.Report {
	tb.Helper()
	var found report.Report
	wait(tb, "the agent reports "+what, func(ctx context.Context) error {
		reported, err := p.report(ctx)
		if err != nil {
			return errors.Join(err, p.ended())
		}
		if err := check(reported); err != nil {
			return fmt.Errorf("%w in %s", err, text(reported))
		}
		found = reported
		return nil
	})
	return found
}

// wait calls check every tenth of a second until it returns nil. After maxWait it fails the test with the last error.
func wait(tb testing.TB, what string, check func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), maxWait)
	defer cancel()
	tick := time.NewTicker(maxWait / 3000)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			last = err // more informative than an error of the deadline
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: not within %s: %v", what, maxWait, cmp.Or(last, err))
		case <-tick.C:
		}
	}
}

// text returns a readable report.
func text(reported report.Report) string {
	for i := range reported.Clients {
		reported.Clients[i].Topology = fmt.Sprintf("(%d characters)", len(reported.Clients[i].Topology))
	}
	content, err := json.Marshal(reported)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// reasons returns the reasons of a report's findings, sorted and without duplicates.
func reasons(reported report.Report) []string {
	list := []string{}
	for _, finding := range reported.Findings {
		list = append(list, finding.Reason)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// tasks returns the sorted ids of the tasks of a client's threads.
func tasks(client report.Client) []string {
	list := []string{}
	for _, thread := range client.Threads {
		for _, task := range thread.Tasks {
			list = append(list, task.ID)
		}
	}
	slices.Sort(list)
	return list
}

// stores returns the names and scopes of the stores of a client's tasks, sorted and without duplicates.
func stores(client report.Client) []string {
	list := []string{}
	for _, thread := range client.Threads {
		for _, task := range thread.Tasks {
			for _, store := range task.Stores {
				list = append(list, store.Name+" "+store.Scope)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// setting returns value and origin of a client's setting; empty if it is not reported.
func setting(client report.Client, name string) string {
	for _, setting := range client.Settings {
		if setting.Name == name {
			return setting.Value + " by " + string(setting.By)
		}
	}
	return ""
}
