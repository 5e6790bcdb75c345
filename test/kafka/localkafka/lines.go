// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package localkafka

import "bytes"

// Lines is a writer that calls a function with each complete line. It is not safe for concurrent use.
type Lines struct {
	each    func(line []byte)
	partial []byte
}

// NewLines returns a writer that calls each with every line, without its end. The line is valid until each returns.
func NewLines(each func(line []byte)) *Lines { return &Lines{each: each} }

// Write accepts complete and partial lines.
func (l *Lines) Write(data []byte) (int, error) {
	l.partial = append(l.partial, data...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 {
			return len(data), nil
		}
		l.each(l.partial[:end])
		l.partial = l.partial[end+1:]
	}
}
