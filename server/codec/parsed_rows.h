// Values of any number that a message was found to hold, as rows of a column: lists, groups, ragged
// and sparse tensors.
//
// Threads:  any; no state.
// Owns:     rows are in the arena, or where the values are.
// Cost:     a pass over the partitions or indices; sparse values are sorted unless they are.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "server/codec/example_value.h"
#include "server/codec/parsed_features.h"
#include "server/codec/sequence_example.h"

namespace penstock {

// A row of a feature that is not kFixed. `values`: of all lists of the plan. `dims`: the sizes of
// its axes, unless it is packed. DataLoss says which feature is wrong and how.
absl::Status MakeParsedRow(const ParsedFeaturePlan& feature, absl::Span<const ExampleValue> values,
                           Arena& arena, RowBytes* row, int64_t* dims);

// Makes a row of a kRagged feature of feature lists: `lists` are all of the plan. The steps are one
// more axis, in front of those that the partitions make; each step has its own partitions, in the
// same step of their lists.
absl::Status MakeRaggedSteps(const ParsedFeaturePlan& feature,
                             absl::Span<const SequenceValue> lists, Arena& arena, RowBytes* row);

}  // namespace penstock
