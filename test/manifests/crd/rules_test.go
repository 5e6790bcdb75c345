// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"streamweir.dev/streamweir/config/crd"
	"streamweir.dev/streamweir/internal/crdschema"
)

// definitions are the shipped definitions by kind.
var definitions = map[string][]byte{"StreamApp": crd.StreamApps, "PodInjection": crd.PodInjections}

// ruleCase is a valid spec, an invalid one, and a part of the expected error.
type ruleCase struct {
	good, bad, want string
}

// testRules validates both specs of each case, and checks that each rule of the schema has a case.
func testRules(t *testing.T, s *crdschema.Schema, withSpec func(string) string, cases map[string]ruleCase) {
	t.Helper()
	violated := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if errors := s.Validate(parse(t, withSpec(tc.good)), nil); len(errors) > 0 {
				t.Errorf("%s: got %v, want no error", tc.good, errors.ToAggregate())
			}
			errors := s.Validate(parse(t, withSpec(tc.bad)), nil)
			checkRefused(t, tc.bad, errors, tc.want)
			violated[tc.want] = true
		})
	}
	all := map[string]bool{}
	messages(s.Structural, all)
	for message := range all {
		// Two rules do not concern the spec of a new object: TestTargetIsImmutable, TestNameOfAStreamApp.
		if !violated[message] && !strings.HasPrefix(message, "targetRef is immutable") && !strings.HasPrefix(message, "the name of a StreamApp") {
			t.Errorf("no case violates the rule %q", message)
		}
	}
}

func checkRefused(t *testing.T, object string, errors field.ErrorList, want string) {
	t.Helper()
	for _, err := range errors {
		if strings.Contains(err.Error(), want) {
			return
		}
	}
	t.Errorf("%s: got %v, want an error with %q", object, errors.ToAggregate(), want)
}

func streamAppWith(spec string) string {
	if spec != "" {
		spec = ", " + spec
	}
	return "{apiVersion: streamweir.dev/v1alpha1, kind: StreamApp, metadata: {name: a}, spec: {" +
		"targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: orders}" + spec + "}}"
}

func TestStreamAppRules(t *testing.T) {
	const (
		size64     = "must be at least 64Mi: a JVM with Kafka Streams does not start with less"
		atMost16Ti = "must be at most 16Ti"
		aboveZero  = "must be larger than 0"
		topicName  = "must consist of letters, digits, '.', '_' and '-', like the name of a topic"
	)
	store := func(rest string) string { return "streams: {stores: [{name: s, " + rest + "}]}" }
	testRules(t, loadSchema(t, crd.StreamApps), streamAppWith, map[string]ruleCase{
		"only the target": {"", "targetRef: null", "targetRef"},
		"a target's name": {
			"", "targetRef: {apiVersion: apps/v1, kind: Deployment, name: Orders}", "name must be a DNS subdomain",
		},
		"a container's name": {"container: app", "container: App", "container must be a DNS label"},
		"a mode":             {"mode: Enforce", "mode: Auto", "Unsupported value"},
		"own caches":         {"streams: {ownCaches: Replace}", "streams: {ownCaches: Share}", "Unsupported value"},
		"an unknown field":   {"mode: Observe", "modus: Observe", "unknown field"},

		"smallest limit": {"memory: {minLimit: 64Mi, maxLimit: 1Gi}", "memory: {minLimit: 63Mi, maxLimit: 1Gi}", "minLimit " + size64},
		"smallest limit without a largest": {
			"memory: {maxLimit: 1Gi}",
			"memory: {minLimit: 1Gi}",
			"minLimit requires maxLimit: without it nothing bounds the limit",
		},
		"largest minLimit": {
			"memory: {minLimit: 16Ti, maxLimit: 16Ti}",
			"memory: {minLimit: 17Ti, maxLimit: 17Ti}",
			"minLimit " + atMost16Ti,
		},
		"largest maxLimit":          {"memory: {maxLimit: 16Ti}", "memory: {maxLimit: 10E}", "maxLimit " + atMost16Ti},
		"size of a pin":             {"memory: {pins: [{region: Metaspace, size: 16Ti}]}", "memory: {pins: [{region: Metaspace, size: 17Ti}]}", "size " + atMost16Ti},
		"largest average record":    {"streams: {records: {averageSize: 16Ti}}", "streams: {records: {averageSize: 10E}}", "averageSize " + atMost16Ti},
		"largest record":            {"streams: {records: {largestSize: 16Ti}}", "streams: {records: {largestSize: 10E}}", "largestSize " + atMost16Ti},
		"largest batch":             {"streams: {records: {largestBatchSize: 16Ti}}", "streams: {records: {largestBatchSize: 10E}}", "largestBatchSize " + atMost16Ti},
		"smallest application heap": {"jvm: {applicationHeap: 0}", "jvm: {applicationHeap: -1Gi}", "applicationHeap must not be negative"},
		"largest application heap":  {"jvm: {applicationHeap: 16Ti}", "jvm: {applicationHeap: 10E}", "applicationHeap " + atMost16Ti},
		"smallest native memory":    {"jvm: {applicationNative: 0}", "jvm: {applicationNative: -1}", "applicationNative must not be negative"},
		"largest native memory":     {"jvm: {applicationNative: 16Ti}", "jvm: {applicationNative: 10E}", "applicationNative " + atMost16Ti},
		"largest limit":             {"memory: {maxLimit: 64Mi}", "memory: {maxLimit: 100k}", "maxLimit " + size64},
		"limits as plain numbers": {
			"memory: {minLimit: 67108864, maxLimit: 67108864}",
			"memory: {minLimit: 1, maxLimit: 67108864}",
			"minLimit " + size64,
		},
		"a limit that is no quantity": {"memory: {maxLimit: 1Gi}", "memory: {maxLimit: much}", "should match"},
		"limits in order": {
			"memory: {minLimit: 1Gi, maxLimit: 1024Mi}",
			"memory: {minLimit: 2Gi, maxLimit: 1500Mi}",
			"minLimit must not be larger than maxLimit",
		},
		"limits in order, of mixed kinds": {
			"memory: {minLimit: 67108864, maxLimit: 1Gi}",
			"memory: {minLimit: 2Gi, maxLimit: 1073741824}",
			"minLimit must not be larger than maxLimit",
		},
		"losses": {
			"memory: {podFailuresToTolerate: 0}",
			"memory: {podFailuresToTolerate: 101}",
			"less than or equal to 100",
		},
		"headroom": {
			"memory: {headroomPercent: 50}",
			"memory: {headroomPercent: -1}",
			"greater than or equal to 0",
		},
		"requests":            {"memory: {requests: Expected}", "memory: {requests: Limit}", "Unsupported value"},
		"memory is not empty": {"memory: {requests: Keep}", "memory: {}", "at least 1 properties"},
		"a pin": {
			"memory: {pins: [{region: Heap, size: 1}]}",
			"memory: {pins: [{region: Heap, size: 0}]}",
			"size " + aboveZero,
		},
		"a pin's region": {
			"memory: {pins: [{region: PageCache, size: 64Mi}]}",
			"memory: {pins: [{region: Young, size: 64Mi}]}",
			"Unsupported value",
		},
		"each region is pinned once": {
			"memory: {pins: [{region: Heap, size: 1Gi}, {region: Metaspace, size: 64Mi}]}",
			"memory: {pins: [{region: Heap, size: 1Gi}, {region: Heap, size: 64Mi}]}",
			"Duplicate value",
		},

		"a cluster": {
			"kafka: {cluster: prod}",
			"kafka: {cluster: Prod}",
			"cluster must be a DNS label, like the names in the operator's configuration",
		},
		"a cluster or servers": {
			"kafka: {bootstrapServers: ['a:9092']}",
			"kafka: {cluster: prod, bootstrapServers: ['a:9092']}",
			"exactly one of the fields in [cluster bootstrapServers] must be set",
		},
		"a cluster or servers, one": {
			"kafka: {cluster: prod}",
			"kafka: {applicationId: a}",
			"exactly one of the fields in [cluster bootstrapServers] must be set",
		},
		"servers": {
			"kafka: {bootstrapServers: ['kafka-0.kafka:9092', '10.0.0.1:9092', '[::1]:9092']}",
			"kafka: {bootstrapServers: ['a:9092', 'PLAINTEXT://b:9092']}",
			"every entry of bootstrapServers must be host:port",
		},
		"servers without duplicates": {
			"kafka: {bootstrapServers: ['a:9092', 'b:9092']}",
			"kafka: {bootstrapServers: ['a:9092', 'a:9092']}",
			"Duplicate value",
		},
		"an application id": {
			"kafka: {cluster: prod, applicationId: My.app_1}",
			"kafka: {cluster: prod, applicationId: 'a b'}",
			"applicationId " + topicName,
		},

		"a version": {
			"streams: {version: 4.4.0}",
			"streams: {version: 4.4.0-rc1}",
			"version must be three numbers, such as 4.4.0",
		},
		"threads":  {"streams: {threads: 4}", "streams: {threads: 0}", "greater than or equal to 1"},
		"standbys": {"streams: {standbyReplicas: 0}", "streams: {standbyReplicas: -1}", "greater than or equal to 0"},
		"a guarantee": {
			"streams: {processingGuarantee: ExactlyOnceV2}",
			"streams: {processingGuarantee: exactly_once_v2}",
			"Unsupported value",
		},
		"a protocol":           {"streams: {groupProtocol: Streams}", "streams: {groupProtocol: Consumer}", "Unsupported value"},
		"streams is not empty": {"streams: {threads: 1}", "streams: {}", "at least 1 properties"},
		"an average record": {
			"streams: {records: {averageSize: 100}}",
			"streams: {records: {averageSize: 0}}",
			"averageSize " + aboveZero,
		},
		"a largest record": {
			"streams: {records: {largestSize: 1Mi}}",
			"streams: {records: {largestSize: -1}}",
			"largestSize " + aboveZero,
		},
		"a largest batch": {
			"streams: {records: {largestBatchSize: 1Mi}}",
			"streams: {records: {largestBatchSize: '-1Mi'}}",
			"largestBatchSize " + aboveZero,
		},
		"record sizes in order": {
			"streams: {records: {averageSize: 1Ki, largestSize: 1Ki}}",
			"streams: {records: {averageSize: 2Ki, largestSize: 1Ki}}",
			"averageSize must not be larger than largestSize",
		},
		"a store's name": {store("kind: Window"), "streams: {stores: [{name: 'a b'}]}", "name " + topicName},
		"a store's kind": {store("kind: Session"), store("kind: session"), "Unsupported value"},
		"a global store": {
			store("kind: Global"),
			store("kind: Global, subtopology: 0"),
			"a store of kind Global has no subtopology: every process holds all partitions",
		},
		"a store's retention": {
			store("kind: Window, retentionSeconds: 60"),
			store("kind: KeyValue, retentionSeconds: 60"),
			"retentionSeconds must not be set for a store of this kind: it keeps all records",
		},
		"a retention of any kind": {
			store("retentionSeconds: 60"),
			store("kind: Suppress, retentionSeconds: 60"),
			"retentionSeconds must not be set for a store of this kind: it keeps all records",
		},
		"a store's segments": {
			store("retentionSeconds: 120, segmentSeconds: 60"),
			store("segmentSeconds: 60"),
			"segmentSeconds requires retentionSeconds: both determine the number of segments",
		},
		"each store once": {
			"streams: {stores: [{name: a}, {name: b}]}",
			"streams: {stores: [{name: a}, {name: a}]}",
			"Duplicate value",
		},
		"a subtopology": {
			"streams: {subtopologies: [{id: 0, tasks: 12}]}",
			"streams: {subtopologies: [{id: 0}]}",
			"Required value",
		},
		"each subtopology once": {
			"streams: {subtopologies: [{id: 0, tasks: 1}, {id: 1, tasks: 1}]}",
			"streams: {subtopologies: [{id: 0, tasks: 1}, {id: 0, tasks: 2}]}",
			"Duplicate value",
		},
		"a property": {
			"streams: {configs: [{name: main.consumer.fetch.max.bytes, value: '1'}]}",
			"streams: {configs: [{name: 'a=b', value: '1'}]}",
			"name must consist of letters, digits, '.', '_' and '-', like the name of a property",
		},
		"a property's value": {"streams: {configs: [{name: a, value: '1'}]}", "streams: {configs: [{name: a}]}", "Required value"},
		"no password": {
			"streams: {configs: [{name: ssl.protocol, value: TLSv1.3}]}",
			"streams: {configs: [{name: producer.ssl.keystore.password, value: x}]}",
			"configs must not contain credentials: they are for settings that affect memory",
		},
		"no login": {
			"streams: {configs: [{name: sasl.mechanism, value: PLAIN}]}",
			"streams: {configs: [{name: sasl.jaas.config, value: x}]}",
			"configs must not contain credentials: they are for settings that affect memory",
		},
		"no key": {
			"streams: {configs: [{name: a.keys, value: x}]}",
			"streams: {configs: [{name: ssl.keystore.key, value: x}]}",
			"configs must not contain credentials: they are for settings that affect memory",
		},

		"a variable": {
			"jvm: {optionsVariable: JAVA_TOOL_OPTIONS}",
			"jvm: {optionsVariable: JAVA_OPTS}",
			"Unsupported value",
		},
		"own options": {
			"jvm: {ownOptions: ''}",
			"jvm: {ownOptions: '@/etc/streamweir/plan/jvm.options'}",
			"ownOptions must not refer to files in /etc/streamweir/",
		},
		"own options in a line": {
			"jvm: {ownOptions: '$(JDK_JAVA_OPTIONS) -ea'}",
			`jvm: {ownOptions: "-ea\n-da"}`,
			"ownOptions must be a single line",
		},
		"a version of the JVM": {"jvm: {version: 25}", "jvm: {version: 7}", "greater than or equal to 8"},
		"the application's heap": {
			"jvm: {applicationHeap: 64Mi, applicationNative: 0}",
			"jvm: {applicationHeap: large}",
			"should match",
		},
	})
}

func TestTargetOfAStreamApp(t *testing.T) {
	s := loadSchema(t, crd.StreamApps)
	object := func(target string) map[string]any {
		return parse(t, "{apiVersion: streamweir.dev/v1alpha1, kind: StreamApp, metadata: {name: a}, spec: {targetRef: "+target+"}}")
	}
	for name, tc := range map[string]struct{ target, want string }{
		"a StatefulSet":   {"{apiVersion: apps/v1, kind: StatefulSet, name: orders}", ""},
		"a Deployment":    {"{apiVersion: apps/v1, kind: Deployment, name: my.orders}", ""},
		"another kind":    {"{apiVersion: apps/v1, kind: DaemonSet, name: orders}", "Unsupported value"},
		"another version": {"{apiVersion: apps/v1beta1, kind: Deployment, name: orders}", "Unsupported value"},
		"no name":         {"{apiVersion: apps/v1, kind: Deployment}", "Required value"},
		"an impossible name": {
			"{apiVersion: apps/v1, kind: Deployment, name: Orders}",
			"name must be a DNS subdomain",
		},
		"a target of another namespace": {"{apiVersion: apps/v1, kind: Deployment, name: orders, namespace: b}", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			errors := s.Validate(object(tc.target), nil)
			if tc.want == "" && len(errors) > 0 {
				t.Errorf("got %v, want no error", errors.ToAggregate())
			}
			if tc.want != "" {
				checkRefused(t, tc.target, errors, tc.want)
			}
		})
	}
}

func TestTargetIsImmutable(t *testing.T) {
	s := loadSchema(t, crd.StreamApps)
	old := parse(t, streamAppWith("mode: Observe"))
	if errors := s.Validate(parse(t, streamAppWith("mode: Enforce")), old); len(errors) > 0 {
		t.Errorf("changing the mode: got %v, want no error", errors.ToAggregate())
	}
	changed := parse(t, strings.Replace(streamAppWith("mode: Observe"), "StatefulSet", "Deployment", 1))
	checkRefused(t, "another kind", s.Validate(changed, old), "targetRef is immutable")
}

func TestNameOfAStreamApp(t *testing.T) {
	s := loadSchema(t, crd.StreamApps)
	named := func(length int) map[string]any {
		return parse(t, strings.Replace(streamAppWith(""), "{name: a}", "{name: "+strings.Repeat("a", length)+"}", 1))
	}
	if errors := s.Validate(named(63), nil); len(errors) > 0 {
		t.Errorf("63 characters: got %v, want no error", errors.ToAggregate())
	}
	checkRefused(t, "64 characters", s.Validate(named(64), nil), "the name of a StreamApp must have at most 63 characters")
}

func TestPodInjectionRules(t *testing.T) {
	const (
		atMost16Ti = "must be at most 16Ti"
		aboveZero  = "must be larger than 0"
		pair       = "options must begin with '@' for JDK_JAVA_OPTIONS, and with -XX:VMOptionsFile for JAVA_TOOL_OPTIONS"
		name       = "planConfigMap must be the name of a ConfigMap and begin with streamweir-"
		launcher   = "optionsVariable: JDK_JAVA_OPTIONS, options: '@/etc/streamweir/plan/jvm.options', "
		tools      = "optionsVariable: JAVA_TOOL_OPTIONS, options: '-XX:VMOptionsFile=/etc/streamweir/plan/jvm.options', "
		crossed    = "optionsVariable: JAVA_TOOL_OPTIONS, options: '@/etc/streamweir/plan/jvm.options', "
		plan       = "planConfigMap: streamweir-orders"
	)
	withSpec := func(spec string) string {
		return "{apiVersion: streamweir.dev/v1alpha1, kind: PodInjection, metadata: {name: a}, spec: {" +
			"owner: {kind: StatefulSet, name: orders}, container: app, planRevision: g1, " + spec + "}}"
	}
	withMemory := func(memory string) string { return launcher + plan + ", memory: {" + memory + "}" }
	testRules(t, loadSchema(t, crd.PodInjections), withSpec, map[string]ruleCase{
		"options for the launcher": {launcher + plan, crossed + plan, pair},
		"options for every JVM":    {tools + plan, strings.Replace(tools, "JAVA_TOOL", "JDK_JAVA", 1) + plan, pair},
		"no other options": {
			launcher + plan,
			strings.Replace(launcher, "jvm.options", "other", 1) + plan,
			"Unsupported value",
		},
		"a plan's name": {
			launcher + "planConfigMap: streamweir-a",
			launcher + "planConfigMap: orders-streamweir-a",
			name,
		},
		"a plan's name as Kubernetes has them": {
			launcher + "planConfigMap: streamweir-a.b",
			launcher + "planConfigMap: streamweir-A",
			name,
		},
		"an agent's name": {
			launcher + plan + ", agentConfigMap: streamweir-agent-0123456789",
			launcher + plan + ", agentConfigMap: my-agent-of-orders",
			"agentConfigMap must be the name of a ConfigMap and begin with streamweir-",
		},
		"excepted images": {
			launcher + plan + ", excludedImages: ['orders:1', 'orders:2']",
			launcher + plan + ", excludedImages: ['orders:1', 'orders:1']",
			"Duplicate value",
		},
		"a limit below the template's only for an image": {
			withMemory("forLimit: 2Gi, limit: 1Gi, forImage: 'orders:1'"),
			withMemory("forLimit: 2Gi, limit: 1Gi"),
			"forImage must be set if limit is smaller than forLimit",
		},
		"a plan": {launcher + plan, launcher + "ownOptions: ''", "Required value"},
		"own options may be empty": {
			launcher + plan + ", ownOptions: ''",
			launcher + plan + ", ownOptions: 1",
			"must be of type string",
		},
		"a limit": {
			withMemory("forLimit: 1Gi, limit: 2Gi"),
			withMemory("forLimit: 1Gi, limit: 0"),
			"limit " + aboveZero,
		},
		"a limit to inject for": {
			withMemory("forLimit: 1, limit: 2Gi"),
			withMemory("forLimit: 0, limit: 2Gi"),
			"forLimit " + aboveZero,
		},
		"a limit without forLimit": {withMemory("forLimit: 1Gi, limit: 2Gi"), withMemory("limit: 2Gi"), "Required value"},
		"a request": {
			withMemory("forLimit: 1Gi, limit: 2Gi, request: 1Gi"),
			withMemory("forLimit: 1Gi, limit: 2Gi, request: 0"),
			"request " + aboveZero,
		},
		"a request within the limit": {
			withMemory("forLimit: 1Gi, limit: 2Gi, request: 2048Mi"),
			withMemory("forLimit: 1Gi, limit: 2Gi, request: 3Gi"),
			"request must not be larger than limit",
		},
	})
}

func TestEveryRuleHasAMessage(t *testing.T) {
	for name, definition := range definitions {
		all := map[string]bool{}
		messages(loadSchema(t, definition).Structural, all)
		if all[""] || len(all) < 5 {
			t.Errorf("%s: a rule has no message, or there are few (%d)", name, len(all))
		}
	}
}

// No default is stored: an object contains only the fields of the user, so that defaults can change.
func TestNoStoredDefaults(t *testing.T) {
	for name, definition := range definitions {
		checkNoDefaults(t, name, loadSchema(t, definition).Structural)
	}
}

func checkNoDefaults(t *testing.T, path string, s *structuralschema.Structural) {
	t.Helper()
	if s == nil {
		return
	}
	if s.Default.Object != nil {
		t.Errorf("%s has the default %v", path, s.Default.Object)
	}
	checkNoDefaults(t, path+"[]", s.Items)
	for name, property := range s.Properties {
		checkNoDefaults(t, path+"."+name, &property)
	}
}
