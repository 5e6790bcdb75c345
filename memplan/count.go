// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Count is a number of things: tasks, partitions, threads, RocksDB instances. Its arithmetic saturates as that of [Bytes] does.
type Count int64

// maxCount is the largest valid count of anything: partitions are int32 in Kafka's protocol.
const maxCount = 1<<31 - 1

// clampCount moves a number into the range of counts that Kafka can have, so that sums cannot overflow.
func clampCount(n int) int { return min(max(n, 0), maxCount) }

// countOf returns a number as a count, moved into the range of counts that Kafka can have.
func countOf(n int) Count { return Count(clampCount(n)) }

// Add returns c + o, saturating.
func (c Count) Add(o Count) Count { return Count(Bytes(c).Add(Bytes(o))) }

// Mul returns c times n, saturating.
func (c Count) Mul(n Count) Count { return Count(Bytes(c).Mul(n)) }

// dividedBy returns c / n, rounded up. A divisor below 1 counts as 1.
func (c Count) dividedBy(n Count) Count {
	n = max(n, 1)
	quotient := c / n
	if c%n > 0 {
		quotient++
	}
	return quotient
}
