// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"streamweir.dev/streamweir/test/kafka/kafkatest"
)

// jvm is a Java runtime.
type jvm struct {
	// name is a readable name, such as "JDK 17".
	name string
	// java is the path of its launcher.
	java string
	// version is the full version in its file "release".
	version string
	// prefix is a command that executes the launcher.
	prefix []string
	// jdkJavaOptions is set if the launcher reads JDK_JAVA_OPTIONS, as all since 9 do.
	jdkJavaOptions bool
}

// needJVM returns a Java runtime of a feature release: JAVA<release>_HOME, or a folder in /usr/lib/jvm. Without it, it calls
// kafkatest.Unavailable.
func needJVM(tb testing.TB, release int) jvm {
	tb.Helper()
	found, err := findJVM(release)
	if err != nil {
		kafkatest.Unavailable(tb, err.Error())
	}
	return found
}

func findJVM(release int) (jvm, error) {
	variable := fmt.Sprintf("JAVA%d_HOME", release)
	homes := []string{os.Getenv(variable)}
	installed, err := filepath.Glob("/usr/lib/jvm/*")
	if err != nil {
		return jvm{}, err
	}
	for _, home := range append(homes, installed...) {
		if version, err := releaseOf(home); err == nil && featureOf(version) == release {
			return jvm{
				name: fmt.Sprintf("JDK %d", release), java: filepath.Join(home, "bin", "java"),
				version: version, jdkJavaOptions: release > 8,
			}, nil
		}
	}
	return jvm{}, fmt.Errorf("a JDK %d (no %s, none in /usr/lib/jvm)", release, variable)
}

var versionLine = regexp.MustCompile(`(?m)^JAVA_VERSION="([^"]+)"`)

// releaseOf reads the version of a JDK from its file "release", which exists since 7.
func releaseOf(home string) (string, error) {
	if home == "" {
		return "", errors.New("no folder")
	}
	content, err := os.ReadFile(filepath.Join(home, "release"))
	if err != nil {
		return "", err
	}
	match := versionLine.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s/release has no version", home)
	}
	return string(match[1]), nil
}

// featureOf returns the feature release of a version: 8 for 1.8.0_504, 17 for 17.0.15.
func featureOf(version string) int {
	var first, second int
	if n, _ := fmt.Sscanf(version, "%d.%d", &first, &second); n == 2 && first == 1 {
		return second
	}
	return first
}

// image returns a runtime image of the build script.
func image(tb testing.TB, name string) jvm {
	tb.Helper()
	home := filepath.Join(applications(tb), "jlink", name)
	version, err := releaseOf(home)
	if err != nil {
		tb.Fatalf("the image: %v", err)
	}
	return jvm{name: "jlink image of JDK 17 " + name, java: filepath.Join(home, "bin", "java"), version: version, jdkJavaOptions: true}
}

var openJDKLine = regexp.MustCompile(`(?m)^openjdk version "([^"]+)"`)

// oldJava returns a Java that stable Debian no longer has: see old-java.sh. It runs in its own root folder, with the applications and the folder
// for temporary files mounted.
func oldJava(tb testing.TB, release int) jvm {
	tb.Helper()
	root, err := script("./old-java.sh", strconv.Itoa(release))
	if failure, ok := errors.AsType[*scriptError](err); ok && failure.code == exitUnavailable {
		kafkatest.Unavailable(tb, failure.output)
	}
	if err != nil {
		tb.Fatalf("Java %d: %v", release, err)
	}
	const enter = `root=$1; shift; for folder in /proc /dev %s %s; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done; exec chroot "$root" "$@"`
	old := jvm{
		name: fmt.Sprintf("JDK %d", release), java: fmt.Sprintf("/usr/lib/jvm/java-%d-openjdk-amd64/bin/java", release),
		prefix:         []string{"unshare", "--mount", "sh", "-ec", fmt.Sprintf(enter, os.TempDir(), applications(tb)), "sh", root},
		jdkJavaOptions: release > 8,
	}
	argv := slices.Concat(old.prefix, []string{old.java, "-version"})
	out, err := exec.CommandContext(tb.Context(), argv[0], argv[1:]...).CombinedOutput()
	match := openJDKLine.FindSubmatch(out)
	if err != nil || match == nil {
		tb.Fatalf("Java %d: %v: %s", release, err, out)
	}
	old.version = string(match[1])
	return old
}
