// What the protobuf library and TensorFlow's rules say about one serialized Example, for comparison
// with ExampleParser.
//
// Threads:  functions without state.
// Owns:     every result owns its values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/codec/example.h"

namespace penstock::testing {

// The values of the features asked for, or why there are none.
struct ParsedExample {
  struct Value {
    bool present = false;
    std::string bytes;
    std::vector<std::string> strings;  // where they are gathered
    std::vector<int64_t> ints;
    std::vector<uint32_t> float_bits;  // bits, since NaN must be compared too

    bool operator==(const Value&) const = default;
  };
  enum class Verdict { kFine, kMalformed, kUnwanted };

  Verdict verdict = Verdict::kFine;
  std::string message;
  std::vector<Value> values;  // empty unless fine
};

// Through the protobuf library.
ParsedExample ParseByProtobuf(const std::string& record,
                              const std::vector<ExampleFeature>& features);

// Through ExampleParser, from a heap block of exactly the record's size so that a sanitizer sees
// any overrun; by a new parser, or by one of the same features that has seen other records.
ParsedExample ParseByPenstock(const std::string& record,
                              const std::vector<ExampleFeature>& features);
ParsedExample ParseByPenstock(const std::string& record,
                              const std::vector<ExampleFeature>& features,
                              const ExampleParser& parser);

}  // namespace penstock::testing
