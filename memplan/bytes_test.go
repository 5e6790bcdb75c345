// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"math"
	"math/big"
	"testing"
)

func TestBytesString(t *testing.T) {
	cases := map[string]struct {
		b     Bytes
		want  string
		short string
	}{
		"whole MiB":                  {b: 512 * MiB, want: "512 MiB", short: "512 MiB"},
		"whole GiB":                  {b: 2 * GiB, want: "2 GiB", short: "2048 MiB"},
		"whole KiB":                  {b: 16 * KiB, want: "16 KiB", short: "16 KiB"},
		"not round: exact bytes":     {b: 498_439_169, want: "498439169 B", short: "475.3 MiB"},
		"nothing":                    {b: 0, want: "0 B", short: "0 B"},
		"negative":                   {b: -3 * MiB, want: "-3 MiB", short: "-3 MiB"},
		"the lowest amount":          {b: math.MinInt64, want: "-8589934592 GiB", short: "-8589934592 GiB"},
		"GiB from 10 of them on":     {b: 13*GiB + 800*MiB, want: "14112 MiB", short: "13.8 GiB"},
		"the largest amount is odd ": {b: MaxBytes, want: "9223372036854775807 B", short: "8589934592 GiB"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.b.String(); got != c.want {
				t.Errorf("String() = %q, want %q", got, c.want)
			}
			if got := short(c.b); got != c.short {
				t.Errorf("short = %q, want %q", got, c.short)
			}
		})
	}
}

// saturate is the int64 nearest to an exact result.
func saturate(exact *big.Int) Bytes {
	switch {
	case exact.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return MaxBytes
	case exact.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return Bytes(exact.Int64())
}

// FuzzBytes compares the arithmetic with exact arithmetic, held within the range.
func FuzzBytes(f *testing.F) {
	edges := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 32, -(1 << 40)}
	for _, a := range edges {
		for _, b := range edges {
			f.Add(a, b, int64(3))
		}
	}
	f.Add(int64(1<<33), int64(1<<33), int64(4)) // the quotient is just too large
	f.Fuzz(func(t *testing.T, a, b, c int64) {
		x, y, z := big.NewInt(a), big.NewInt(b), big.NewInt(c)
		if got, want := Bytes(a).Add(Bytes(b)), saturate(new(big.Int).Add(x, y)); got != want {
			t.Errorf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Bytes(a).Sub(Bytes(b)), saturate(new(big.Int).Sub(x, y)); got != want {
			t.Errorf("%d - %d = %d, want %d", a, b, got, want)
		}
		if got, want := Bytes(a).Mul(Count(b)), saturate(new(big.Int).Mul(x, y)); got != want {
			t.Errorf("%d * %d = %d, want %d", a, b, got, want)
		}
		if got, want := Count(a).Add(Count(b)), saturate(new(big.Int).Add(x, y)); got != Count(want) {
			t.Errorf("%d + %d = %d things, want %d", a, b, got, want)
		}
		if got, want := Count(a).Mul(Count(b)), saturate(new(big.Int).Mul(x, y)); got != Count(want) {
			t.Errorf("%d * %d = %d things, want %d", a, b, got, want)
		}
		want := Bytes(0)
		if a > 0 && b > 0 && c > 0 {
			up := new(big.Int).Add(new(big.Int).Mul(x, y), new(big.Int).Sub(z, big.NewInt(1)))
			want = saturate(up.Div(up, z))
		}
		if got := Bytes(a).Scale(b, c); got != want {
			t.Errorf("%d * %d / %d = %d, want %d", a, b, c, got, want)
		}
		short(Bytes(a))
	})
}

func TestAlign(t *testing.T) {
	cases := map[string]struct{ b, step, up, down Bytes }{
		"between":         {b: 5, step: 4, up: 8, down: 4},
		"on a step":       {b: 8, step: 4, up: 8, down: 8},
		"no step":         {b: 5, step: 0, up: 5, down: 5},
		"at the very end": {b: MaxBytes, step: MiB, up: MaxBytes, down: MaxBytes - (MiB - 1)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if up, down := c.b.alignUp(c.step), c.b.alignDown(c.step); up != c.up || down != c.down {
				t.Errorf("up %d, down %d; want %d, %d", up, down, c.up, c.down)
			}
		})
	}
}

func TestDivision(t *testing.T) {
	cases := map[string]struct {
		amount, n     int64
		per, divideUp int64
	}{
		"with a rest":      {amount: 7, n: 2, per: 3, divideUp: 4},
		"without a rest":   {amount: 8, n: 2, per: 4, divideUp: 4},
		"by nothing":       {amount: 7, n: 0, per: 7, divideUp: 7},
		"the largest":      {amount: math.MaxInt64, n: 2, per: math.MaxInt64 / 2, divideUp: math.MaxInt64/2 + 1},
		"the largest by 1": {amount: math.MaxInt64, n: 1, per: math.MaxInt64, divideUp: math.MaxInt64},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Bytes(c.amount).per(Count(c.n)); got != Bytes(c.per) {
				t.Errorf("per = %d, want %d", got, c.per)
			}
			if got := Count(c.amount).dividedBy(Count(c.n)); got != Count(c.divideUp) {
				t.Errorf("dividedBy = %d, want %d", got, c.divideUp)
			}
		})
	}
}

func TestProvenanceIsNoBetterThanTheWeakestPart(t *testing.T) {
	if got := weakest(Measured, App, Default, Spec); got != Default {
		t.Errorf("weakest = %v, want default", got)
	}
	want := map[Provenance]string{Assumed: "assumed", Default: "default", Derived: "derived", Spec: "spec", App: "app", Measured: "measured", 99: "assumed"}
	for p, name := range want {
		if p.String() != name {
			t.Errorf("%d is %q, want %q", p, p.String(), name)
		}
	}
}

func TestParseVersion(t *testing.T) {
	cases := map[string]struct {
		want    Version
		wantErr bool
	}{
		"4.4.0":          {want: Version{4, 4, 0}},
		"3.9":            {want: Version{3, 9, 0}},
		"4.3.0-SNAPSHOT": {want: Version{4, 3, 0}},
		"2.8.1.5":        {want: Version{2, 8, 1}},
		"4":              {wantErr: true},
		"":               {wantErr: true},
		"a.b":            {wantErr: true},
		"4.-1":           {wantErr: true},
	}
	for text, c := range cases {
		t.Run(text, func(t *testing.T) {
			got, err := ParseVersion(text)
			if got != c.want && err == nil || (err != nil) != c.wantErr {
				t.Errorf("ParseVersion = %v, %v; want %v, error: %v", got, err, c.want, c.wantErr)
			}
		})
	}
}

func TestVersionOrder(t *testing.T) {
	v := Version{4, 2, 1}
	if v.Before(4, 2, 1) || !v.Before(4, 2, 2) || !v.Before(4, 3, 0) || v.Before(3, 9, 9) || !v.Before(5, 0, 0) {
		t.Error("Before does not order versions")
	}
	if v.String() != "4.2.1" {
		t.Errorf("String is %s", v)
	}
}
