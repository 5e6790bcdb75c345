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

// taskID is the form of a task's ID (org.apache.kafka.streams.processor.TaskId), the named topology first if there is one.
var taskID = regexp.MustCompile(`^((?:.+__)?(?:0|[1-9][0-9]{0,8}))_(0|[1-9][0-9]{0,8})$`)

// ParseTaskID splits a task's ID into the subtopology, which is all before the partition as in the decoders of classic groups, and the
// partition. ok is false for a text that is not a task's ID.
func ParseTaskID(id string) (subtopology string, partition int32, ok bool) {
	match := taskID.FindStringSubmatch(id)
	if match == nil || len(id) > maxName || text(id, maxName) != id {
		return "", 0, false
	}
	number, err := strconv.ParseInt(match[2], 10, 32)
	if err != nil || number > maxPartition {
		return "", 0, false
	}
	return match[1], int32(number), true
}

// amount brings an amount between 0 and maxAmount.
func amount(n int64) int64 { return min(max(n, 0), maxAmount) }

// count brings a count between 0 and maxCount.
func count(n int) int { return min(max(n, 0), maxCount) }

func clampAll(amounts ...*int64) {
	for _, n := range amounts {
		*n = amount(*n)
	}
}

// oneOf gives a word that is one of those known, else the safe one.
func oneOf[T comparable](word, safe T, others ...T) T {
	if slices.Contains(others, word) {
		return word
	}
	return safe
}

// atMost cuts a list.
func atMost[T any](c *cleaner, list []T, most int) []T { return take(c, list, &most) }

// take cuts a list at what is left of a number, and takes its length from it.
func take[T any](c *cleaner, list []T, left *int) []T {
	if len(list) > *left {
		c.cut = true
		list = list[:*left:*left]
	}
	*left -= len(list)
	return list
}

// text is a text of one line, without characters that do not print, of at most so many bytes.
func text(s string, most int) string { return printable(s, most, false) }

// lines is a text of several lines.
func lines(s string, most int) string { return printable(s, most, true) }

func printable(s string, most int, newlines bool) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError || newlines && r == '\n' {
			return r
		}
		return -1
	}, s)
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
