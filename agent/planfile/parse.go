// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package planfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxAmount bounds the values of properties: 1 PiB. The agent rejects larger ones.
const maxAmount = 1 << 50

// errUnknown is the error of a property outside of this version.
var errUnknown = errors.New("unknown property")

// Parse reads the files of a plan. Like the agent, it ignores unknown properties of newer versions. It does not check the revision.
func Parse(files map[string]string) (Plan, error) {
	text, ok := files[PropertiesKey]
	if !ok {
		return Plan{}, fmt.Errorf("%s is missing", PropertiesKey)
	}
	var plan Plan
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return Plan{}, fmt.Errorf("%s: line %q has no value", PropertiesKey, line)
		}
		if err := plan.SetProperty(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil && !errors.Is(err, errUnknown) {
			return Plan{}, fmt.Errorf("%s: %w", PropertiesKey, err)
		}
	}
	plan.Options = strings.Fields(files[OptionsKey])
	return plan, nil
}

// SetProperty sets the field of a property, given by its name in the file. A property of Kafka Streams is appended.
func (p *Plan) SetProperty(key, value string) error {
	for _, amount := range amounts {
		if amount.key == key {
			return setAmount(amount.at(p), 1, key, value)
		}
	}
	if name, ok := strings.CutPrefix(key, streamsPrefix); ok {
		config := Config{Name: name}
		err := setAmount(&config.Value, 0, key, value) // A record cache may have 0 bytes.
		if err == nil {
			p.Streams = append(p.Streams, config)
		}
		return err
	}
	if key == replaceCachesKey {
		p.RocksDB.ReplaceCaches = value == "true"
		return nil
	}
	return fmt.Errorf("%w %s", errUnknown, key)
}

// setAmount parses an amount of at least least.
func setAmount(to *int64, least int64, key, value string) error {
	amount, err := strconv.ParseInt(value, 10, 64)
	if err != nil || amount < least || amount > maxAmount {
		return fmt.Errorf("%s=%s: the value must be a number from %d to %d", key, value, least, int64(maxAmount))
	}
	*to = amount
	return nil
}
