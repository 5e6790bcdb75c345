// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// apply is how a setting reaches the workload.
type apply func(w *Workload, consumer *Consumer, value string) error

// streams applies a value of Kafka Streams itself.
func streams[T any](parse func(string) (T, error), at func(*Workload) *Fact[T]) apply {
	return func(w *Workload, _ *Consumer, value string) error { return set(at(w), parse, value) }
}

// producer applies a value of the producer.
func producer[T any](parse func(string) (T, error), at func(*Producer) *Fact[T]) apply {
	return func(w *Workload, _ *Consumer, value string) error { return set(at(&w.Clients.Producer), parse, value) }
}

// consumer applies a value of a consumer.
func consumer[T any](parse func(string) (T, error), at func(*Consumer) *Fact[T]) apply {
	return func(_ *Workload, c *Consumer, value string) error { return set(at(c), parse, value) }
}

// set parses a value into a fact of the application's own.
func set[T any](to *Fact[T], parse func(string) (T, error), text string) error {
	value, err := parse(text)
	if err == nil {
		*to = Known(value, App)
	}
	return err
}

// wholeNumber reads a count that is at least least.
func wholeNumber(least int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || int(n) < least {
			return 0, fmt.Errorf("must be a whole number of at least %d", least)
		}
		return int(n), nil
	}
}

// bytesOf reads an amount in bytes, as Kafka writes them: digits only.
func bytesOf(least int64) func(string) (Bytes, error) {
	return func(text string) (Bytes, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least {
			return 0, fmt.Errorf("must be a whole number of bytes, at least %d, such as 1048576: Kafka knows no units and no exponents", least)
		}
		return Bytes(n), nil
	}
}

// levelOf reads a zstd level (ZSTD_minCLevel to ZSTD_maxCLevel).
func levelOf(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -131072 || n > 22 {
		return 0, errors.New("must be a zstd level of -131072 to 22")
	}
	return n, nil
}

// boolOf reads true or false, in any case.
func boolOf(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// textOf reads a text that is not empty.
func textOf(text string) (string, error) {
	if text == "" {
		return "", errors.New("must not be empty")
	}
	return text, nil
}

// oneOf reads one of the names, in any case.
func oneOf[T any](names map[string]T) func(string) (T, error) {
	return func(text string) (T, error) {
		value, ok := names[strings.ToLower(text)]
		if !ok {
			return value, fmt.Errorf("must be one of %s", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
		return value, nil
	}
}
