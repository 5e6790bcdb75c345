// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// Fault is what kept a pod's report from being read, in a word that is fit for a status.
type Fault string

const (
	// Unreachable: the pod could not be connected to, did not answer in time, or the connection broke.
	Unreachable Fault = "Unreachable"
	// Refused: it answered with another HTTP status than 200, or than 204 where that may be; redirects are not followed.
	Refused Fault = "Refused"
	// WrongPod: the report carries the UID of another pod, or none.
	WrongPod Fault = "WrongPod"
	// TooLarge: the report is larger than [MaxBytes].
	TooLarge Fault = "TooLarge"
	// SchemaUnknown: the report is of another version than [Schema].
	SchemaUnknown Fault = "SchemaUnknown"
	// Malformed: the answer is no report.
	Malformed Fault = "Malformed"
)

// faultTexts say each fault as a sentence.
var faultTexts = map[Fault]string{
	Unreachable:   "the agent in the pod cannot be reached",
	Refused:       "the pod answers, but not with a report",
	WrongPod:      "the report is that of another pod",
	TooLarge:      "the report is larger than 256 KiB",
	SchemaUnknown: "the report is of a version that this operator does not know",
	Malformed:     "the report cannot be read",
}

// Error is why there is no report.
type Error struct {
	// Fault is the kind.
	Fault Fault
	// Status is the HTTP status of Refused, else 0.
	Status int
	// Err is the cause.
	Err error
}

// Error says what is wrong, with the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message()
	}
	return e.Message() + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Message is one sentence for a status. It has no text from the network.
func (e *Error) Message() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP status %d)", faultTexts[e.Fault], e.Status)
	}
	return faultTexts[e.Fault]
}

// SameAs returns whether two errors, each of which may be nil, look the same in a status.
func (e *Error) SameAs(o *Error) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.Fault == o.Fault && e.Status == o.Status
}
