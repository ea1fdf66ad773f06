#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/block_kernel.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

constexpr size_t kValueBytesMax = 8;

struct ElementBytes {
  uint8_t bytes[kValueBytesMax] = {};
};

class OneHot final : public BlockKernel {
 public:
  OneHot(DType indices, DType dtype, int64_t depth, bool sets_shape, const ElementBytes& on,
         const ElementBytes& off)
      : indices_(indices),
        bytes_(DTypeSize(dtype)),
        depth_(depth),
        sets_shape_(sets_shape),
        on_(on),
        off_(off),
        off_is_zero_(std::all_of(off.bytes, off.bytes + kValueBytesMax,
                                 [](uint8_t byte) { return byte == 0; })) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto count = static_cast<int64_t>(in.bytes / DTypeSize(indices_));
    if (sets_shape_) {
      const absl::Status status = CheckElements(1, count, depth_);
      if (!status.ok()) return status;
      Shape shape = in.shape;
      shape.push_back(depth_);
      out.SetShape(shape);
    }
    VisitNumber(indices_, [&](auto type) {
      Write<decltype(type)>(in.data, static_cast<size_t>(count), out);
    });
    return absl::OkStatus();
  }

  void RunRows(const uint8_t* in, size_t in_stride, size_t in_bytes, int rows,
               uint8_t* out) const override {
    const size_t count = in_bytes / DTypeSize(indices_);
    const size_t row_values = count * static_cast<size_t>(depth_);
    const int tile = static_cast<int>(
        std::clamp<size_t>(kTileBytes / std::max<size_t>(row_values * bytes_, 1), 1, 1 << 20));
    VisitNumber(indices_, [&](auto type) {
      for (int first = 0; first < rows; first += tile) {
        const int here = std::min(tile, rows - first);
        Fill(out, static_cast<size_t>(here) * row_values);
        for (int r = 0; r < here; ++r, in += in_stride, out += row_values * bytes_)
          PutOn<decltype(type)>(in, count, out);
      }
    });
  }

 private:
  // What is cleared before its values are set, while it is in L1.
  static constexpr size_t kTileBytes = 16 << 10;

  template <typename Index>
  void Write(const uint8_t* in, size_t count, RowOutput& out) const {
    const auto depth = static_cast<size_t>(depth_);
    const size_t tile = std::max<size_t>(kTileBytes / 4 / (depth * bytes_), 1);
    for (size_t start = 0; start < count; start += tile) {
      const size_t rows = std::min(tile, count - start);
      uint8_t* const to = out.Reserve(rows * depth * bytes_);
      Fill(to, rows * depth);
      PutOn<Index>(in + start * sizeof(Index), rows, to);
      out.Commit();
    }
  }

  template <typename Index>
  void PutOn(const uint8_t* in, size_t count, uint8_t* to) const {
    // Sizes that the compiler knows are single stores.
    if (bytes_ == 4) return PutOnOf<4, Index>(in, count, to);
    if (bytes_ == 8) return PutOnOf<8, Index>(in, count, to);
    if (bytes_ == 2) return PutOnOf<2, Index>(in, count, to);
    return PutOnOf<1, Index>(in, count, to);
  }

  template <size_t kBytes, typename Index>
  void PutOnOf(const uint8_t* in, size_t count, uint8_t* to) const {
    const auto depth = static_cast<size_t>(depth_);
    for (size_t i = 0; i < count; ++i, to += depth * kBytes) {
      Index index;
      std::memcpy(&index, in + i * sizeof(Index), sizeof(Index));
      // One that is not on the axis leaves its row off; a negative one is great without its sign.
      if (static_cast<uint64_t>(index) >= depth) continue;
      std::memcpy(to + static_cast<size_t>(index) * kBytes, on_.bytes, kBytes);
    }
  }

  void Fill(uint8_t* to, size_t values) const {
    if (off_is_zero_) {
      ClearInPieces(to, values * bytes_);
      return;
    }
    InPieces(values, [&](size_t first, size_t some) {
      for (size_t i = first; i < first + some; ++i)
        std::memcpy(to + i * bytes_, off_.bytes, bytes_);
    });
  }

  const DType indices_;
  const size_t bytes_;
  const int64_t depth_;
  const bool sets_shape_;
  const ElementBytes on_;
  const ElementBytes off_;
  const bool off_is_zero_;
};

// Whether an integer type has exactly this value; of a floating one any is near enough.
template <typename T, typename Given>
bool Holds(Given given) {
  if constexpr (std::is_floating_point_v<T>) {
    return true;
  } else if constexpr (std::is_integral_v<Given>) {
    return std::in_range<T>(given);
  } else {
    return given >= static_cast<Given>(std::numeric_limits<T>::min()) &&
           given < static_cast<Given>(std::numeric_limits<T>::max()) + 1 &&
           std::trunc(given) == given;
  }
}

// `number` as a value of the dtype, or an error: an integer must hold it exactly.
absl::Status Encode(DType dtype, const ExactNumber& number, const char* name, ElementBytes* value) {
  bool exact = false;
  VisitNumber(dtype, [&](auto type) {
    using T = decltype(type);
    std::visit(
        [&](auto given) {
          exact = Holds<T>(given);
          if (!exact) return;
          const T typed = static_cast<T>(given);
          std::memcpy(value->bytes, &typed, sizeof(T));
        },
        number);
  });
  if (exact) return absl::OkStatus();
  const std::string found = std::visit([](auto given) { return absl::StrCat(given); }, number);
  return WrongArgument(name,
                       absl::StrCat("a number that ", DTypeName(dtype), " holds, found ", found));
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& indices = arguments[0].type;
  if (!IsInteger(indices.dtype)) {
    return WrongArgument("indices", absl::StrCat("integers, found ", TypeToString(indices)));
  }
  int64_t depth = 0;
  ExactNumber on = int64_t{1}, off = int64_t{0};
  std::string name = "float32";
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[1], "depth", 1, kImageSideMax, &depth),
                      ReadConstant(arguments[2], "on_value", &on),
                      ReadConstant(arguments[3], "off_value", &off),
                      ReadConstant(arguments[4], "dtype", &name)});
      !status.ok()) {
    return status;
  }
  const auto dtype = DTypeFromName(name);
  if (!dtype || !VisitNumber(*dtype, [](auto) {})) {
    return WrongArgument("dtype",
                         absl::StrCat("the name of a dtype of numbers, found \"", name, "\""));
  }
  ElementBytes on_bytes, off_bytes;
  if (const absl::Status status = FirstError({Encode(*dtype, on, "on_value", &on_bytes),
                                              Encode(*dtype, off, "off_value", &off_bytes)});
      !status.ok()) {
    return status;
  }
  BoundRowFunction bound;
  bound.type = {*dtype, indices.shape};
  bound.type.shape.push_back(depth);
  bound.kernel = std::make_shared<OneHot>(
      indices.dtype, *dtype, depth, !NumElements(indices.shape).has_value(), on_bytes, off_bytes);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "one_hot",
    .signature = "one_hot(indices, depth, on_value=1, off_value=0, dtype=\"float32\")",
    .doc = "A new last axis on which the value at the index is on and all others are off, as "
           "tf.one_hot makes it.\n"
           "\n"
           "indices: integers of any shape.\n"
           "depth: the size of the new axis, a constant.\n"
           "on_value, off_value: constants that the dtype holds.\n"
           "dtype: the result's, a name: an integer type, \"float32\" or \"float64\".\n"
           "\n"
           "An index that is negative or not below the depth has all values off. TensorFlow's "
           "bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
