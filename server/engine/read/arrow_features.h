// The features that are asked for of Arrow files: which column each is made of, and what it
// becomes.
//
// Threads:  one thread, while a plan is made; then constant.
// Limits:   4,096 features; 2^26 values in the axes of known size of each; kArrowListAxesMax axes
//           of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/signature.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "io/arrow/arrow_column.h"
#include "penstock/v1/ops.pb.h"

namespace penstock {

inline constexpr size_t kArrowListAxesMax = 3;

struct ArrowFeature {
  std::string name;
  std::vector<std::string> path;
  ArrowColumn column;     // in the first file
  TensorType type;        // of a row
  size_t list_axes = 0;   // of any size, which are the first ones
  size_t row_values = 1;  // of the axes of known size

  std::optional<std::string> default_value;  // the bytes of one value
  bool allow_missing = false;
  bool is_null = false;

  // Whether rows are numbers of a fixed size, which lie in the column.
  bool is_dense() const { return list_axes == 0 && type.dtype != DType::kString; }
};

// Those that are asked for, or all that the schema has. InvalidArgument names the feature.
absl::StatusOr<std::vector<ArrowFeature>> PlanArrowFeatures(
    const google::protobuf::RepeatedPtrField<v1::ArrowFeature>& wanted, const ArrowSchema& schema);

// The columns of the features in another file. InvalidArgument where they are of other types than
// in the first one.
absl::StatusOr<std::vector<ArrowColumn>> ArrowColumnsOf(const std::vector<ArrowFeature>& features,
                                                        const ArrowSchema& schema);

}  // namespace penstock
