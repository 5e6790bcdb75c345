// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "fmt"

// Fault is the kind of an [Error], in a word for a status.
type Fault string

const (
	// Unreachable: connecting failed, the response did not come in time, or the connection broke.
	Unreachable Fault = "Unreachable"
	// Unauthorized: the agent runs, but its mounted plan does not contain the token of the request.
	Unauthorized Fault = "Unauthorized"
	// Refused: the HTTP status was neither 200 nor an expected 204 or 401. Redirects are not followed.
	Refused Fault = "Refused"
	// WrongPod: the report has no UID or that of another pod.
	WrongPod Fault = "WrongPod"
	// TooLarge: the report is larger than [MaxBytes].
	TooLarge Fault = "TooLarge"
	// SchemaUnknown: the report has a version other than [Schema].
	SchemaUnknown Fault = "SchemaUnknown"
	// Malformed: the response is not a report.
	Malformed Fault = "Malformed"
)

// messages describe the faults.
var messages = map[Fault]string{
	Unreachable:   "the agent in the pod cannot be reached",
	Unauthorized:  "the agent does not accept the operator's token, because the plan that the pod mounts is another one or not up to date",
	Refused:       "the response of the pod is not a report",
	WrongPod:      "the report belongs to another pod",
	TooLarge:      "the report is larger than 256 KiB",
	SchemaUnknown: "this operator does not support the version of the report",
	Malformed:     "the report cannot be decoded",
}

// Error is the cause of a missing report.
type Error struct {
	// Fault is the kind of the error.
	Fault Fault
	// Status is the HTTP status if Fault is Refused, and 0 otherwise.
	Status int
	// Err is the underlying error, if there is one.
	Err error
}

// Error returns the message with the underlying error.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message()
	}
	return e.Message() + ": " + e.Err.Error()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Message returns one sentence for a status. It contains no text from the network.
func (e *Error) Message() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP status %d)", messages[e.Fault], e.Status)
	}
	return messages[e.Fault]
}

// SameAs returns whether two errors look the same in a status. Each may be nil.
func (e *Error) SameAs(other *Error) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Fault == other.Fault && e.Status == other.Status
}
