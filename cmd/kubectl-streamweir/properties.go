// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// parseProperties parses the format of java.util.Properties#load: name=value, name:value or name value. # and ! begin comments. A \ at the
// end of a line continues it; before a character it escapes the character. The last value of a name counts.
func parseProperties(text string) (map[string]string, error) {
	properties := map[string]string{}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	for i := 0; i < len(lines); i++ {
		line, at := strings.TrimLeft(lines[i], " \t\f"), i+1
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		if continues(line) {
			line = line[:len(line)-1] // at the end of the file
		}
		name, value, err := splitProperty(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		properties[name] = value
	}
	return properties, nil
}

// continues returns whether the line ends with an odd number of backslashes, so that the next one belongs to it.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// splitProperty splits a line at the first unescaped =, : or white space.
func splitProperty(line string) (name, value string, err error) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	if name, err = unescape(line[:end]); err != nil {
		return "", "", err
	}
	if name == "" {
		return "", "", fmt.Errorf("%q has no name", line)
	}
	value, err = unescape(rest)
	return name, value, err
}

// escapes are the special letters after a backslash, except u.
var escapes = map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

// unescape resolves the escapes.
func unescape(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if text[i] == 'u' {
			if i+4 >= len(text) {
				return "", fmt.Errorf(`%q: \u requires four hexadecimal digits`, text)
			}
			code, err := strconv.ParseUint(text[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`%q: \u requires four hexadecimal digits`, text)
			}
			b.WriteRune(rune(code))
			i += 4
			continue
		}
		if c, special := escapes[text[i]]; special {
			b.WriteByte(c)
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String(), nil
}
