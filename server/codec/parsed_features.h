// The features that a parse_example or parse_sequence_example wants: which lists of a serialized
// message, and what they become.
//
// Threads:  one thread, while a plan is made; then constant.
// Limits:   those of server/codec/feature_limits.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/signature.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "penstock/v1/ops.pb.h"
#include "server/codec/example.h"

namespace penstock {

// How the items of a ragged axis are found.
struct RowPartitionPlan {
  v1::RowPartition::KindCase kind = v1::RowPartition::KIND_NOT_SET;
  size_t list = 0;     // of the partition's numbers
  int64_t length = 0;  // of uniform rows
};

// One feature of the result.
struct ParsedFeaturePlan {
  enum class Kind : uint8_t {
    kFixed,     // as many values as the shape holds
    kList,      // of any length: RowForm kPlain, kRagged or kSparse, by the type
    kSequence,  // the same in groups of `group` values
    kRagged,    // RowForm kPackedRagged, or kPlain or kRagged where all partitions are uniform
    kIndexed,   // RowForm kPackedSparse
  };
  Kind kind = Kind::kFixed;
  std::string name;
  TensorType type;
  size_t list = 0;  // of the values: its position among ParsedFeatures::lists

  // kFixed
  bool fixed_bytes = false;  // uint8 (length,) instead of a string
  size_t length = 0;         // of fixed bytes
  bool has_default = false;
  std::vector<uint8_t> default_value;  // as it lies in memory, with Arena::kPadding behind it
  size_t row_bytes = 0;                // of numbers and fixed bytes

  // kSequence
  int64_t group = 1;
  bool allow_missing = false;
  std::string padding;  // one element, of the rows of a batch

  // kRagged: the outermost first; those that are only sizes of the shape behind the last ragged
  // axis are counted in `group`.
  std::vector<RowPartitionPlan> partitions;
  bool narrow_splits = false;  // as TensorType has it, once the type is a ragged one

  // kIndexed
  std::vector<size_t> index_lists;
  bool already_sorted = false;
};

struct ParsedFeatures {
  std::vector<ExampleFeature> lists;  // distinct keys
  std::vector<ParsedFeaturePlan> features;

  Signature signature() const;
};

// What a batch made of rows is to be known for is decided here: where they are `batched` already,
// ragged features are ragged, and sequences are to be padded; otherwise they are lists.
absl::StatusOr<ParsedFeatures> PlanParsedFeatures(
    const google::protobuf::RepeatedPtrField<v1::ParsedFeature>& features, bool batched);

}  // namespace penstock
