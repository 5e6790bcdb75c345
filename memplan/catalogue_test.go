// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

import (
	"strconv"
	"testing"
)

func TestDefaultsOfTheCatalogueAreValid(t *testing.T) {
	w := NewWorkload(Known(Version{4, 4, 0}, Spec))
	for i := range settings {
		s := &settings[i]
		if s.number == nil {
			continue
		}
		was := s.number.get(&w, s.role)
		if was.From != Default || was.Value < s.number.minimum() {
			t.Errorf("%s is %+v by default, below the minimum of %d", s.label(), was, s.number.minimum())
		}
		if err := s.value.parse(&w, s.role, strconv.FormatInt(was.Value, 10)); err != nil {
			t.Errorf("%s cannot be set to its default: %v", s.label(), err)
		}
		if now := s.number.get(&w, s.role); now != Known(was.Value, App) {
			t.Errorf("%s is %+v after it was set to its default of %d", s.label(), now, was.Value)
		}
	}
	if err := Check(w, DefaultPolicy(), GiB); err != nil {
		t.Errorf("a workload of defaults is invalid: %v", err)
	}
}

func TestEachSettingHasAPlaceAndANameOfItsOwn(t *testing.T) {
	names := map[string]bool{}
	for i := range settings {
		s := &settings[i]
		name := s.value.prefixes(s.role)[0] + s.name
		if names[name] {
			t.Errorf("%s is a duplicate", name)
		}
		names[name] = true
		if s.number == nil {
			continue
		}
		w := release(4, 4, 0)
		for j := range settings {
			if other := &settings[j]; other.number != nil {
				other.number.set(&w, other.role, Known(int64(j), Spec))
			}
		}
		if got := s.number.get(&w, s.role); got != Known(int64(i), Spec) {
			t.Errorf("%s shares its place with %s", s.label(), settings[got.Value].label())
		}
	}
}

func TestNamesByVersion(t *testing.T) {
	cases := map[string]struct {
		config  kafkaConfig
		version Fact[Version]
		want    string
		valid   []string
	}{
		"before the present name": {
			config: recordCacheConfig, version: Known(Version{3, 3, 2}, Spec),
			want: "cache.max.bytes.buffering", valid: []string{"cache.max.bytes.buffering"},
		},
		"with the present name": {
			config: recordCacheConfig, version: Known(Version{3, 4, 0}, Spec),
			want: "statestore.cache.max.bytes", valid: []string{"statestore.cache.max.bytes", "cache.max.bytes.buffering"},
		},
		"a version that is only assumed may be newer": {
			config: recordCacheConfig, version: Known(Version{3, 3, 2}, Assumed),
			want: "cache.max.bytes.buffering", valid: []string{"statestore.cache.max.bytes", "cache.max.bytes.buffering"},
		},
		"a version without the config": {config: kafkaConfig{name: "new", since: Version{4, 4, 0}}, version: Known(Version{4, 3, 0}, Spec), want: "new"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.config.nameIn(c.version.Value); got != c.want {
				t.Errorf("name %q, want %q", got, c.want)
			}
			got := c.config.validNames(c.version)
			if len(got) != len(c.valid) {
				t.Fatalf("valid names %q, want %q", got, c.valid)
			}
			for i := range got {
				if got[i] != c.valid[i] {
					t.Errorf("valid names %q, want %q", got, c.valid)
				}
			}
		})
	}
}
