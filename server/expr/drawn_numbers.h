// Tensors of numbers that are drawn one by one, each by itself.
//
// Threads:  binding while a program is compiled; the kernels are safe from any thread.
// Cost:     that of the draws: the result is written in tiles, where it belongs.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/expr/arguments.h"
#include "server/expr/data_integers.h"

namespace penstock::expr {

// How many are drawn: constants, or as many sizes of the data as are known before.
struct DrawnShape {
  Shape shape;         // kUnknownSize where the data tells
  DataIntegers sizes;  // of the data, all of them, or none

  // Of the argument number `position`, without which it is a scalar.
  absl::Status Read(absl::Span<const Argument> arguments, int position) {
    const Argument& argument = arguments[position];
    if (!argument.given) return absl::OkStatus();
    const TensorType& type = argument.type;
    if (argument.literal != nullptr || !IsInteger(type.dtype))
      return ReadShape(argument, "shape", &shape);
    if (type.shape.size() != 1 || type.shape[0] == kUnknownSize) {
      return WrongArgument("shape", "a list of integers, of as many as are known before");
    }
    shape.assign(static_cast<size_t>(type.shape[0]), kUnknownSize);
    sizes.AddTensor(argument, position, "shape", type.shape, 0, kImageSideMax * kImageSideMax);
    return absl::OkStatus();
  }
};

// Draw: a T of a Draws&. One that has ReadRow() is a copy for each row, and gets the row's values
// of `others` by it.
template <typename T, typename Draw>
class DrawnNumbers final : public RowKernel {
 public:
  DrawnNumbers(DrawnShape shape, DrawSource source, Draw draw)
      : shape_(std::move(shape)), source_(std::move(source)), draw_(std::move(draw)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    Draws draws(source_, arguments.back());
    arguments.remove_suffix(1);
    Shape shape = shape_.shape;
    if (!shape_.sizes.all_constant()) {
      IntegersRead sizes;
      if (absl::Status status = shape_.sizes.Read(arguments, &sizes); !status.ok()) return status;
      shape.assign(sizes.begin(), sizes.end());
      out.SetShape(shape);
      arguments.remove_prefix(1);
    }
    const auto elements = CountElements(shape);
    if (!elements.ok()) return elements.status();
    if constexpr (requires(Draw draw) { draw.ReadRow(arguments); }) {
      Draw draw = draw_;
      if (absl::Status status = draw.ReadRow(arguments); !status.ok()) return status;
      Write(*elements, draw, draws, out);
    } else {
      Write(*elements, draw_, draws, out);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kTileElements = 1024;

  static void Write(int64_t elements, const Draw& draw, Draws& draws, RowOutput& out) {
    for (int64_t start = 0; start < elements; start += kTileElements) {
      const int64_t count = std::min(kTileElements, elements - start);
      uint8_t* const to = out.Reserve(static_cast<size_t>(count) * sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        const T value = draw(draws);
        std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
        if (start + i == 0)
          draws.Note(elements == 1 ? "value" : "first", static_cast<double>(value));
      }
      out.Commit();
    }
  }

  const DrawnShape shape_;
  const DrawSource source_;
  const Draw draw_;
};

// REQUIRES: T is of the dtype. `others`: the arguments whose values Draw::ReadRow() gets.
template <typename T, typename Draw>
BoundRowFunction BindDrawnNumbers(DType dtype, DrawnShape shape, const Argument& seed, Draw draw,
                                  const std::vector<int>& others = {}) {
  BoundRowFunction bound;
  bound.type = {dtype, shape.shape};
  bound.tensor_arguments = shape.sizes.positions();
  // Whoever wants as many as the data tells behind `batch` means one tensor.
  bound.takes_all_axes = !bound.tensor_arguments.empty();
  bound.tensor_arguments.insert(bound.tensor_arguments.end(), others.begin(), others.end());
  bound.kernel =
      std::make_shared<DrawnNumbers<T, Draw>>(std::move(shape), ReadDraws(seed), std::move(draw));
  bound.draws = true;
  return bound;
}

// The same of the arguments `shape` and `dtype`, "float32" or "float64", by their numbers; the seed
// is the last. Draw: a double of a Draws&.
template <typename Draw>
absl::StatusOr<BoundRowFunction> BindDrawnFloats(absl::Span<const Argument> arguments,
                                                 int shape_position, int dtype_position,
                                                 Draw draw) {
  DrawnShape shape;
  std::string name = "float32";
  const absl::Status status = FirstError({shape.Read(arguments, shape_position),
                                          ReadConstant(arguments[dtype_position], "dtype", &name)});
  if (!status.ok()) return status;
  const Argument& seed = arguments.back();
  if (name == "float64")
    return BindDrawnNumbers<double>(DType::kFloat64, std::move(shape), seed, draw);
  if (name != "float32") return WrongArgument("dtype", "\"float32\" or \"float64\"");
  return BindDrawnNumbers<float>(DType::kFloat32, std::move(shape), seed,
                                 [draw](Draws& draws) { return static_cast<float>(draw(draws)); });
}

}  // namespace penstock::expr
