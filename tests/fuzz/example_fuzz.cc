// Looks for bytes on which ExampleParser and the protobuf library differ: faults 11 to 19.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/codec/example_oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::DType;
  static const std::vector<penstock::ExampleFeature> features = {
      {"d", DType::kString, 1},       {"s", DType::kInt64, 1},
      {"f", DType::kFloat32, 2},      {"D", DType::kString, -1, true},
      {"S", DType::kInt64, -1, true}, {"F", DType::kFloat32, -1, true}};
  const std::string record(reinterpret_cast<const char*>(data), size);
  const auto theirs = penstock::testing::ParseByProtobuf(record, features);
  const penstock::ExampleParser parser(features);
  penstock::testing::ParseByPenstock(record, features, parser);  // makes its form known
  const auto ours = penstock::testing::ParseByPenstock(record, features, parser);
  if (ours.verdict != theirs.verdict || ours.values != theirs.values) std::abort();
  return 0;
}
