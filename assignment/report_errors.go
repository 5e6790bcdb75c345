// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import "fmt"

// ReportFault is what kept a pod's report from being read, in a word that is fit for a status.
type ReportFault string

const (
	// ReportUnreachable: the pod could not be connected to, did not answer in time, or the connection broke.
	ReportUnreachable ReportFault = "Unreachable"
	// ReportRefused: it answered with another HTTP status than 200, or than 204 where that may be; redirects are not followed.
	ReportRefused ReportFault = "Refused"
	// ReportWrongPod: the report carries the UID of another pod, or none.
	ReportWrongPod ReportFault = "WrongPod"
	// ReportTooLarge: the report is larger than [MaxReportBytes].
	ReportTooLarge ReportFault = "TooLarge"
	// ReportSchemaUnknown: the report is of another version than [ReportSchema].
	ReportSchemaUnknown ReportFault = "SchemaUnknown"
	// ReportMalformed: the answer is no report.
	ReportMalformed ReportFault = "Malformed"
)

// faultTexts say each fault as a sentence.
var faultTexts = map[ReportFault]string{
	ReportUnreachable:   "the agent in the pod cannot be reached",
	ReportRefused:       "the pod answers, but not with a report",
	ReportWrongPod:      "the report is that of another pod",
	ReportTooLarge:      "the report is larger than 256 KiB",
	ReportSchemaUnknown: "the report is of a version that this operator does not know",
	ReportMalformed:     "the report cannot be read",
}

// ReportError is why there is no report.
type ReportError struct {
	// Fault is the kind.
	Fault ReportFault
	// Status is the HTTP status of ReportRefused, else 0.
	Status int
	// Err is the cause.
	Err error
}

// Error says what is wrong, with the cause.
func (e *ReportError) Error() string {
	if e.Err == nil {
		return e.Message()
	}
	return e.Message() + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *ReportError) Unwrap() error { return e.Err }

// Message is one sentence for a status. It has no text from the network.
func (e *ReportError) Message() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP status %d)", faultTexts[e.Fault], e.Status)
	}
	return faultTexts[e.Fault]
}

// same says whether two errors, each of which may be nil, are the same to a reader of a status.
func (e *ReportError) same(o *ReportError) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.Fault == o.Fault && e.Status == o.Status
}
