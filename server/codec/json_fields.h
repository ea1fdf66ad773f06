// The features that a decode_json wants: where their values stand in a document, and what they
// become.
//
// Threads:  one thread, while a plan is made; then constant.
// Limits:   those of server/codec/feature_limits.h; kListAxesMax axes of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/signature.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "penstock/v1/ops.pb.h"
#include "server/codec/json_path.h"

namespace penstock {

// What becomes of bytes that are no UTF-8, and of lone surrogates.
enum class JsonErrors : uint8_t { kStrict, kReplace };

// Of "strict", which "" is, or "replace".
absl::StatusOr<JsonErrors> JsonErrorsFromName(const std::string& name);

struct JsonField {
  static constexpr size_t kListAxesMax = 3;

  std::string name;
  std::vector<JsonStep> steps;  // as many kEach as the shape has axes
  TensorType type;              // of a row
  Shape shape;                  // as declared: kUnknownSize first, then known sizes
  size_t list_axes = 0;         // of any size
  size_t row_values = 1;        // of the known sizes

  // One for all, or one for each of row_values: bytes of numbers, or strings. Both empty: there is
  // none.
  std::vector<uint8_t> default_numbers;
  std::vector<std::string> default_strings;
  bool allow_missing = false;
  bool refuse_null = false;
  bool from_text = false;

  bool pads = false;    // behind a batch
  std::string padding;  // one element, of the rows of such a batch

  bool has_default() const { return !default_numbers.empty() || !default_strings.empty(); }
  // Whether rows are numbers of a fixed size, which lie in the column.
  bool is_dense() const { return list_axes == 0 && type.dtype != DType::kString; }
};

// `batched`: whether elements are in batches already, so that lists become ragged. InvalidArgument
// names the feature.
absl::StatusOr<std::vector<JsonField>> PlanJsonFields(
    const google::protobuf::RepeatedPtrField<v1::JsonFeature>& features, bool batched);

}  // namespace penstock
