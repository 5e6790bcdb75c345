// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"streamweir.dev/streamweir/assignment"
	"streamweir.dev/streamweir/assignment/kfakestreams"
)

// describeError describes one group and returns its error.
func describeError(t *testing.T, client *assignment.Cluster, group string) *assignment.Error {
	t.Helper()
	result := client.Describe(t.Context(), []string{group})[group]
	e, ok := errors.AsType[*assignment.Error](result.Err)
	if !ok {
		t.Fatalf("describing %q returned %+v, want an Error", group, result)
	}
	return e
}

func TestClusterClassifiesGroupErrors(t *testing.T) {
	cases := map[string]struct {
		do        func(*testing.T, *kfakestreams.Cluster)
		group     string
		wantClass assignment.Class
		wantErr   error
		wantText  string
	}{
		"a missing group": {
			group: "missing", wantClass: assignment.ClassUnknownGroup, wantErr: assignment.ErrUnknownGroup, wantText: `group "missing"`,
		},
		"a classic group of other consumers": {
			do:    func(_ *testing.T, k *kfakestreams.Cluster) { k.AddOther("plain", "classic") },
			group: "plain", wantClass: assignment.ClassNotStreamsGroup, wantErr: assignment.ErrNotStreamsGroup, wantText: `the assignor is "range"`,
		},
		"a group of the consumer protocol": {
			do:    func(_ *testing.T, k *kfakestreams.Cluster) { k.AddOther("modern", "consumer") },
			group: "modern", wantClass: assignment.ClassNotStreamsGroup, wantErr: assignment.ErrNotStreamsGroup, wantText: "the type is consumer",
		},
		"a share group": {
			do:    func(_ *testing.T, k *kfakestreams.Cluster) { k.AddOther("shared", "share") },
			group: "shared", wantClass: assignment.ClassNotStreamsGroup, wantErr: assignment.ErrNotStreamsGroup, wantText: "the type is share",
		},
		"a member with malformed metadata": {
			do: func(t *testing.T, k *kfakestreams.Cluster) {
				t.Helper()
				if err := k.Garble("orders", "10.0.0.2"); err != nil {
					t.Fatal(err)
				}
			},
			group: "orders", wantClass: assignment.ClassMalformed, wantErr: assignment.ErrMalformed,
			wantText: `at "10.0.0.2": group member metadata cannot be decoded: ` +
				"field SubscriptionInfo.latestSupportedVersion at offset 4: needs 4 bytes, 2 are left",
		},
		"no permission to describe the group": {
			do:    func(_ *testing.T, k *kfakestreams.Cluster) { k.Fail("orders", kerr.GroupAuthorizationFailed) },
			group: "orders", wantClass: assignment.ClassUnauthorized, wantErr: assignment.ErrUnauthorized, wantText: "GROUP_AUTHORIZATION_FAILED",
		},
		"another error of the broker": {
			do:    func(_ *testing.T, k *kfakestreams.Cluster) { k.Fail("orders", kerr.InvalidGroupID) },
			group: "orders", wantClass: assignment.ClassKafkaError, wantErr: assignment.ErrKafka, wantText: "INVALID_GROUP_ID",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kafka := newKafka(t, orders(assignment.Classic))
			if c.do != nil {
				c.do(t, kafka)
			}
			got := describeError(t, newClient(t, kafka), c.group)
			if got.Class != c.wantClass || got.Group != c.group || !errors.Is(got, c.wantErr) {
				t.Errorf("got class %q of group %q: %v; want class %q", got.Class, got.Group, got, c.wantClass)
			}
			if !strings.Contains(got.Error(), c.wantText) {
				t.Errorf("the error is %q, should contain %q", got, c.wantText)
			}
			if message := got.Message(); strings.Contains(message, "offset") || strings.Contains(message, "_") {
				t.Errorf("the message for a status contains text from the broker: %q", message)
			}
		})
	}
}

func TestClusterFollowsMovingCoordinators(t *testing.T) {
	for _, protocol := range []assignment.Protocol{assignment.Classic, assignment.Streams} {
		t.Run(string(protocol), func(t *testing.T) {
			kafka := newKafka(t, orders(protocol))
			client := newClient(t, kafka)
			describe(t, client, "orders")
			for before := kafka.CoordinatorFor("orders"); kafka.CoordinatorFor("orders") == before; {
				kafka.RehashCoordinators()
			}
			if got := describe(t, client, "orders"); activeTasks(got) != 6 {
				t.Errorf("after a move of the coordinator the group is %+v", got)
			}
		})
	}
}

func TestClusterWaitsForALoadingCoordinator(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Streams))
	client := newClient(t, kafka)
	describe(t, client, "orders")
	kafka.Fail("orders", kerr.CoordinatorLoadInProgress)
	var requests int
	kafka.ControlKey(10, func(kmsg.Request) (kmsg.Response, error, bool) {
		kafka.KeepControl()
		if requests++; requests == 2 {
			kafka.Fail("orders", nil)
		}
		return nil, nil, false
	})
	if got := describe(t, client, "orders"); activeTasks(got) != 6 {
		t.Errorf("after the coordinator has loaded, the group is %+v", got)
	}
}

func TestClusterGivesUpOnACoordinatorThatKeepsLoading(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Streams))
	client := newClient(t, kafka)
	describe(t, client, "orders")
	kafka.Fail("orders", kerr.CoordinatorLoadInProgress)
	if got := describeError(t, client, "orders"); got.Class != assignment.ClassUnreachable {
		t.Errorf("the class is %q: %v", got.Class, got)
	}
}

func TestStreamsGroupsAreUnknownToOldBrokers(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Streams))
	kafka.LimitStreamsDescribe(-1)
	if got := describeError(t, newClient(t, kafka), "orders"); got.Class != assignment.ClassUnknownGroup {
		t.Errorf("without StreamsGroupDescribe the class is %q: %v", got.Class, got)
	}
}

func TestClusterFollowsAProtocolChange(t *testing.T) {
	kafka := newKafka(t, orders(assignment.Classic))
	client := newClient(t, kafka)
	describe(t, client, "orders")
	for _, protocol := range []assignment.Protocol{assignment.Streams, assignment.Classic} {
		if err := kafka.Restart("orders", protocol); err != nil {
			t.Fatal(err)
		}
		if got := describe(t, client, "orders"); got.Protocol != protocol || activeTasks(got) != 6 {
			t.Errorf("after the change to %s the group is %+v", protocol, got)
		}
	}
}

func TestEmptyGroupIsNotAnError(t *testing.T) {
	for _, protocol := range []assignment.Protocol{assignment.Classic, assignment.Streams} {
		t.Run(string(protocol), func(t *testing.T) {
			kafka := newKafka(t, orders(protocol))
			for _, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
				if err := kafka.Lose("orders", host); err != nil {
					t.Fatal(err)
				}
			}
			if got := describe(t, newClient(t, kafka), "orders"); got.State != "Empty" || got.Assigned {
				t.Errorf("the group is %+v, want Empty and not Assigned", got)
			}
		})
	}
}

func TestClusterWarnsAboutUnreadableConfigs(t *testing.T) {
	cases := map[assignment.Protocol]struct{ hide, want string }{
		assignment.Classic: {"orders-hourly-changelog", "the configs of 1 changelog topics cannot be read; they count as key-value stores"},
		assignment.Streams: {"orders", "the group's config streams.num.standby.replicas cannot be read; the number of standbys is unknown"},
	}
	for protocol, c := range cases {
		t.Run(string(protocol), func(t *testing.T) {
			kafka := newKafka(t, orders(protocol))
			kafka.HideConfigs(c.hide)
			got := describe(t, newClient(t, kafka), "orders")
			if !slices.Equal(got.Warnings, []string{c.want}) || activeTasks(got) != 6 {
				t.Errorf("the group is %+v, should have the warning %q", got, c.want)
			}
		})
	}
}

func TestPartialFailuresConcernTheirGroups(t *testing.T) {
	cases := map[string]struct {
		protocol    assignment.Protocol
		refuse      kmsg.Key
		wantCluster bool // The error concerns the whole cluster.
	}{
		"listing groups":                    {assignment.Classic, kmsg.ListGroups, true},
		"describing a classic group":        {assignment.Classic, kmsg.DescribeGroups, true},
		"the configs of changelog topics":   {assignment.Classic, kmsg.DescribeConfigs, true},
		"describing a streams group":        {assignment.Streams, kmsg.StreamsGroupDescribe, true},
		"the configs of a streams group":    {assignment.Streams, kmsg.DescribeConfigs, true},
		"a classic group beside the others": {assignment.Streams, kmsg.DescribeGroups, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kafka := newKafka(t, orders(c.protocol))
			client := newClient(t, kafka)
			if !c.wantCluster { // The client has stored that orders is a streams group.
				describe(t, client, "orders")
			}
			kafka.Refuse(c.refuse)
			results := client.Describe(t.Context(), []string{"orders", "another"}[:map[bool]int{true: 1, false: 2}[c.wantCluster]])
			failed := "orders"
			if !c.wantCluster {
				if results["orders"].Err != nil {
					t.Errorf("orders failed without a refused request: %v", results["orders"].Err)
				}
				failed = "another"
			}
			e, ok := errors.AsType[*assignment.Error](results[failed].Err)
			if !ok || e.Class != assignment.ClassUnreachable || (e.Group == "") != c.wantCluster {
				t.Errorf("the error is %#v, want unreachable; of the whole cluster: %v", results[failed].Err, c.wantCluster)
			}
		})
	}
}

func TestClosedClusterIsUnreachable(t *testing.T) {
	for _, protocol := range []assignment.Protocol{assignment.Classic, assignment.Streams} {
		t.Run(string(protocol), func(t *testing.T) {
			kafka := newKafka(t, orders(protocol))
			client := newClient(t, kafka)
			describe(t, client, "orders")
			kafka.Close()
			if got := describeError(t, client, "orders"); got.Class != assignment.ClassUnreachable || got.Group != "" {
				t.Errorf("the class is %q of group %q: %v", got.Class, got.Group, got)
			}
		})
	}
}

// clientOf returns a client for a configuration.
func clientOf(t *testing.T, config assignment.ClusterConfig) *assignment.Cluster {
	t.Helper()
	client, err := assignment.NewCluster(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// listen returns the address of a server that calls a function for each connection.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

func TestClusterErrorsConcernAllGroups(t *testing.T) {
	refusing := listen(t, func(net.Conn) {})
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		config    assignment.ClusterConfig
		timeout   time.Duration
		wantClass assignment.Class
	}{
		"a closed port": {
			config:    assignment.ClusterConfig{BootstrapServers: []string{closed.Addr().String()}},
			wantClass: assignment.ClassUnreachable,
		},
		"connections are closed at once": {
			config:    assignment.ClusterConfig{BootstrapServers: []string{listen(t, func(c net.Conn) { _ = c.Close() })}},
			wantClass: assignment.ClassUnreachable,
		},
		"a server without responses": {
			config:    assignment.ClusterConfig{BootstrapServers: []string{refusing}},
			timeout:   200 * time.Millisecond,
			wantClass: assignment.ClassTimeout,
		},
		"no file with the authorities": {
			config:    assignment.ClusterConfig{BootstrapServers: []string{refusing}, TLS: &assignment.TLSConfig{CAFile: "/nowhere/ca.pem"}},
			wantClass: assignment.ClassUnauthorized,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), max(c.timeout, 0))
			if c.timeout == 0 {
				ctx, cancel = context.WithCancel(t.Context())
			}
			defer cancel()
			results := clientOf(t, c.config).Describe(ctx, []string{"a", "b"})
			if len(results) != 2 {
				t.Fatalf("%d results for two groups", len(results))
			}
			for group, r := range results {
				e, ok := errors.AsType[*assignment.Error](r.Err)
				if !ok || e.Class != c.wantClass || e.Group != "" {
					t.Errorf("group %q: got %#v, want class %q of the cluster", group, r.Err, c.wantClass)
				}
			}
		})
	}
}

// write writes a file of a Secret, with the line break that editors append.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClusterAuthenticates(t *testing.T) {
	for _, mechanism := range []string{assignment.MechanismPlain, assignment.MechanismSCRAMSHA256, assignment.MechanismSCRAMSHA512} {
		t.Run(mechanism, func(t *testing.T) {
			kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(mechanism, "weir", "secret"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(kafka.Close)
			config := assignment.ClusterConfig{BootstrapServers: kafka.ListenAddrs(), SASL: &assignment.SASLConfig{
				Mechanism: mechanism, UsernameFile: write(t, "user", "weir"), PasswordFile: write(t, "password", "secret")}}
			if got := describeError(t, clientOf(t, config), "missing"); got.Class != assignment.ClassUnknownGroup {
				t.Errorf("with the correct password the class is %q: %v", got.Class, got)
			}
			kafka.ControlKey(36, func(request kmsg.Request) (kmsg.Response, error, bool) { // kfake only closes the connection.
				response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				response.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return response, nil, true
			})
			config.SASL.PasswordFile = write(t, "password", "wrong")
			if got := describeError(t, clientOf(t, config), "missing"); got.Class != assignment.ClassUnauthorized {
				t.Errorf("with a wrong password the class is %q: %v", got.Class, got)
			}
			for _, file := range []string{write(t, "password", ""), "/nowhere/password"} {
				config.SASL.PasswordFile = file
				got := describeError(t, clientOf(t, config), "missing")
				if got.Class != assignment.ClassUnauthorized || !strings.Contains(got.Error(), "sasl.passwordFile") {
					t.Errorf("with the empty or missing file %s the class is %q: %v", file, got.Class, got)
				}
			}
		})
	}
}

func TestClusterOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil) // For its certificate, issued for 127.0.0.1.
	server.StartTLS()
	defer server.Close()
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: server.TLS.Certificates}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	cases := map[string]struct {
		tls       *assignment.TLSConfig
		wantClass assignment.Class
	}{
		"with its authority":    {&assignment.TLSConfig{CAFile: write(t, "ca.pem", authority)}, assignment.ClassUnknownGroup},
		"without its authority": {&assignment.TLSConfig{}, assignment.ClassUnauthorized},
		"with another name": {&assignment.TLSConfig{CAFile: write(t, "ca.pem", authority), ServerName: "kafka.test"},
			assignment.ClassUnauthorized},
		"with a malformed CA file":      {&assignment.TLSConfig{CAFile: write(t, "ca.pem", "no")}, assignment.ClassUnauthorized},
		"with a missing certificate":    {&assignment.TLSConfig{CertFile: "/nowhere/a", KeyFile: "/nowhere/b"}, assignment.ClassUnauthorized},
		"in plain text to a TLS server": {nil, assignment.ClassUnreachable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := assignment.ClusterConfig{BootstrapServers: kafka.ListenAddrs(), TLS: c.tls}
			if got := describeError(t, clientOf(t, config), "missing"); got.Class != c.wantClass {
				t.Errorf("the class is %q, want %q: %v", got.Class, c.wantClass, got)
			}
		})
	}
}
