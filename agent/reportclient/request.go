// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"streamweir.dev/streamweir/agent/report"
)

const (
	// responseTimeout is the time for a response, in addition to the requested wait. A JVM at its memory limit may stall for seconds, and
	// is not gone then.
	responseTimeout = 10 * time.Second
	// connectTimeout covers the first SYN and the repeats after 1 s and 3 s (RFC 6298).
	connectTimeout = 5 * time.Second
	// The keep-alive detects a dead node behind an idle connection: the first probe after 5 s without traffic, two more after 2 s each,
	// and the end 2 s after the last: 5 + 3 x 2 = 11 s.
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
	// maxHeaderBytes bounds the headers of a response. The agent sends a few hundred bytes.
	maxHeaderBytes = 16 << 10
)

// request is one request for a report.
type request struct {
	address string
	uid     string
	token   string
	// onChange delays the response until the report's seq differs from after, or until wait has passed. Without it the response comes at
	// once.
	onChange bool
	after    int64
	wait     time.Duration
}

// url returns the URL of the request. The wait is in whole seconds.
func (r request) url() string {
	u := url.URL{Scheme: "http", Host: r.address, Path: report.Path}
	if r.onChange {
		u.RawQuery = "after=" + strconv.FormatInt(r.after, 10) + "&wait=" + strconv.Itoa(int(r.wait/time.Second)) + "s"
	}
	return u.String()
}

// response is the result of a request: a report, an error, or neither if nothing has changed.
type response struct {
	report *report.Report
	err    *report.Error
	dead   bool // The other end of an open connection acknowledges nothing.
}

// newDialer returns a dialer whose connections end about 11 s after the other end stops to acknowledge: by keep-alive while nothing is
// sent, otherwise by TCP_USER_TIMEOUT, on systems with that option.
func newDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount},
		Control:         setUserTimeout,
	}
}

// newHTTPClient returns a client for untrusted pods: no redirects, no proxies, no HTTP/2, no compression. Each request has a connection of
// its own, so that no automatic retry hides the end of a connection.
func newHTTPClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dial,
			Protocols:              &protocols,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send sends a request and reads the response.
func (c *Client) send(ctx context.Context, r request) response {
	ctx, cancel := context.WithTimeout(ctx, r.wait+responseTimeout)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url(), http.NoBody)
	if err != nil {
		return response{err: &report.Error{Fault: report.Unreachable, Err: err}}
	}
	sent.Header.Set("Accept-Encoding", "identity")
	sent.Header.Set("User-Agent", "streamweir")
	if r.token != "" {
		sent.Header.Set("Authorization", report.Authorization(r.token))
	}
	received, err := c.http.Do(sent)
	if err != nil {
		return failure(err)
	}
	defer func() { _ = received.Body.Close() }() // An error cannot lose data: the body is only read.
	return read(received, r)
}

// read reads an HTTP response.
func read(received *http.Response, r request) response {
	switch {
	case received.StatusCode == http.StatusNoContent && r.onChange:
		return response{}
	case received.StatusCode == http.StatusUnauthorized:
		return response{err: &report.Error{Fault: report.Unauthorized}}
	case received.StatusCode != http.StatusOK:
		return response{err: &report.Error{Fault: report.Refused, Status: received.StatusCode}}
	case received.Header.Get("Content-Encoding") != "":
		return response{err: &report.Error{Fault: report.Malformed, Err: errors.New("the report is encoded although identity was requested")}}
	}
	data, err := io.ReadAll(io.LimitReader(received.Body, report.MaxBytes+1))
	if err != nil {
		return failure(fmt.Errorf("reading the report: %w", err))
	}
	decoded, err := report.Decode(data, r.uid)
	if fault, ok := errors.AsType[*report.Error](err); ok {
		return response{err: fault}
	}
	return response{report: decoded}
}

// failure classifies the error of a request: a fault of the network, or a response other than HTTP.
func failure(err error) response {
	cause := err
	if wrapper, ok := errors.AsType[*url.Error](err); ok {
		cause = wrapper.Err // A url.Error implements net.Error for any cause.
	}
	if !isNetworkFault(cause) {
		return response{err: &report.Error{Fault: report.Malformed, Err: err}}
	}
	return response{err: &report.Error{Fault: report.Unreachable, Err: err}, dead: isDeadPeer(cause)}
}

// isNetworkFault returns whether the connection failed, or ended before the response did.
func isNetworkFault(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}

// isDeadPeer returns whether the kernel has given up an open connection without acknowledgements. Its error is then the last ICMP error on
// the path to the peer, if there was one (tcp_write_err in Linux).
func isDeadPeer(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
