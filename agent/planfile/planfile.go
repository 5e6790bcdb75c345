// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planfile defines the files of a plan. The operator writes them into a ConfigMap for the pods to mount. The JVM reads its options
// from one of them, and the agent reads the others.
package planfile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Keys of the plan ConfigMap, equal to the names of the mounted files.
const (
	// OptionsKey holds the JVM options, one per line.
	OptionsKey = "jvm.options"
	// PropertiesKey holds the properties for the agent, in version 1 of the schema.
	PropertiesKey = "plan.v1.properties"
	// RevisionKey holds the revision of the files above. The agent reports the revision on disk and the active one.
	RevisionKey = "revision"
	// TokenKey holds the token of the report: the agent serves it only to clients with the token. It is not a part of the plan.
	TokenKey = "token"
)

// Plan is the content of a plan. All amounts are bytes. A zero amount is not written.
type Plan struct {
	// Limit and Heap are the memory limit of the container and the maximum heap assumed by the plan.
	Limit int64
	Heap  int64
	// Options are the JVM options.
	Options []string
	// RocksDB holds the common bounds of all stores. It is zero in a plan without bounds.
	RocksDB RocksDB
	// Streams are configs of Kafka Streams and its clients.
	Streams []Config
}

// RocksDB holds the common bounds of all stores of a process.
type RocksDB struct {
	// Cache is the capacity of the shared block cache.
	Cache int64
	// WriteBufferManager is the limit of all memtables. They are charged to the cache.
	WriteBufferManager int64
	// ArenaBlock and WriteBuffer are the arena_block_size and write_buffer_size of each store. Zero keeps RocksDB's default.
	ArenaBlock  int64
	WriteBuffer int64
	// ReplaceCaches replaces the block caches of the application's own RocksDBConfigSetter.
	ReplaceCaches bool
}

// Config is a config of Kafka Streams.
type Config struct {
	// Name includes the prefix of the client, such as "main.consumer.".
	Name  string
	Value int64
}

// Names of properties.
const (
	streamsPrefix    = "streams."
	replaceCachesKey = "rocksdb.replace.caches"
)

// amounts are the amounts in bytes, in the order of the properties file.
var amounts = []struct {
	key string
	at  func(*Plan) *int64
}{
	{"limit.bytes", func(p *Plan) *int64 { return &p.Limit }},
	{"heap.bytes", func(p *Plan) *int64 { return &p.Heap }},
	{"rocksdb.cache.bytes", func(p *Plan) *int64 { return &p.RocksDB.Cache }},
	{"rocksdb.write.buffer.manager.bytes", func(p *Plan) *int64 { return &p.RocksDB.WriteBufferManager }},
	{"rocksdb.arena.block.bytes", func(p *Plan) *int64 { return &p.RocksDB.ArenaBlock }},
	{"rocksdb.write.buffer.bytes", func(p *Plan) *int64 { return &p.RocksDB.WriteBuffer }},
}

// Files returns the files of the plan, with its revision.
func (p Plan) Files() map[string]string {
	return WithRevision(map[string]string{
		OptionsKey:    strings.Join(p.Options, "\n") + "\n",
		PropertiesKey: p.properties(),
	})
}

// Revision returns the revision of the plan.
func (p Plan) Revision() string { return p.Files()[RevisionKey] }

// properties returns the text of the properties file.
func (p Plan) properties() string {
	var text strings.Builder
	write := func(key, value string) { text.WriteString(key + "=" + value + "\n") }
	for _, amount := range amounts {
		if value := *amount.at(&p); value != 0 {
			write(amount.key, strconv.FormatInt(value, 10))
		}
	}
	for _, config := range p.Streams {
		write(streamsPrefix+config.Name, strconv.FormatInt(config.Value, 10))
	}
	if p.RocksDB.ReplaceCaches {
		write(replaceCachesKey, "true")
	}
	return text.String()
}

// WithRevision returns a copy of the files with the revision of their content.
func WithRevision(files map[string]string) map[string]string {
	revised := maps.Clone(files)
	revised[RevisionKey] = Revision(files)
	return revised
}

// Revision returns the revision of files: a hash of all of them but the revision itself and the token. The same plan always has the same
// revision.
func Revision(files map[string]string) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if key != RevisionKey && key != TokenKey {
			hash.Write([]byte(key + "\x00" + files[key] + "\x00"))
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// WithToken returns a copy of the files with the token of the stored files, or with a new one if they have none. The token stays for as long as
// the ConfigMap exists, so that the running pods and the operator keep the same one.
func WithToken(files, stored map[string]string) map[string]string {
	complete := maps.Clone(files)
	complete[TokenKey] = Token(stored)
	if complete[TokenKey] == "" {
		random := make([]byte, tokenBytes)
		_, _ = rand.Read(random) // never fails
		complete[TokenKey] = hex.EncodeToString(random)
	}
	return complete
}

// tokenBytes is the number of random bytes of a token. The file has two characters for each.
const tokenBytes = 32

// Token returns the token in the data of a plan ConfigMap; empty without a valid one.
func Token(data map[string]string) string {
	token := data[TokenKey]
	if decoded, err := hex.DecodeString(token); err != nil || len(decoded) != tokenBytes {
		return ""
	}
	return token
}
