// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package reportclient

import (
	"bufio"
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
	"unique"

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
	// maxBodyBytes bounds the body as it is sent, with the sizes of its chunks.
	maxBodyBytes = 2 * report.MaxBytes
	// bufferSize is the size of the buffer that a request has while it waits. It holds the headers of the agent.
	bufferSize = 512
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

// send sends a request on a connection of its own and reads the response. A waiting request costs one goroutine, its connection and a small
// buffer: net/http would add two goroutines and buffers of 8 KiB. The pods are untrusted: there are no redirects, proxies or automatic retries.
func (c *Client) send(ctx context.Context, r request) response {
	sent, err := r.http()
	if err != nil {
		return response{err: &report.Error{Fault: report.Unreachable, Err: err}}
	}
	conn, err := c.connect(ctx, r.address)
	if err != nil {
		return failure(err)
	}
	defer func() { _ = conn.Close() }() // Nothing is lost: the response is complete, or has failed.
	if err := conn.SetDeadline(time.Now().Add(r.wait + responseTimeout)); err != nil {
		return failure(err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // The end of the context ends the request.
	if err := sent.Write(conn); err != nil {
		return failure(fmt.Errorf("sending the request: %w", err))
	}
	limited := &io.LimitedReader{R: conn, N: maxHeaderBytes}
	received, err := http.ReadResponse(bufio.NewReaderSize(limited, bufferSize), sent)
	if err != nil && limited.N == 0 {
		return response{err: &report.Error{Fault: report.Malformed, Err: errors.New("the headers of the response are too large")}}
	}
	if err != nil {
		return failure(fmt.Errorf("reading the response: %w", err))
	}
	limited.N = maxBodyBytes
	return read(received, r)
}

// http returns the HTTP request.
func (r request) http() (*http.Request, error) {
	sent, err := http.NewRequest(http.MethodGet, r.url(), http.NoBody) //nolint:noctx // send ends with its context
	if err != nil {
		return nil, err
	}
	sent.Close = true
	sent.Header.Set("Accept-Encoding", "identity")
	sent.Header.Set("User-Agent", "streamweir")
	if r.token != "" {
		sent.Header.Set("Authorization", report.Authorization(r.token))
	}
	return sent, nil
}

// connect connects to a pod.
func (c *Client) connect(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	return c.dial(ctx, "tcp", address)
}

// read reads an HTTP response.
func read(received *http.Response, r request) response {
	switch {
	case received.StatusCode == http.StatusNoContent && r.onChange:
		return response{}
	case received.StatusCode == http.StatusUnauthorized:
		return response{err: &report.Error{Fault: report.Unauthorized}}
	case received.StatusCode < http.StatusOK:
		return response{err: &report.Error{Fault: report.Malformed, Err: errors.New("the response is informational although none was requested")}}
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
	for i := range decoded.Clients { // all pods of an application have the same long text
		client := &decoded.Clients[i]
		client.Topology = unique.Make(client.Topology).Value()
	}
	return response{report: decoded}
}

// failure classifies the error of a request: a fault of the network, or a response other than HTTP.
func failure(err error) response {
	if !isNetworkFault(err) {
		return response{err: &report.Error{Fault: report.Malformed, Err: err}}
	}
	return response{err: &report.Error{Fault: report.Unreachable, Err: err}, dead: isDeadPeer(err)}
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
