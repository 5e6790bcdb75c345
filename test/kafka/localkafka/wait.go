// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package localkafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// pollEvery is the interval between two checks.
const pollEvery = 100 * time.Millisecond

// finalError is an error of a check after which waiting is of no use.
type finalError struct{ error }

// Final makes Eventually return the error at once.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return finalError{err}
}

// Eventually repeats a check until it returns nil. It returns the last error after the timeout, and a final error at once.
func Eventually(ctx context.Context, timeout time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[finalError](err); ok {
			return final.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, timeout, err)
		case <-ticker.C:
		}
	}
}

// FreeAddress returns host:port with a port that is free at the moment.
func FreeAddress(ctx context.Context, host string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("free port on %s: %w", host, err)
	}
	address := listener.Addr().String()
	return address, listener.Close()
}
