// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package memplan

// Range is the allowed range of a pod's memory limit.
type Range struct {
	// Template is the limit in the pod template.
	Template Bytes
	// Adjustable permits limits other than Template.
	Adjustable bool
	// Min and Max are the user's range. Min is 0, or Max is MaxBytes, where the user set none.
	Min, Max Bytes
	// Cap is the largest limit that the cluster permits; MaxBytes without a cap.
	Cap Bytes
	// BelowTemplate permits limits below Template, down to Min: RocksDB is known to be bounded in new pods.
	BelowTemplate bool
}

// CappedBy names the bound that keeps a limit below the required limit.
type CappedBy uint8

// The bounds of a limit.
const (
	// NotCapped: the limit is at least the required limit.
	NotCapped CappedBy = iota
	// CappedByMax: Range.Max is below the required limit.
	CappedByMax
	// CappedByCluster: Range.Cap is below the required limit.
	CappedByCluster
	// CappedByHeap: no limit holds the load, because the heap grows with the limit.
	CappedByHeap
)

// Floor returns the smallest limit of the range.
func (r Range) Floor() Bytes {
	if r.BelowTemplate && r.Min > 0 {
		return min(r.Template, r.Min)
	}
	return r.Template
}

// Ceiling returns the largest limit of the range. It is never below the floor.
func (r Range) Ceiling() Bytes { return max(min(r.Max, r.Cap), r.Floor()) }

// clamp moves a required limit into the range. It is the only place that limits are clamped. A load that no limit holds gets the
// smallest limit: a larger one would not help.
func (r Range) clamp(required Bytes) (Bytes, CappedBy) {
	if !r.Adjustable {
		return r.Template, NotCapped
	}
	if required >= MaxBytes {
		limit, _ := r.clamp(0)
		return limit, CappedByHeap
	}
	limit := min(max(required, r.Min, r.Floor()), r.Ceiling())
	switch {
	case limit >= required:
		return limit, NotCapped
	case r.Cap <= r.Max:
		return limit, CappedByCluster
	default:
		return limit, CappedByMax
	}
}
