// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseProperties(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]string
	}{
		"equals, colon and space":          {"a=1\nb:2\nc 3", map[string]string{"a": "1", "b": "2", "c": "3"}},
		"white space around the separator": {"  a = 1 \n\tb\t:\t2", map[string]string{"a": "1 ", "b": "2"}},
		"comments and empty lines":         {"# a=1\n! b=2\n\n   \nc=3", map[string]string{"c": "3"}},
		"a name alone":                     {"a\nb=", map[string]string{"a": "", "b": ""}},
		"a continued line":                 {"a=1,\\\n   2\nb=3", map[string]string{"a": "1,2", "b": "3"}},
		"an escaped backslash at its end":  {"a=1\\\\\nb=2", map[string]string{"a": "1\\", "b": "2"}},
		"a backslash at the end of a file": {"a=1\\", map[string]string{"a": "1"}},
		"escaped separators":               {"a\\=b\\ c=1=2", map[string]string{"a=b c": "1=2"}},
		"unicode and tabs":                 {"a=\\u00e4\\tx", map[string]string{"a": "ä\tx"}},
		"the last value counts":            {"a=1\na=2", map[string]string{"a": "2"}},
		"Windows line ends":                {"a=1\r\nb=2\r\n", map[string]string{"a": "1", "b": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseProperties(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidPropertiesNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a=1\nb=\\u12":   "line 2:",
		"a=\\uzzzz":      "four hexadecimal digits",
		"\n=1":           "line 2: \"=1\" has no name",
		"a=1\\\n\\u1\nb": "line 1:",
	} {
		if _, err := parseProperties(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

// FuzzProperties looks for panics, and for values that change when they are written and parsed again.
func FuzzProperties(f *testing.F) {
	for _, seed := range []string{"a=1\\\n2\nb\\=c : \\u00e4", "#\n!\n=", "num.stream.threads 4\\", "\\u", "a\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		properties, err := parseProperties(text)
		if err != nil {
			return
		}
		again, err := parseProperties(written(properties))
		if err != nil || !maps.Equal(properties, again) {
			t.Errorf("%q gives %q, and written and parsed again %q, %v", text, properties, again, err)
		}
	})
}

// written formats properties with every special character escaped.
func written(properties map[string]string) string {
	escape := strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\r", "\\r", "\t", "\\t", "\f", "\\f", " ", "\\ ", "=", "\\=", ":", "\\:", "#", "\\#", "!", "\\!")
	var b strings.Builder
	for name, value := range properties {
		b.WriteString(escape.Replace(name) + "=" + escape.Replace(value) + "\n")
	}
	return b.String()
}
