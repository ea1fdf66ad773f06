// What an element looks like: the name, type and shape of each of its features.
//
// Threads:  values, and functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/dtype.h"

namespace penstock {

// A size that only the data tells.
inline constexpr int64_t kUnknownSize = -1;

// The sizes of the axes, outermost first; empty for a scalar.
using Shape = absl::InlinedVector<int64_t, 6>;

// How the rows of a feature become one tensor of a batch, where that does not follow from the batch
// op alone, and how such a row lies in memory.
enum class RowForm : uint8_t {
  kPlain,
  kRagged,        // a list; a batch of them is ragged
  kSparse,        // dense values; a batch of them is sparse and holds them all, each at its place
  kPackedRagged,  // a row that is ragged itself (base/packed_row.h)
  kPackedSparse,  // values at places of their own (the same); the shape is that of the dense tensor
};

struct TensorType {
  DType dtype = DType::kInvalid;
  Shape shape;
  RowForm form = RowForm::kPlain;
  // Ragged: trainers see its row splits as int32, as they asked for; here they are int64.
  bool narrow_splits = false;

  // Whether a row is something else than its values in C order.
  bool packed() const { return form >= RowForm::kPackedRagged; }

  bool operator==(const TensorType&) const = default;
};

struct Feature {
  std::string name;
  TensorType type;

  bool operator==(const Feature&) const = default;
};

// The features of one element, in the order in which the spec names them.
using Signature = std::vector<Feature>;

// Whether only the data tells the size of an axis.
bool HasUnknownSize(const Shape& shape);

// The number of elements; nullopt when an axis is unknown or the product leaves 63 bits.
std::optional<int64_t> NumElements(const Shape& shape);

// Bytes of a dense tensor; nullopt for strings, unknown axes, packed rows and overflow.
std::optional<int64_t> NumBytes(const TensorType& type);

// "(8, 8, 24)", "(?, ?, 3)", "()".
std::string ShapeToString(const Shape& shape);

// "float32 (8, 8, 24)", "sparse int64 (?,)", "ragged int64 (?,) with row splits of int32".
std::string TypeToString(const TensorType& type);

// "image float32 (8, 8, 24), label int64 ()".
std::string SignatureToString(const Signature& signature);

// The name of `known` nearest to `name` by edit distance, when near enough to be a slip of the pen;
// else "".
std::string NearestName(std::string_view name, const std::vector<std::string>& known);

// ", did you mean \"map\"?" or "".
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

// "a, b, c"; of more than 16 names the first ones, "and 284 more".
std::string ListNames(const std::vector<std::string>& names);

}  // namespace penstock
