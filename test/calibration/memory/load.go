// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// generator writes updates of keys to topics. Record i has a key of keyBytes and a value that begins with another record's key.
type generator struct {
	client *kgo.Client
	topics []string
	// keys is the number of keys of each topic; updates go to the first hot of them.
	keys, hot  int
	valueBytes int
	// speed is the factor by which timestamps advance faster than the clock, so that windows close in a short run.
	speed float64

	from   time.Time
	random *rand.Rand
	noise  []byte
	sent   atomic.Int64
	failed atomic.Pointer[error]
}

const (
	// keyBytes is the length of a key and of a foreign key.
	keyBytes = 16
	// timeBehind keeps fast timestamps behind the clock: a broker refuses timestamps in the future (message.timestamp.after.max.ms).
	timeBehind = 2 * time.Hour
	// tick is the interval between two batches of updates.
	tick = 10 * time.Millisecond
)

// newGenerator creates a generator. It always generates the same records.
func newGenerator(client *kgo.Client, s *scenario, topics ...string) *generator {
	g := &generator{
		client: client, topics: topics, keys: s.Keys, hot: s.Hot, valueBytes: s.ValueBytes, speed: s.Speed,
		from: time.Now(), random: rand.New(rand.NewPCG(1, 2)), noise: make([]byte, 1<<20),
	}
	if g.hot <= 0 {
		g.hot = g.keys
	}
	for i := range g.noise { // 16 symbols: compression halves it
		g.noise[i] = "0123456789abcdef"[g.random.IntN(16)]
	}
	return g
}

// fill writes each key of each topic once, as fast as the broker accepts it.
func (g *generator) fill(ctx context.Context) error {
	for i := range g.keys {
		for _, topic := range g.topics {
			g.write(ctx, topic, i)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return g.flush(ctx)
}

// burst writes updates of random keys, as fast as the broker accepts them.
func (g *generator) burst(ctx context.Context, updates int) error {
	for i := range updates {
		g.write(ctx, g.topics[i%len(g.topics)], g.random.IntN(g.hot))
	}
	return g.flush(ctx)
}

// flush waits until the broker has acknowledged all records.
func (g *generator) flush(ctx context.Context) error {
	if err := g.client.Flush(ctx); err != nil {
		return err
	}
	return g.failure()
}

// update writes updates of random keys at a rate per second until stop is closed.
func (g *generator) update(ctx context.Context, rate int, stop <-chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	from, written := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case <-ticker.C:
		}
		for due := int(time.Since(from).Seconds() * float64(rate)); written < due; written++ {
			g.write(ctx, g.topics[written%len(g.topics)], g.random.IntN(g.hot))
		}
	}
}

// write passes one record to the client, and waits while too many are in flight.
func (g *generator) write(ctx context.Context, topic string, key int) {
	value := make([]byte, g.valueBytes)
	at := g.random.IntN(len(g.noise) - g.valueBytes)
	copy(value[copy(value, keyOf(g.random.IntN(g.keys))):], g.noise[at:])
	elapsed := time.Duration(float64(time.Since(g.from)) * g.speed)
	record := &kgo.Record{Topic: topic, Key: keyOf(key), Value: value, Timestamp: g.from.Add(elapsed - timeBehind)}
	g.client.Produce(ctx, record, func(_ *kgo.Record, err error) {
		if err == nil {
			g.sent.Add(1)
		} else if ctx.Err() == nil {
			g.failed.CompareAndSwap(nil, &err)
		}
	})
}

// failure is the first error of a write.
func (g *generator) failure() error {
	if err := g.failed.Load(); err != nil {
		return fmt.Errorf("write to the broker: %w", *err)
	}
	return nil
}

func keyOf(i int) []byte { return fmt.Appendf(nil, "%0*d", keyBytes, i) }
