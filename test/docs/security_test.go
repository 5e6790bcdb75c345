// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	goTest   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	javaTest = regexp.MustCompile("`([A-Z][A-Za-z0-9]*Test)\\.([a-z][A-Za-z0-9]*)`")
	scenario = regexp.MustCompile("\\(scenario\\s+`([^`]+)`\\)")
	// claim matches a bullet of the claims with its continuation lines.
	claim    = regexp.MustCompile(`(?m)^- \*\*(?:.+\n)(?:  .+\n)*`)
	attempt  = regexp.MustCompile(`(?m)^\| (?:a|an|another|the) .*\|$`)
	goFunc   = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
	javaFunc = regexp.MustCompile(`(?m)@Test\s+(?:public )?void ([a-z][A-Za-z0-9]*)\(`)
)

// TestSecurityClaimsNameTheirTests checks that every claim and every row of the security table names a test, and that these tests exist.
func TestSecurityClaimsNameTheirTests(t *testing.T) {
	text := read(t, "SECURITY.md")
	goTests, javaTests, sources := testsOf(t)
	_, claims, _ := strings.Cut(text, "## Claims")
	claims, attempts, found := strings.Cut(claims, "## Who tries what")
	attempts, _, _ = strings.Cut(attempts, "## Known limits")
	named := append(claim.FindAllString(claims, -1), attempt.FindAllString(attempts, -1)...)
	if !found || len(named) < 35 {
		t.Errorf("%d claims and attempts found; the test does not work", len(named))
	}
	for _, line := range named {
		if !goTest.MatchString(line) && !javaTest.MatchString(line) {
			t.Errorf("no test is named in: %s", line)
		}
	}
	for _, match := range goTest.FindAllStringSubmatch(text, -1) {
		if !goTests[match[1]] {
			t.Errorf("the test %s does not exist", match[1])
		}
	}
	for _, match := range javaTest.FindAllStringSubmatch(text, -1) {
		if !javaTests[match[1]+"."+match[2]] {
			t.Errorf("the test %s.%s does not exist", match[1], match[2])
		}
	}
	for _, match := range scenario.FindAllStringSubmatch(text, -1) {
		name := strings.Join(strings.Fields(match[1]), " ")
		if !strings.Contains(sources["test/agent"], `"`+name+`":`) {
			t.Errorf("test/agent has no scenario %q", name)
		}
	}
}

// testsOf returns the Go and Java tests of the repository, and the text of the Go tests by folder.
func testsOf(t *testing.T) (goTests, javaTests map[string]bool, sources map[string]string) {
	t.Helper()
	goTests, javaTests, sources = map[string]bool{}, map[string]bool{}, map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "target") {
			return fs.SkipDir
		}
		file := entry.Name()
		switch {
		case strings.HasSuffix(file, "_test.go"):
			text := read(t, name)
			sources[path.Dir(name)] += text
			for _, match := range goFunc.FindAllStringSubmatch(text, -1) {
				goTests[match[1]] = true
			}
		case strings.HasSuffix(file, "Test.java"):
			for _, match := range javaFunc.FindAllStringSubmatch(read(t, name), -1) {
				javaTests[strings.TrimSuffix(file, ".java")+"."+match[1]] = true
			}
		}
		return nil
	})
	if err != nil || len(goTests) == 0 || len(javaTests) == 0 {
		t.Fatalf("%d Go tests and %d Java tests found: %v", len(goTests), len(javaTests), err)
	}
	return goTests, javaTests, sources
}
