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

// frameworks are applications whose classes are not on the class path: Spring Boot and Quarkus load them with loaders of their own.
func frameworks() map[string]scenario {
	all := map[string]scenario{}
	for _, release := range []int{17, 25} {
		all[fmt.Sprintf("Spring Boot on JDK %d", release)] = scenario{everywhere: release == 17, run: func(t *testing.T, w *world) {
			w.framework(t, "Spring Boot "+springBoot+", fat jar", needJVM(t, release), w.spring, "thread", "restart")
		}}
		all[fmt.Sprintf("Quarkus on JDK %d", release)] = scenario{everywhere: release == 17, run: func(t *testing.T, w *world) {
			w.framework(t, "Quarkus "+quarkus+", fast-jar", needJVM(t, release), w.quarkus, "thread")
		}}
	}
	return all
}

// framework takes an application of a framework through its life.
func (w *world) framework(t *testing.T, title string, java jvm, made func(*testing.T, jvm, string) (program, string), restarts ...string) {
	topic := w.topic(t)
	app, kafka := made(t, java, topic)
	app.plan = newPlan(t, goodPlan()).path
	exercise(t, w.started(t, topic, app), want{kafka: kafka, bounded: report.BoundedActive}, restarts...)
	w.table.add(t, fmt.Sprintf("%s, with Kafka Streams %s", title, kafka), java, "bounded", "")
}

// spring is the application of Spring Boot, with the version of Kafka Streams in it.
func (w *world) spring(t *testing.T, java jvm, topic string) (program, string) {
	t.Helper()
	file := filepath.Join(w.built, "spring.jar")
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
		"-jar", file, "--app.topic=" + topic, "--spring.kafka.bootstrap-servers=" + w.broker.Bootstrap,
		"--spring.kafka.streams.application-id=" + topic, "--spring.main.banner-mode=off", "--logging.level.root=warn",
	}
	for key, value := range w.streamsConfigs(t, topic) {
		args = append(args, "--spring.kafka.streams.properties."+key+"="+value)
	}
	return program{jvm: java, run: args}, streamsVersion(t, names)
}

// quarkus is the application of Quarkus, with the version of Kafka Streams in it.
func (w *world) quarkus(t *testing.T, java jvm, topic string) (program, string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.built, "quarkus", "lib", "main"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	options := []string{
		"-Dapp.topic=" + topic, "-Dquarkus.kafka-streams.application-id=" + topic, "-Dquarkus.kafka-streams.topics=" + topic,
		"-Dquarkus.kafka-streams.bootstrap-servers=" + w.broker.Bootstrap, "-Dkafka.bootstrap.servers=" + w.broker.Bootstrap,
	}
	for key, value := range w.streamsConfigs(t, topic) {
		options = append(options, "-Dkafka-streams."+key+"="+value)
	}
	return program{jvm: java, options: options, run: []string{"-jar", filepath.Join(w.built, "quarkus", "quarkus-run.jar")}}, streamsVersion(t, names)
}

var streamsJar = regexp.MustCompile(`(?:^|[/.])kafka-streams-(\d+\.\d+\.\d+)\.jar$`)

// streamsVersion is the version of Kafka Streams among the names of jars.
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
