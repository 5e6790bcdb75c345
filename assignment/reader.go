// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// reader reads big-endian fields. After a fault it returns zero values, and err names the first faulty field. Each count is checked against
// the remaining bytes before anything is allocated.
type reader struct {
	data []byte
	at   int
	err  error
}

// fail records the first fault.
func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("field %s at offset %d: %s", field, r.at, fmt.Sprintf(format, args...))
	}
}

// take returns the next n bytes, nil after a fault.
func (r *reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if left := len(r.data) - r.at; n < 0 || n > left {
		r.fail(field, "needs %d bytes, %d are left", n, left)
		return nil
	}
	b := r.data[r.at : r.at+n]
	r.at += n
	return b
}

func (r *reader) int8(field string) int8 {
	if b := r.take(field, 1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) int16(field string) int16 {
	if b := r.take(field, 2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32(field string) int32 {
	if b := r.take(field, 4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64(field string) int64 {
	if b := r.take(field, 8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// count reads the number of elements that follow, each of at least size bytes.
func (r *reader) count(field string, size int) int {
	n := int(r.int32(field))
	if left := len(r.data) - r.at; r.err == nil && (n < 0 || n > left/size) {
		r.at -= 4
		r.fail(field, "counts %d elements of at least %d bytes, %d bytes are left", n, size, left)
	}
	if r.err != nil {
		return 0
	}
	return n
}

// text reads a string of Kafka's protocol: int16 length and UTF-8. A nullable string may be null (-1) and is empty then.
func (r *reader) text(field string, nullable bool) string {
	n := int(r.int16(field))
	if n == -1 && nullable {
		return ""
	}
	return strings.ToValidUTF8(string(r.take(field, n)), "\uFFFD")
}

// javaUTF reads a string of Java's DataOutputStream.writeUTF: uint16 length and modified UTF-8. For the names of topics and hosts this is
// the same as UTF-8.
func (r *reader) javaUTF(field string) string {
	n := int(uint16(r.int16(field)))
	return strings.ToValidUTF8(string(r.take(field, n)), "\uFFFD")
}

// javaChars reads an int32 number of UTF-16 characters and the characters (DataOutputStream.writeChars).
func (r *reader) javaChars(field string) string {
	n := r.count(field, 2)
	chars := make([]uint16, n)
	for i := range chars {
		chars[i] = uint16(r.int16(field))
	}
	return string(utf16.Decode(chars))
}

// bytes reads an int32 length and the bytes. A nullable field may be null (-1) and is nil then.
func (r *reader) bytes(field string, nullable bool) []byte {
	n := int(r.int32(field))
	if n == -1 && nullable {
		return nil
	}
	return r.take(field, n)
}

// end returns the first fault. Remaining bytes are a fault.
func (r *reader) end() error {
	if left := len(r.data) - r.at; r.err == nil && left > 0 {
		r.fail("end", "%d bytes are left over", left)
	}
	return r.err
}
