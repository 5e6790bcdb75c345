// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks that the documents of the repository refer to files, headings and make targets that exist.
package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the repository, seen from this package.
const root = "../.."

var (
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	target   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	// pathText matches text that has the form of a path inside the repository.
	pathText = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.*-]*(/[A-Za-z0-9_.*-]+)*/?$`)
	// sourceFile matches names with an extension of a source file.
	sourceFile = regexp.MustCompile(`\.(go|java|md|sh|yaml|yml|csv|jar|tmpl|xml)$`)
	// makeCommand matches a command line of make; the group holds its arguments.
	makeCommand = regexp.MustCompile(`^make ([a-zA-Z].*)$`)
)

// pathDocuments are the documents whose code spans may be paths of the repository.
var pathDocuments = []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"}

func TestPathsExist(t *testing.T) {
	for _, document := range pathDocuments {
		found := paths(read(t, document))
		for _, p := range found {
			matches, err := filepath.Glob(filepath.Join(root, p))
			if err != nil || len(matches) == 0 {
				t.Errorf("%s: `%s` does not exist", document, p)
			}
		}
		if document != "README.md" && len(found) == 0 {
			t.Errorf("%s: no path found; the test does not work", document)
		}
	}
}

func TestLinksResolve(t *testing.T) {
	for _, document := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			to := document
			if file != "" {
				to = path.Join(path.Dir(document), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: the link to %s does not resolve", document, match[1])
			} else if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", document, to, anchor)
			}
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	var targets []string
	for _, match := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets = append(targets, match[1])
	}
	for _, document := range pathDocuments {
		for _, name := range makeTargets(read(t, document)) {
			if !slices.Contains(targets, name) {
				t.Errorf("%s: the Makefile has no target %q", document, name)
			}
		}
	}
}

func TestEveryDecisionIsInTheIndex(t *testing.T) {
	const folder = "docs/decisions"
	index := read(t, folder+"/README.md")
	records, err := filepath.Glob(filepath.Join(root, folder, "[0-9]*.md"))
	if err != nil || len(records) == 0 {
		t.Fatalf("no decision records: %v", err)
	}
	numbers := map[string]string{}
	for _, record := range records {
		name := filepath.Base(record)
		if !strings.Contains(index, "("+name+")") {
			t.Errorf("%s is not in the index", name)
		}
		number, _, _ := strings.Cut(name, "-")
		if other, used := numbers[number]; used {
			t.Errorf("%s and %s have the same number", other, name)
		}
		numbers[number] = name
	}
}

func TestPathsAreRecognized(t *testing.T) {
	text := "`memplan/` and `config/crd/*_test.go`, `main.go`; not `pods/resize`, `apps/v1`, `streamweir.dev/plan`, `make test`, `-f`.\n" +
		"```\n`memplan/inFence.go`\n```\n`memplan/missing.go`"
	want := []string{"memplan/", "config/crd/*_test.go", "main.go", "memplan/missing.go"}
	if got := paths(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := makeTargets("`make test verify`, make it so\n```\nmake deploy IMG=x # comment\n```"), []string{"test", "verify", "deploy"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// paths returns the code spans outside of fences that refer to files or folders of the repository.
func paths(text string) []string {
	var found []string
	prose, _ := split(text)
	for _, match := range codeSpan.FindAllStringSubmatch(prose, -1) {
		p := match[1]
		first, _, nested := strings.Cut(p, "/")
		_, err := os.Stat(filepath.Join(root, first))
		inFolder := nested && err == nil
		if pathText.MatchString(p) && (inFolder || strings.HasSuffix(p, "/") || sourceFile.MatchString(p)) {
			found = append(found, p)
		}
	}
	return found
}

// makeTargets returns the targets of all commands of make in code spans and fences.
func makeTargets(text string) []string {
	prose, fences := split(text)
	var commands []string
	for _, match := range codeSpan.FindAllStringSubmatch(prose, -1) {
		commands = append(commands, match[1])
	}
	var found []string
	for _, command := range append(commands, strings.Split(fences, "\n")...) {
		command, _, _ = strings.Cut(strings.TrimSpace(command), "#")
		match := makeCommand.FindStringSubmatch(strings.TrimSpace(command))
		if match == nil {
			continue
		}
		for argument := range strings.FieldsSeq(match[1]) {
			if !strings.ContainsAny(argument, "=|.") {
				found = append(found, argument)
			}
		}
	}
	return found
}

// split separates the prose of a document from the content of its code fences.
func split(text string) (prose, fences string) {
	var inside bool
	var proseLines, fenceLines strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inside = !inside
		case inside:
			fenceLines.WriteString(line)
		default:
			proseLines.WriteString(line)
		}
	}
	return proseLines.String(), fenceLines.String()
}

// anchors returns the anchors of all headings, in the form that GitHub gives them.
func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(match[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9'):
				b.WriteRune(r)
			}
		}
		all = append(all, b.String())
	}
	return all
}

// documents lists the Markdown files of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "target") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			all = append(all, name)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
