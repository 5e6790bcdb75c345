// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// exchangeTimeout is the timeout of one request.
	exchangeTimeout = 10 * time.Second
	// maxResponse is the largest accepted response in bytes, far above those of the tests.
	maxResponse = 16 << 20
)

// typedRequest is a request with a response of type R.
type typedRequest[R kmsg.Response] interface {
	kmsg.Request
	RequestWith(context.Context, kmsg.Requestor) (R, error)
}

// exchange sends one request on a new connection and returns the response, decoded and raw: the bytes of the body, after the
// size and the response header. The broker is the only one, so it coordinates every group.
func exchange[R kmsg.Response](ctx context.Context, b *Broker, request typedRequest[R]) (R, []byte, error) {
	var none R
	body, err := roundTrip(ctx, b.Bootstrap, request)
	if err != nil {
		return none, nil, fmt.Errorf("%s %d: %w", kmsg.NameForKey(request.Key()), request.GetVersion(), err)
	}
	response := request.ResponseKind()
	if err := response.ReadFrom(body); err != nil {
		return none, nil, fmt.Errorf("%s %d: %w", kmsg.NameForKey(request.Key()), request.GetVersion(), err)
	}
	return response.(R), body, nil
}

func roundTrip(ctx context.Context, address string, request kmsg.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	const correlation = 1
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("kafkatest")).AppendRequest(nil, request, correlation)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	return readBody(conn, request.IsFlexible())
}

// readBody reads a response: int32 size; header: int32 correlation id and, if flexible, tagged fields (none); body.
func readBody(conn io.Reader, flexible bool) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	length, header := binary.BigEndian.Uint32(size[:]), 4
	if flexible {
		header++
	}
	if length > maxResponse || int(length) < header {
		return nil, fmt.Errorf("response of %d bytes", length)
	}
	frame := make([]byte, length)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return nil, err
	}
	if flexible && frame[4] != 0 {
		return nil, errors.New("tagged fields in the response header")
	}
	return frame[header:], nil
}
