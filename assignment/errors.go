// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Class says what kind of fault an error is, in a word that is fit for the reason of a condition: a status shows
// classes, never raw text of a broker or a network.
type Class string

const (
	// ClassNone is the class of no error.
	ClassNone Class = ""
	// ClassUnreachable: no broker could be connected to.
	ClassUnreachable Class = "KafkaUnreachable"
	// ClassUnauthorized: credentials or certificates were refused, or the right to describe is missing.
	ClassUnauthorized Class = "KafkaUnauthorized"
	// ClassTimeout: brokers were connected to but did not answer in time.
	ClassTimeout Class = "KafkaTimeout"
	// ClassUnknownGroup: the cluster has no such group.
	ClassUnknownGroup Class = "UnknownGroup"
	// ClassNotStreamsGroup: the group is that of other consumers.
	ClassNotStreamsGroup Class = "NotStreamsGroup"
	// ClassMalformed: a member's bytes, or the broker's answer, cannot be read.
	ClassMalformed Class = "MalformedGroup"
	// ClassUnknownCluster: the operator's configuration has no cluster of this name.
	ClassUnknownCluster Class = "UnknownCluster"
	// ClassKafkaError: the broker answered with another error.
	ClassKafkaError Class = "KafkaError"
)

// Errors to compare with through [errors.Is]: an [Error] of the class is its class's error.
var (
	ErrUnreachable     = errors.New("the Kafka cluster cannot be reached")
	ErrUnauthorized    = errors.New("the Kafka cluster refuses the operator's credentials or rights")
	ErrTimeout         = errors.New("the Kafka cluster does not answer in time")
	ErrUnknownGroup    = errors.New("the Kafka cluster has no such group")
	ErrNotStreamsGroup = errors.New("the group is not that of a Kafka Streams application")
	ErrMalformed       = errors.New("what the group's members say cannot be read")
	ErrUnknownCluster  = errors.New("the operator's configuration has no such Kafka cluster")
	ErrKafka           = errors.New("the Kafka cluster answered with an error")
)

// sentinels maps each class to its error.
var sentinels = map[Class]error{
	ClassUnreachable:     ErrUnreachable,
	ClassUnauthorized:    ErrUnauthorized,
	ClassTimeout:         ErrTimeout,
	ClassUnknownGroup:    ErrUnknownGroup,
	ClassNotStreamsGroup: ErrNotStreamsGroup,
	ClassMalformed:       ErrMalformed,
	ClassUnknownCluster:  ErrUnknownCluster,
	ClassKafkaError:      ErrKafka,
}

// Error is what this package's calls on a Kafka cluster answer with.
type Error struct {
	// Class is the kind of fault.
	Class Class
	// Group is the group it is about; empty: the whole cluster.
	Group string
	// Member and Host name the member whose bytes are at fault, if one is.
	Member, Host string
	// Err is the cause.
	Err error
}

// Error says what is wrong and where.
func (e *Error) Error() string {
	var where strings.Builder
	if e.Group != "" {
		fmt.Fprintf(&where, "group %q: ", e.Group)
	}
	if e.Member != "" {
		fmt.Fprintf(&where, "member %q at %q: ", e.Member, e.Host)
	}
	what := sentinels[e.Class].Error()
	if e.Err != nil && !errors.Is(e.Err, sentinels[e.Class]) {
		what += ": " + e.Err.Error()
	}
	return where.String() + what
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes the error equal to its class's error.
func (e *Error) Is(target error) bool { return target == sentinels[e.Class] }

// Message is one sentence for a status: what is wrong by class, and which member, but no text from the network.
func (e *Error) Message() string {
	message := sentinels[e.Class].Error()
	if e.Member != "" {
		message += fmt.Sprintf(" (member %q at %q)", e.Member, e.Host)
	}
	return message
}

// ClassOf gives the class of an error: ClassNone for nil, that of the [Error] in it, else by what it wraps.
func ClassOf(err error) Class {
	if err == nil {
		return ClassNone
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return classify(err)
}

// clusterError makes an error that concerns the whole cluster.
func clusterError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: classify(err), Err: err}
}

// classify finds the class of an error of the Kafka client.
func classify(err error) Class {
	var broker *kerr.Error
	switch {
	case errors.As(err, &broker):
		return classOfBroker(broker)
	case errors.Is(err, errCredentials), isCertificate(err):
		return ClassUnauthorized
	case errors.Is(err, kbin.ErrNotEnoughData):
		return ClassMalformed
	case isDial(err):
		return ClassUnreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.Canceled):
		return ClassTimeout
	}
	return ClassUnreachable
}

// classOfBroker finds the class of an error code in a broker's answer.
func classOfBroker(err *kerr.Error) Class {
	switch err {
	case kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState:
		return ClassUnauthorized
	case kerr.GroupIDNotFound:
		return ClassUnknownGroup
	case kerr.RequestTimedOut:
		return ClassTimeout
	case kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress:
		return ClassUnreachable
	}
	return ClassKafkaError
}

// isDial says whether a connection could not be made.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// isCertificate says whether TLS was refused, by us or by the broker.
func isCertificate(err error) bool {
	var alert tls.AlertError
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &alert) || errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host)
}
