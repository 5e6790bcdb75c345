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
	// answerWithin is how long a pod may take to answer beyond the time that it was asked to wait. A JVM at its memory limit may stand
	// still for seconds, and then it is not gone.
	answerWithin = 10 * time.Second
	// connectWithin is how long a connection may take: the first SYN and the repeats after 1 s and 3 s (RFC 6298).
	connectWithin = 5 * time.Second
	// keepIdle, keepInterval and keepCount find a dead machine behind a connection on which nothing is sent: the first probe after 5 s of
	// silence, two more after 2 s each, and the end 2 s after the last: 5 + 3 x 2 = 11 s.
	keepIdle, keepInterval, keepCount = 5 * time.Second, 2 * time.Second, 3
	// maxHeaderBytes bounds the headers of an answer; the agent's are a few hundred bytes.
	maxHeaderBytes = 16 << 10
)

// question is one request.
type question struct {
	address, uid string
	news         bool          // Answer when seq is not after; else at once.
	after        int64         // The seq that is known.
	wait         time.Duration // The longest wait for news.
}

// url gives the address of the request. The wait is in whole seconds.
func (q question) url() string {
	u := url.URL{Scheme: "http", Host: q.address, Path: report.Path}
	if q.news {
		u.RawQuery = "after=" + strconv.FormatInt(q.after, 10) + "&wait=" + strconv.Itoa(int(q.wait/time.Second)) + "s"
	}
	return u.String()
}

// answer is what came of it: a report, or an error, or neither if there is no news.
type answer struct {
	report *report.Report
	err    *report.Error
	silent bool // The machine does not acknowledge what is sent to it.
}

// newReportDialer makes the dialer that finds dead machines, those that acknowledge nothing, within about 11 s: by keep-alive while
// nothing is sent, else by TCP_USER_TIMEOUT, where the system has it.
func newReportDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         connectWithin,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepInterval, Count: keepCount},
		Control:         setUserTimeout,
	}
}

// newReportClient makes the client that asks pods, which are not trusted: no redirects, no proxies, HTTP/1.1, nothing compressed. Each
// request has a connection of its own, so that the end of one is never hidden by a second attempt of the client's.
func newReportClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	var only1 http.Protocols
	only1.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dial,
			Protocols:              &only1,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ask sends one request and reads the answer.
func (r *Client) ask(ctx context.Context, q question) answer {
	ctx, cancel := context.WithTimeout(ctx, q.wait+answerWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.url(), http.NoBody)
	if err != nil {
		return answer{err: &report.Error{Fault: report.Unreachable, Err: err}}
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "streamweir")
	response, err := r.client.Do(request)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = response.Body.Close() }() // Only read from: nothing is lost.
	return read(response, q)
}

// read reads a response.
func read(response *http.Response, q question) answer {
	switch {
	case response.StatusCode == http.StatusNoContent && q.news:
		return answer{}
	case response.StatusCode != http.StatusOK:
		return answer{err: &report.Error{Fault: report.Refused, Status: response.StatusCode}}
	case response.Header.Get("Content-Encoding") != "":
		return answer{err: &report.Error{Fault: report.Malformed, Err: errors.New("the report is encoded, although that was not asked for")}}
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, report.MaxBytes+1))
	if err != nil {
		return failed(fmt.Errorf("reading the report: %w", err))
	}
	decoded, err := report.Decode(data, q.uid)
	if fault, ok := errors.AsType[*report.Error](err); ok {
		return answer{err: fault}
	}
	return answer{report: decoded}
}

// failed says what the error of a request means: the network's, or an answer that is not HTTP.
func failed(err error) answer {
	cause := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		cause = u.Err // A url.Error looks like one of the network, whatever is in it.
	}
	_, network := errors.AsType[net.Error](cause)
	if !network && !errors.Is(cause, io.EOF) && !errors.Is(cause, io.ErrUnexpectedEOF) && !errors.Is(cause, io.ErrClosedPipe) {
		return answer{err: &report.Error{Fault: report.Malformed, Err: err}}
	}
	return answer{err: &report.Error{Fault: report.Unreachable, Err: err}, silent: isSilence(cause)}
}

// isSilence says whether the kernel has given up a connection because nothing was acknowledged. It then tells what it last heard of the
// way there, if it has heard something (tcp_write_err in Linux).
func isSilence(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}
