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

// Class is the kind of an error, in a word for the reason of a condition. A status shows classes and no text of brokers or networks.
type Class string

const (
	// ClassNone is the class of no error.
	ClassNone Class = ""
	// ClassUnreachable: connecting to all brokers failed.
	ClassUnreachable Class = "KafkaUnreachable"
	// ClassUnauthorized: a broker refused credentials or certificates, or the operator lacks the permission to describe.
	ClassUnauthorized Class = "KafkaUnauthorized"
	// ClassTimeout: connected brokers did not respond in time.
	ClassTimeout Class = "KafkaTimeout"
	// ClassUnknownGroup: the group does not exist on the cluster.
	ClassUnknownGroup Class = "UnknownGroup"
	// ClassNotStreamsGroup: the group belongs to other consumers.
	ClassNotStreamsGroup Class = "NotStreamsGroup"
	// ClassMalformed: the metadata of a member, or the broker's response, cannot be decoded.
	ClassMalformed Class = "MalformedGroup"
	// ClassUnknownCluster: the operator's configuration does not contain the cluster.
	ClassUnknownCluster Class = "UnknownCluster"
	// ClassKafkaError: the broker returned another error.
	ClassKafkaError Class = "KafkaError"
)

// Errors for [errors.Is]. An [Error] matches the error of its class.
var (
	ErrUnreachable     = errors.New("the Kafka cluster cannot be reached")
	ErrUnauthorized    = errors.New("the Kafka cluster rejects the operator's credentials or permissions")
	ErrTimeout         = errors.New("the Kafka cluster does not respond in time")
	ErrUnknownGroup    = errors.New("the group does not exist on the Kafka cluster")
	ErrNotStreamsGroup = errors.New("the group does not belong to a Kafka Streams application")
	ErrMalformed       = errors.New("group member metadata cannot be decoded")
	ErrUnknownCluster  = errors.New("the operator's configuration does not contain the Kafka cluster")
	ErrKafka           = errors.New("the Kafka cluster returned an error")
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

// Error is the error of all calls to a Kafka cluster.
type Error struct {
	// Class is the kind of the error.
	Class Class
	// Group is the group of the error, empty for the whole cluster.
	Group string
	// Member and Host identify the member with malformed metadata, if there is one.
	Member, Host string
	// Err is the underlying error, if there is one.
	Err error
}

// Error returns the message with group, member and underlying error.
func (e *Error) Error() string {
	var where strings.Builder
	if e.Group != "" {
		fmt.Fprintf(&where, "group %q: ", e.Group)
	}
	if e.Member != "" {
		fmt.Fprintf(&where, "member %q at %q: ", e.Member, e.Host)
	}
	message := sentinels[e.Class].Error()
	if e.Err != nil && !errors.Is(e.Err, sentinels[e.Class]) {
		message += ": " + e.Err.Error()
	}
	return where.String() + message
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Is returns whether the target is the error of the class.
func (e *Error) Is(target error) bool { return target == sentinels[e.Class] }

// Message returns one sentence for a status: the class and the member. It contains no text from the network.
func (e *Error) Message() string {
	message := sentinels[e.Class].Error()
	if e.Member != "" {
		message += fmt.Sprintf(" (member %q at %q)", e.Member, e.Host)
	}
	return message
}

// ClassOf returns the class of an error: ClassNone for nil, the class of an [Error], and otherwise a class derived from the wrapped errors.
func ClassOf(err error) Class {
	if err == nil {
		return ClassNone
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return classify(err)
}

// clusterError returns an error of the whole cluster.
func clusterError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: classify(err), Err: err}
}

// classify returns the class of an error of the Kafka client.
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

// classOfBroker returns the class of a broker's error code.
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

// isDial returns whether connecting failed.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// isCertificate returns whether one side rejected the TLS handshake.
func isCertificate(err error) bool {
	var alert tls.AlertError
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &alert) || errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host)
}
