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

// value is the place of a config in a workload, with its default and its range.
type value interface {
	// roles are the consumers with the config; one without a role for other configs.
	roles() []role
	// prefixes are those that a property may have, the one that wins first.
	prefixes(role) []string
	// reset sets the documented default.
	reset(*Workload, role)
	// parse sets the value of a property.
	parse(w *Workload, r role, text string) error
}

// numeric is a value with a number.
type numeric interface {
	value
	get(*Workload, role) Fact[int64]
	set(*Workload, role, Fact[int64])
	// minimum is the smallest valid number in a workload.
	minimum() int64
}

// place is where a workload has the fact of a config.
type place[T any] struct {
	scope scope
	at    func(*Workload, role) *Fact[T]
}

// scope is the client that a config belongs to.
type scope uint8

const (
	// streamsScope is Kafka Streams itself: no prefix.
	streamsScope scope = iota
	// producerScope is the producer: producer. wins over no prefix.
	producerScope
	// consumerScope are the consumers: main.consumer., restore.consumer. and global.consumer. win over consumer., and that over no prefix.
	consumerScope
)

func ofStreams[T any](at func(*Workload) *Fact[T]) place[T] {
	return place[T]{scope: streamsScope, at: func(w *Workload, _ role) *Fact[T] { return at(w) }}
}

func ofProducer[T any](at func(*Producer) *Fact[T]) place[T] {
	return place[T]{scope: producerScope, at: func(w *Workload, _ role) *Fact[T] { return at(&w.Clients.Producer) }}
}

func ofConsumers[T any](at func(*Consumer) *Fact[T]) place[T] {
	return place[T]{scope: consumerScope, at: func(w *Workload, r role) *Fact[T] { return at(r.of(w)) }}
}

func (p place[T]) roles() []role {
	if p.scope == consumerScope {
		return []role{restoreRole, globalRole, mainRole}
	}
	return []role{noRole}
}

func (p place[T]) prefixes(r role) []string {
	switch p.scope {
	case producerScope:
		return []string{"producer.", ""}
	case consumerScope:
		return []string{r.prefix(), "consumer.", ""}
	default:
		return []string{""}
	}
}

// choiceValue is a value that is not a number, or one without an order that matters to memory.
type choiceValue[T any] struct {
	place[T]
	initial Fact[T]
	read    func(string) (T, error)
}

func choice[T any](initial Fact[T], read func(string) (T, error), at place[T]) choiceValue[T] {
	return choiceValue[T]{place: at, initial: initial, read: read}
}

func (v choiceValue[T]) reset(w *Workload, r role) { *v.at(w, r) = v.initial }

func (v choiceValue[T]) parse(w *Workload, r role, text string) error {
	read, err := v.read(text)
	if err == nil {
		*v.at(w, r) = Known(read, App)
	}
	return err
}

// numberValue is a value with a count or an amount of bytes.
type numberValue[T int | Bytes] struct {
	place[T]
	initial T
	// least is the smallest number that Kafka accepts, smallest the smallest that a workload may have.
	least, smallest int64
	read            func(text string, least int64) (int64, error)
}

// count is a number of things, at least a least one.
func count(initial int, least int64, at place[int]) numberValue[int] {
	return numberValue[int]{place: at, initial: initial, least: least, smallest: least, read: readCount}
}

// size is an amount of bytes, at least a least one.
func size(initial Bytes, least int64, at place[Bytes]) numberValue[Bytes] {
	return numberValue[Bytes]{place: at, initial: initial, least: least, smallest: least, read: readBytes}
}

// orZero permits 0 in a workload, although Kafka does not accept it.
func (v numberValue[T]) orZero() numberValue[T] {
	v.smallest = min(v.least, 0)
	return v
}

func (v numberValue[T]) minimum() int64 { return v.smallest }

func (v numberValue[T]) reset(w *Workload, r role) { *v.at(w, r) = Known(v.initial, Default) }

func (v numberValue[T]) parse(w *Workload, r role, text string) error {
	n, err := v.read(text, v.least)
	if err == nil {
		*v.at(w, r) = Known(T(n), App)
	}
	return err
}

func (v numberValue[T]) get(w *Workload, r role) Fact[int64] {
	fact := v.at(w, r)
	return Known(int64(fact.Value), fact.From)
}

func (v numberValue[T]) set(w *Workload, r role, n Fact[int64]) {
	*v.at(w, r) = Known(T(n.Value), n.From)
}

// readCount reads a number of things.
func readCount(text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < least {
		return 0, fmt.Errorf("must be a whole number of at least %d", least)
	}
	return n, nil
}

// readBytes reads an amount in bytes, as Kafka writes it: digits only.
func readBytes(text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		return 0, fmt.Errorf("must be a whole number of bytes, at least %d, such as 1048576: Kafka knows no units and no exponents", least)
	}
	return n, nil
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
