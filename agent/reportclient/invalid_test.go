// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamweir.dev/streamweir/agent/report"
	"streamweir.dev/streamweir/agent/report/reporttest"
)

// answers returns a handler with a fixed status and body.
func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // The client may have gone.
	}
}

func TestInvalidResponsesKeepTheReport(t *testing.T) {
	cases := map[string]struct {
		response http.HandlerFunc
		want     report.Fault
		status   int
	}{
		"another pod's report": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(reporttest.Encode(t, reporttest.New("uid-1", 9, 1, 1)))
			}, report.WrongPod, 0,
		},
		"another schema":  {answers(200, `{"schema":2,"podUID":"uid-0"}`), report.SchemaUnknown, 0},
		"an HTML page":    {answers(200, `<html>`), report.Malformed, 0},
		"an empty body":   {answers(200, ``), report.Malformed, 0},
		"an error":        {answers(500, `{}`), report.Refused, 500},
		"not found":       {answers(404, `{}`), report.Refused, 404},
		"another token":   {answers(401, `{"schema":1}`), report.Unauthorized, 0},
		"partial content": {answers(206, `{}`), report.Refused, 206},
		"a redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://10.0.0.1:7907/v1/report", http.StatusFound)
			},
			report.Refused, 302,
		},
		"a body in gzip": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = io.WriteString(w, "\x1f\x8b")
			},
			report.Malformed, 0,
		},
		"headers that are too large": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Long", strings.Repeat("a", 64<<10))
				_, _ = w.Write(reporttest.Encode(t, reporttest.New("uid-0", 9, 1, 1)))
			},
			report.Malformed, 0,
		},
		"a truncated body": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, `{"schema":1`)
			},
			report.Unreachable, 0,
		},
		"a body sent byte by byte": {
			func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, " "); err != nil {
						return
					}
					_ = http.NewResponseController(w).Flush() // The next write fails if this does.
					<-time.After(time.Second)
				}
			},
			report.Unreachable, 0,
		},
		"no response":             {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, report.Unreachable, 0},
		"an unexpected 204":       {answers(204, ``), report.Refused, 204},
		"a closed connection":     {hangUp, report.Unreachable, 0},
		"informational responses": {steps, report.Malformed, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 1, 0, func(f fleet) {
				in(time.Second)
				first := f.latest(0)
				f.expectChange(true, "the first report")
				f.agents[0].override(c.response)
				in(5 * time.Minute)
				got := f.latest(0)
				if got.Err == nil || got.Err.Fault != c.want || got.Err.Status != c.status || got.Report != first.Report || got.Since.IsZero() {
					f.Errorf("the state is %+v, should have the error %s and the report from before", got, c.want)
				}
				if !got.Gone.IsZero() {
					f.Errorf("Gone was set to %v", got.Gone)
				}
				f.expectChange(true, "the beginning of an error")
				if n := len(f.network.dials("10.0.0.1:7907", time.Time{})); n > 0 {
					f.Errorf("%d connections to another address", n)
				}
				if n := len(f.agents[0].since(time.Time{})); n > 80 { // One a second for a minute, then with a back-off.
					f.Errorf("%d requests in five minutes", n)
				}
				in(5 * time.Minute)
				f.expectChange(false, "the same response")
				f.agents[0].override(nil)
				in(2 * time.Minute)
				if got := f.latest(0); got.Err != nil || !got.Since.IsZero() {
					f.Errorf("after a valid response the state is %+v", got)
				}
				f.expectChange(true, "the end of an error")
			})
		})
	}
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close() // Nothing is lost.
	}
}

// steps sends informational responses (103) without an end.
func steps(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	for {
		if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"); err != nil {
			_ = conn.Close() // Nothing is lost.
			return
		}
	}
}

func TestResponsesAreReadUpToTheMaximumSize(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		in(time.Second)
		var written atomic.Int64
		f.agents[0].override(func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(" ", 64<<10))
			for written.Load() < 1<<30 {
				n, err := w.Write(chunk)
				written.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		in(70 * time.Second)
		f.Track("shop/orders", nil)
		requests := int64(len(f.agents[0].since(time.Time{})))
		if n := written.Load(); n > requests*(report.MaxBytes+128<<10) {
			f.Errorf("%d KiB of 1 GiB were read in %d requests", n>>10, requests)
		}
	})
	withFleet(t, 1, 0, func(f fleet) {
		f.agents[0].override(answers(200, strings.Repeat(" ", report.MaxBytes+1)))
		in(time.Second)
		if got := f.latest(0); got.Err == nil || got.Err.Fault != report.TooLarge {
			f.Errorf("with a byte too many: %+v", got)
		}
	})
}

func TestResponsesOtherThanHTTP(t *testing.T) {
	cases := map[string]struct {
		raw  func(net.Conn)
		want report.Fault
	}{
		"another protocol": {func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n\r\n") }, report.Malformed},
		"nothing":          {func(net.Conn) {}, report.Unreachable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 1, 0, func(f fleet) {
				f.network.mu.Lock()
				f.network.raw[f.pods[0].Address] = func(conn net.Conn) {
					defer func() { _ = conn.Close() }() // A pipe's end can always be closed.
					_, _ = conn.Read(make([]byte, 4096))
					c.raw(conn)
				}
				f.network.mu.Unlock()
				in(time.Minute)
				got := f.latest(0)
				if got.Err == nil || got.Err.Fault != c.want {
					f.Errorf("the state is %+v, should have the error %s", got, c.want)
				}
			})
		})
	}
}

func TestMessagesContainNoTextFromTheNetwork(t *testing.T) {
	withFleet(t, 1, 0, func(f fleet) {
		f.agents[0].override(answers(418, "ignore all"))
		in(time.Second)
		got := f.latest(0).Err
		if want := "the response of the pod is not a report (HTTP status 418)"; got.Message() != want || got.Error() != want {
			f.Errorf("the error is %q, its message %q", got, got.Message())
		}
		f.agents[0].override(answers(200, "{]"))
		in(time.Minute)
		got = f.latest(0).Err
		if got.Message() != "the report cannot be decoded" || !strings.Contains(got.Error(), "invalid character") || got.Unwrap() == nil {
			f.Errorf("the error is %q, its message %q", got, got.Message())
		}
	})
}
