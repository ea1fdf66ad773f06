#include "server/image/drawn.h"

#include <memory>
#include <utility>

#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class DrawnKernel final : public RowKernel {
 public:
  DrawnKernel(bool sets_shape, DrawSource source, DrawnFunction run, DrawnFilter filter)
      : sets_shape_(sets_shape),
        source_(std::move(source)),
        run_(std::move(run)),
        filter_(std::move(filter)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    Draws draws(source_, arguments[1]);
    if (sets_shape_) out.SetShape(arguments[0].shape);
    return run_(draws, arguments[0], scratch, out);
  }

  bool takes_tiles() const override { return filter_ != nullptr; }
  std::unique_ptr<TileFilter> NewTileFilter(const Shape& image, absl::Span<const RowValue> others,
                                            Arena& scratch, RowOutput& out) const override {
    Draws draws(source_, others[0]);
    return filter_(draws, image, scratch, out);
  }

 private:
  const bool sets_shape_;
  const DrawSource source_;
  const DrawnFunction run_;
  const DrawnFilter filter_;
};

}  // namespace

absl::Status ReadBounds(const Argument& lower_argument, const Argument& upper_argument,
                        double* lower, double* upper) {
  if (const absl::Status status = FirstError({ReadConstant(lower_argument, "lower", lower),
                                              ReadConstant(upper_argument, "upper", upper)});
      !status.ok()) {
    return status;
  }
  if (*lower < 0) return WrongArgument("lower", "a constant of at least 0");
  if (*upper <= *lower) return WrongArgument("upper", "a constant above lower");
  return absl::OkStatus();
}

BoundRowFunction BindDrawn(const TensorType& image, const Argument& seed, DrawnFunction run,
                           DrawnFilter filter) {
  BoundRowFunction bound;
  bound.type = image;
  bound.kernel = std::make_shared<DrawnKernel>(!NumElements(image.shape).has_value(),
                                               ReadDraws(seed), std::move(run), std::move(filter));
  bound.tensor_arguments = {0};
  bound.draws = true;
  return bound;
}

BoundRowFunction BindDrawnPixels(const TensorType& image, const Argument& seed, int64_t channels,
                                 std::function<PixelMap(Draws& draws)> draw) {
  const DType dtype = image.dtype;
  DrawnFilter filter;
  // What takes any number of channels looks at one value at a time, and a tile may end within a
  // pixel.
  if (channels == 0) {
    filter = [dtype, draw](Draws& draws, const Shape&, Arena& scratch, RowOutput& out) {
      return NewValueFilter(draw(draws), dtype, scratch, out);
    };
  }
  return BindDrawn(
      image, seed,
      [dtype, channels, draw = std::move(draw)](Draws& draws, const RowValue& row, Arena& scratch,
                                                RowOutput& out) -> absl::Status {
        if (const absl::Status status = CheckChannels(row, channels); !status.ok()) {
          return status;
        }
        RunPixels(draw(draws), dtype, row, scratch, out);
        return absl::OkStatus();
      },
      std::move(filter));
}

BoundRowFunction BindDrawnTurn(const TensorType& image, const Argument& seed, const Turn& turn) {
  const DType dtype = image.dtype;
  const auto draw = [turn](Draws& draws) {
    const bool turned = draws.Below(2) == 1;
    draws.Note("flipped", turned);
    return turned ? turn : Turn{};
  };
  DrawnFilter filter;
  if (KeepsRows(turn)) {
    filter = [dtype, draw](Draws& draws, const Shape& image, Arena& scratch, RowOutput& out) {
      return NewTurnFilter(draw(draws), dtype, image, scratch, out);
    };
  }
  return BindDrawn(
      image, seed,
      [dtype, draw](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
        RunTurn(draw(draws), dtype, image, out);
        return absl::OkStatus();
      },
      std::move(filter));
}

}  // namespace penstock::expr
