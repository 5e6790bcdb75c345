// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package kafkatest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutputKeepsTheLatestReport(t *testing.T) {
	running := Report{State: "RUNNING", Threads: 2, Active: []string{"0_1"}, Standby: []string{}}
	const first = `{"state":"REBALANCING","threads":0,"active":[],"standby":[]}` + "\n"
	const second = `{"state":"RUNNING","threads":2,"active":["0_1"],"standby":[]}` + "\n"
	cases := map[string]struct {
		writes      []string
		want        Report
		wantProblem string
	}{
		"no output":                  {},
		"an unfinished line":         {writes: []string{second, `{"state":"ERR`}, want: running},
		"two lines in one write":     {writes: []string{first + second}, want: running},
		"a line in several writes":   {writes: []string{first, second[:7], second[7:20], second[20:]}, want: running},
		"a line that is no report":   {writes: []string{second, "Exception in x\n"}, want: running, wantProblem: `"Exception in x"`},
		"the same in several writes": {writes: []string{"Excep", "tion\n" + second}, want: running, wantProblem: `"Exception"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := newOutput()
			for _, data := range c.writes {
				if n, err := io.WriteString(o, data); n != len(data) || err != nil {
					t.Fatalf("Write(%q) = %d, %v", data, n, err)
				}
			}
			if diff := cmp.Diff(c.want, o.latest()); diff != "" {
				t.Errorf("latest (-want +got):\n%s", diff)
			}
			if got := fmt.Sprint(o.problem()); c.wantProblem == "" && o.problem() != nil || !strings.Contains(got, c.wantProblem) {
				t.Errorf("problem = %s, want it to contain %q", got, c.wantProblem)
			}
		})
	}
}

func TestReadBody(t *testing.T) {
	frame := func(content ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
	}
	cases := map[string]struct {
		flexible bool
		bytes    []byte
		want     []byte
		wantErr  string
	}{
		"the header is the correlation id":        {bytes: frame(0, 0, 0, 1, 7, 8), want: []byte{7, 8}},
		"a flexible header ends without tags":     {flexible: true, bytes: frame(0, 0, 0, 1, 0, 7, 8), want: []byte{7, 8}},
		"tags in the header are not supported":    {flexible: true, bytes: frame(0, 0, 0, 1, 1, 7, 8), wantErr: "tagged fields"},
		"the response is shorter than its header": {bytes: frame(0, 0, 1), wantErr: "response of 3 bytes"},
		"the response is larger than the maximum": {bytes: []byte{0xff, 0xff, 0xff, 0xff}, wantErr: "response of 4294967295 bytes"},
		"the response is truncated":               {bytes: frame(0, 0, 0, 1, 7, 8)[:8], wantErr: "unexpected EOF"},
		"there is no response":                    {wantErr: "EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := readBody(bytes.NewReader(c.bytes), c.flexible)
			if !bytes.Equal(got, c.want) {
				t.Errorf("body = %v, want %v", got, c.want)
			}
			wantErr := c.wantErr != ""
			if (err != nil) != wantErr || (wantErr && !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("error = %v, want %q", err, c.wantErr)
			}
		})
	}
}
