// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
)

// MaxBytes is the maximum size of a report. With 1,000 tasks of three stores each a report has about 180 KB, measured.
const MaxBytes = 256 << 10

// Reasons of the findings that [Decode] adds.
const (
	// ReasonCut is the reason if the report exceeded a limit.
	ReasonCut = "ReportCut"
	// ReasonTaskMalformed is the reason if the ID of a task was malformed.
	ReasonTaskMalformed = "ReportedTaskMalformed"
)

// Decode decodes the report of the pod with a UID. An error is an [*Error].
//
// A report comes from the application's own process and is untrusted. Decode clamps amounts to 0 to 2^50, cuts lists and texts at fixed
// lengths, and removes unprintable characters, settings and flags outside of the allow-lists, and tasks with malformed IDs. It replaces an
// unknown word by the one with the weakest guarantee: Bounded is Off, a task is active, the plan is the agent's own, a setting is the
// application's. A task that appears several times in a client counts once, as active if one of them is. A finding records each removal.
// Decoding a decoded report changes nothing.
func Decode(data []byte, podUID string) (*Report, error) {
	if len(data) > MaxBytes {
		return nil, &Error{Fault: TooLarge}
	}
	var decoded Report
	err := json.Unmarshal(data, &decoded)
	_, wrongType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err != nil && !wrongType:
		return nil, &Error{Fault: Malformed, Err: err}
	case decoded.Schema != Schema: // Another schema may have other types. After a wrong type all other fields are decoded.
		return nil, &Error{Fault: SchemaUnknown, Err: fmt.Errorf("the schema is %d, expected %d", decoded.Schema, Schema)}
	case err != nil:
		return nil, &Error{Fault: Malformed, Err: err}
	case decoded.PodUID != podUID:
		return nil, &Error{Fault: WrongPod}
	}
	newCleaner().clean(&decoded)
	return &decoded, nil
}
