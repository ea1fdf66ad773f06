#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"
#include "server/expr/graph.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

constexpr size_t kValuesAtOnce = size_t{1} << 16;
// Of a value, as StopLook counts it.
constexpr uint64_t kValueWork = 16;
constexpr uint64_t kReadWork = 8;

class Bincount final : public RowKernel {
 public:
  // max_length: values from it on are not counted; absent: all are. `weights`: their dtype,
  // kInvalid where there are none. by_rows: along the last axis, where there are as many counts as
  // max_length says.
  Bincount(DType dtype, DType weights, int64_t min_length, std::optional<int64_t> max_length,
           bool by_rows, bool sets_shape)
      : dtype_(dtype),
        weights_(weights),
        min_length_(min_length),
        max_length_(max_length),
        by_rows_(by_rows),
        sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& x = arguments[0];
    const auto count = static_cast<size_t>(*NumElements(x.shape));
    if (weights_ != DType::kInvalid && arguments[1].shape != x.shape) {
      return absl::DataLossError(absl::StrCat("bincount: weights of shape ",
                                              ShapeToString(arguments[1].shape), " for values of ",
                                              ShapeToString(x.shape)));
    }
    auto* const values = scratch.AllocateArray<int64_t>(count);
    int64_t length = min_length_;
    if (absl::Status status = ReadValues(x, count, values, &length); !status.ok()) return status;
    Shape shape = {length};
    if (by_rows_) shape.insert(shape.begin(), x.shape.begin(), x.shape.end() - 1);
    const auto counts = CountElements(shape);
    if (!counts.ok()) return counts.status();
    if (sets_shape_) out.SetShape(shape);
    const size_t bytes = static_cast<size_t>(*counts) * sizeof(int64_t);
    uint8_t* to = out.Reserve(bytes);
    ClearInPieces(to, bytes);
    const size_t together = by_rows_ ? static_cast<size_t>(x.shape.back()) : count;
    StopLook look;
    for (size_t first = 0; first < count; first += together) {
      for (size_t at = first; at < first + together; at += kValuesAtOnce) {
        const size_t now = std::min(first + together - at, kValuesAtOnce);
        look.Did(now * kValueWork);
        AddAll(values + at, now, length, arguments, at, to);
      }
      to += static_cast<size_t>(length) * sizeof(int64_t);
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  // Raises `length` to what the greatest value needs.
  absl::Status ReadValues(const RowValue& x, size_t count, int64_t* values, int64_t* length) const {
    int64_t greatest = -1;
    const int64_t limit = max_length_.value_or(kMaxRowElements);
    absl::Status status;
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      StopLook look;
      for (size_t i = 0; i < count; ++i) {
        look.Did(kReadWork);
        T value;
        std::memcpy(&value, x.data + i * sizeof(T), sizeof(T));
        values[i] = static_cast<int64_t>(value);
        if (values[i] < 0) {
          status = absl::DataLossError(absl::StrCat("bincount: a value below zero: ", values[i]));
          return;
        }
        greatest = std::max(greatest, values[i]);
        if (!max_length_ && values[i] >= limit) {
          status = absl::DataLossError(
              absl::StrCat("bincount: a value from ", limit, " on: ", values[i]));
          return;
        }
      }
    });
    *length = std::max(*length, std::min(greatest, limit - 1) + 1);
    return status;
  }

  // Values that begin with number `first` of all.
  void AddAll(const int64_t* values, size_t count, int64_t length,
              absl::Span<const RowValue> arguments, size_t first, uint8_t* to) const {
    if (weights_ == DType::kInvalid) {
      return Add<int64_t>(values, count, length, to, [](size_t) { return int64_t{1}; });
    }
    VisitNumber(weights_, [&](auto type) {
      using T = decltype(type);
      const uint8_t* const from = arguments[1].data + first * sizeof(T);
      Add<double>(values, count, length, to, [from](size_t i) {
        T weight;
        std::memcpy(&weight, from + i * sizeof(T), sizeof(T));
        return static_cast<double>(weight);
      });
    });
  }

  template <typename Sum, typename Weight>
  static void Add(const int64_t* values, size_t count, int64_t length, uint8_t* to,
                  const Weight& weight) {
    for (size_t i = 0; i < count; ++i) {
      if (values[i] >= length) continue;
      uint8_t* const place = to + static_cast<size_t>(values[i]) * sizeof(Sum);
      Sum sum;
      std::memcpy(&sum, place, sizeof(sum));
      sum += weight(i);
      std::memcpy(place, &sum, sizeof(sum));
    }
  }

  const DType dtype_;
  const DType weights_;
  const int64_t min_length_;
  const std::optional<int64_t> max_length_;
  const bool by_rows_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  if (!IsInteger(x.dtype) || x.dtype == DType::kUint64) {
    return WrongArgument("x", absl::StrCat("integers, but for uint64, found ", TypeToString(x)));
  }
  int64_t min_length = 0, max_length = 0;
  absl::Status status =
      FirstError({ReadConstant(arguments[1], "minlength", 0, kMaxRowElements, &min_length),
                  ReadConstant(arguments[2], "maxlength", 1, kMaxRowElements, &max_length)});
  if (!status.ok()) return status;
  if (arguments[2].given && min_length > max_length) {
    return WrongArgument("maxlength",
                         absl::StrCat("minlength, ", min_length, ", at least, found ", max_length));
  }
  const Argument& weights = arguments[3];
  BoundRowFunction bound;
  bound.tensor_arguments = {0};
  DType weights_dtype = DType::kInvalid;
  if (weights.given) {
    weights_dtype = weights.type.dtype;
    if (!VisitNumber(weights_dtype, [](auto) {}) || weights.type.shape.size() != x.shape.size()) {
      return WrongArgument("weights", absl::StrCat("a number for each of ", TypeToString(x),
                                                   ", found ", TypeToString(weights.type)));
    }
    bound.tensor_arguments.push_back(3);
  }
  std::optional<int64_t> limit;
  if (arguments[2].given) limit = max_length;
  const bool by_rows = arguments[4].given;
  bound.type.dtype = weights.given ? DType::kFloat64 : DType::kInt64;
  if (by_rows) {
    const auto axis = ReadAxis(arguments[4], x);
    if (!axis.ok()) return axis.status();
    if (*axis + 1 != x.shape.size() || limit != min_length) {
      return WrongArgument(
          "axis", "-1, the last one, with as large a maxlength as minlength, or None, all of x");
    }
    bound.type.shape.assign(x.shape.begin(), x.shape.end() - 1);
  }
  bound.type.shape.push_back(limit == min_length ? min_length : kUnknownSize);
  bound.takes_all_axes = !by_rows;
  bound.kernel = std::make_shared<Bincount>(x.dtype, weights_dtype, min_length, limit, by_rows,
                                            HasUnknownSize(bound.type.shape));
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "bincount",
    .signature = "bincount(x, minlength=0, maxlength=None, weights=None, axis=None)",
    .doc = "How often each value occurs, from 0 up to the greatest, int64 of one axis "
           "(numpy.bincount, tf.math.bincount).\n"
           "\n"
           "x: integers; one below zero is an error of its record.\n"
           "minlength: how many counts there are at least, a constant.\n"
           "maxlength: values from it on are not counted, a constant. As large as minlength it "
           "makes the result's size known.\n"
           "weights: numbers of x's shape, which are added up in float64 in the place of ones.\n"
           "axis: -1, along the last axis, (..., maxlength), with as large a minlength; left out, "
           "all values of an element are counted, after `batch` all of the batch.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
