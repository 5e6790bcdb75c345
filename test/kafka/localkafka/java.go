// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package localkafka

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"streamweir.dev/streamweir/internal/checkout"
)

// AppClass is the main class of the Kafka Streams applications.
const AppClass = "dev.streamweir.kafkatest.App"

// brokerClass is the main class of the broker.
const brokerClass = "dev.streamweir.kafkatest.Broker"

// exitUnavailable is the exit code of test/java/build.sh if a tool is missing (EX_UNAVAILABLE of sysexits.h).
const exitUnavailable = 69

// BuildError is a failure of test/java/build.sh.
type BuildError struct {
	// Code is the exit code, Output the standard error of the script.
	Code   int
	Output string
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("test/java/build.sh: exit code %d: %s", e.Code, e.Output)
}

// ToolMissing reports whether the build failed because a tool is not installed.
func (e *BuildError) ToolMissing() bool { return e.Code == exitUnavailable }

// ClassPath builds the Java programs if they are not in the cache, and returns their class path. The error may be a BuildError.
func ClassPath() (string, error) {
	folder, err := build()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "classes") + ":" + filepath.Join(folder, "lib", "*"), nil
}

// build runs test/java/build.sh once in this process and returns the folder that it prints.
var build = sync.OnceValues(func() (string, error) {
	script, err := checkout.Path("test", "java", "build.sh")
	if err != nil {
		return "", err
	}
	var stderr strings.Builder
	command := exec.Command(script)
	command.Stderr = &stderr
	out, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", &BuildError{Code: exit.ExitCode(), Output: strings.TrimSpace(stderr.String())}
	}
	return strings.TrimSpace(string(out)), err
})

// Java returns the command line of a short-lived JVM on few cores: serial collector, first compiler only.
func Java(classPath, heap, class string, args ...string) []string {
	argv := []string{
		"java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", classPath, class,
	}
	return append(argv, args...)
}
