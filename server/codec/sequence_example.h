// Reads feature lists out of serialized tf.train.SequenceExample messages, with the verdict of the
// protobuf library on every input. Their contexts are read by ExampleParser: a context stands where
// an Example has its features.
//
// Threads:  Parse() is safe from any thread.
// Owns:     the list of features; what Parse() finds is in the caller's arena.
// Limits:   as ExampleParser's.
// Cost:     two walks over each list that is wanted, one over all others.
//
//   SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//   FeatureLists { map<string, FeatureList> feature_list = 1; }   FeatureList { repeated Feature feature = 1; }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/arena.h"
#include "server/codec/example.h"
#include "server/codec/example_value.h"

namespace penstock {

// What one feature list was found to be.
struct SequenceValue {
  uint32_t steps = 0;
  int64_t* lengths = nullptr;  // the values of each step
  ExampleValue values;         // of all steps, one after another; present where the list is
};

class SequenceParser {
 public:
  // Distinct keys; `count` of each is that of one step.
  explicit SequenceParser(std::vector<ExampleFeature> lists) : lists_(std::move(lists)) {}

  // For list i, values[i]. DataLoss says what is wrong, without the record's address. A step whose
  // Feature has no kind has no values.
  absl::Status Parse(const uint8_t* data, size_t size, SequenceValue* values, Arena& arena) const;

 private:
  struct Walk;

  const std::vector<ExampleFeature> lists_;
};

}  // namespace penstock
