// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// taskID is the form of a task's ID (org.apache.kafka.streams.processor.TaskId), with the named topology first if there is one.
var taskID = regexp.MustCompile(`^((?:.+__)?(?:0|[1-9][0-9]{0,8}))_(0|[1-9][0-9]{0,8})$`)

// ParseTaskID splits a task's ID into subtopology and partition. As in the decoders of classic groups, the subtopology includes the named
// topology. ok is false for a malformed ID.
func ParseTaskID(id string) (subtopology string, partition int32, ok bool) {
	match := taskID.FindStringSubmatch(id)
	if match == nil || len(id) > maxName || line(id, maxName) != id {
		return "", 0, false
	}
	number, err := strconv.ParseInt(match[2], 10, 32)
	if err != nil || number > maxPartition {
		return "", 0, false
	}
	return match[1], int32(number), true
}

// amount clamps an amount to 0 to maxAmount.
func amount(n int64) int64 { return min(max(n, 0), maxAmount) }

// count clamps a count to 0 to maxCount.
func count(n int) int { return min(max(n, 0), maxCount) }

// clamp clamps amounts in place.
func clamp(amounts ...*int64) {
	for _, n := range amounts {
		*n = amount(*n)
	}
}

// oneOf returns a word if it is one of the known words, and the default otherwise.
func oneOf[T comparable](word, otherwise T, known ...T) T {
	if slices.Contains(known, word) {
		return word
	}
	return otherwise
}

// limited cuts a list at a length.
func limited[T any](c *cleaner, list []T, length int) []T { return take(c, list, &length) }

// take cuts a list at the remaining quantity and subtracts its length from it.
func take[T any](c *cleaner, list []T, remaining *int) []T {
	if len(list) > *remaining {
		c.cut = true
		list = list[:*remaining:*remaining]
	}
	*remaining -= len(list)
	return list
}

// line removes unprintable characters and line breaks from a text and cuts it at a number of bytes.
func line(text string, size int) string {
	return truncate(strings.Map(printable, text), size)
}

// lines removes unprintable characters except line breaks from a text and cuts it at a number of bytes.
func lines(text string, size int) string {
	return truncate(strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return printable(r)
	}, text), size)
}

// printable returns the character, or -1 if it is unprintable.
func printable(r rune) rune {
	if unicode.IsPrint(r) && r != utf8.RuneError {
		return r
	}
	return -1
}

// truncate cuts a text before the character that exceeds a number of bytes.
func truncate(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
