// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"streamweir.dev/streamweir/agent/report"
)

// The versions of pom.xml in apps/spring and apps/quarkus.
const (
	springBoot = "4.1.2"
	quarkus    = "3.34.3"
)

// frameworks returns the applications of Spring Boot and Quarkus. Their own class loaders load the classes, which are not on the class path.
func frameworks() map[string]scenario {
	all := map[string]scenario{}
	for _, release := range []int{17, 25} {
		all[fmt.Sprintf("Spring Boot on JDK %d", release)] = scenario{byDefault: release == 17, run: func(t *testing.T, shared *fixture) {
			shared.framework(t, "Spring Boot "+springBoot+", fat jar", needJVM(t, release), shared.spring, "thread", "restart")
		}}
		all[fmt.Sprintf("Quarkus on JDK %d", release)] = scenario{byDefault: release == 17, run: func(t *testing.T, shared *fixture) {
			shared.framework(t, "Quarkus "+quarkus+", fast-jar", needJVM(t, release), shared.quarkus, "thread")
		}}
	}
	return all
}

// framework exercises an application of a framework.
func (f *fixture) framework(t *testing.T, title string, java jvm, create func(*testing.T, jvm, string) (program, string), restarts ...string) {
	topic := f.topic(t)
	app, kafka := create(t, java, topic)
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, f.started(t, topic, app), want{kafka: kafka, bounded: report.BoundedActive}, restarts...)
	f.table.add(t, fmt.Sprintf("%s, with Kafka Streams %s", title, kafka), java, "bounded", "")
}

// spring returns the application of Spring Boot and its version of Kafka Streams.
func (f *fixture) spring(t *testing.T, java jvm, topic string) (program, string) {
	t.Helper()
	file := filepath.Join(f.built, "spring.jar")
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	var names []string
	for _, entry := range archive.File {
		names = append(names, entry.Name)
	}
	args := []string{
		"-jar", file, "--app.topic=" + topic, "--spring.kafka.bootstrap-servers=" + f.broker.Bootstrap,
		"--spring.kafka.streams.application-id=" + topic, "--spring.main.banner-mode=off", "--logging.level.root=warn",
	}
	for key, value := range f.streamsConfigs(t, topic) {
		args = append(args, "--spring.kafka.streams.properties."+key+"="+value)
	}
	return program{jvm: java, run: args}, streamsVersion(t, names)
}

// quarkus returns the application of Quarkus and its version of Kafka Streams.
func (f *fixture) quarkus(t *testing.T, java jvm, topic string) (program, string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.built, "quarkus", "lib", "main"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	options := []string{
		"-Dapp.topic=" + topic, "-Dquarkus.kafka-streams.application-id=" + topic, "-Dquarkus.kafka-streams.topics=" + topic,
		"-Dquarkus.kafka-streams.bootstrap-servers=" + f.broker.Bootstrap, "-Dkafka.bootstrap.servers=" + f.broker.Bootstrap,
	}
	for key, value := range f.streamsConfigs(t, topic) {
		options = append(options, "-Dkafka-streams."+key+"="+value)
	}
	return program{jvm: java, options: options, run: []string{"-jar", filepath.Join(f.built, "quarkus", "quarkus-run.jar")}}, streamsVersion(t, names)
}

var streamsJar = regexp.MustCompile(`(?:^|[/.])kafka-streams-(\d+\.\d+\.\d+)\.jar$`)

// streamsVersion returns the version of Kafka Streams from the names of jars.
func streamsVersion(t *testing.T, jars []string) string {
	t.Helper()
	for _, name := range jars {
		if match := streamsJar.FindStringSubmatch(name); match != nil {
			return match[1]
		}
	}
	t.Fatalf("no jar of Kafka Streams among %d", len(jars))
	return ""
}
