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

#include "server/expr/arguments.h"

namespace penstock::expr {

// Draw: a T of a Draws&.
template <typename T, typename Draw>
class DrawnNumbers final : public RowKernel {
 public:
  DrawnNumbers(int64_t elements, DrawSource source, Draw draw)
      : elements_(elements), source_(std::move(source)), draw_(std::move(draw)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    Draws draws(source_, arguments[0]);
    for (int64_t start = 0; start < elements_; start += kTileElements) {
      const int64_t count = std::min(kTileElements, elements_ - start);
      uint8_t* const to = out.Reserve(static_cast<size_t>(count) * sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        const T value = draw_(draws);
        std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
        if (start + i == 0)
          draws.Note(elements_ == 1 ? "value" : "first", static_cast<double>(value));
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kTileElements = 1024;

  const int64_t elements_;
  const DrawSource source_;
  const Draw draw_;
};

// As many as the type's shape holds. REQUIRES: its sizes are known; T is its dtype.
template <typename T, typename Draw>
BoundRowFunction BindDrawnNumbers(const TensorType& type, const Argument& seed, Draw draw) {
  BoundRowFunction bound;
  bound.type = type;
  bound.kernel = std::make_shared<DrawnNumbers<T, Draw>>(*NumElements(type.shape), ReadDraws(seed),
                                                         std::move(draw));
  bound.draws = true;
  return bound;
}

// The same of the arguments `shape`, without which it is a scalar, and `dtype`, "float32" or "float64". Draw: a double of a Draws&.
template <typename Draw>
absl::StatusOr<BoundRowFunction> BindDrawnFloats(const Argument& shape, const Argument& dtype,
                                                 const Argument& seed, Draw draw) {
  Shape sizes;
  std::string name = "float32";
  const absl::Status status =
      FirstError({shape.given ? ReadShape(shape, "shape", &sizes) : absl::OkStatus(),
                  ReadConstant(dtype, "dtype", &name)});
  if (!status.ok()) return status;
  if (name == "float64") return BindDrawnNumbers<double>({DType::kFloat64, sizes}, seed, draw);
  if (name != "float32") return WrongArgument("dtype", "\"float32\" or \"float64\"");
  return BindDrawnNumbers<float>({DType::kFloat32, sizes}, seed,
                                 [draw](Draws& draws) { return static_cast<float>(draw(draws)); });
}

}  // namespace penstock::expr
