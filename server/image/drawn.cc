#include "server/image/drawn.h"

#include <memory>
#include <utility>

#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class DrawnKernel final : public RowKernel {
 public:
  DrawnKernel(bool sets_shape, DrawSource source, DrawnFunction run)
      : sets_shape_(sets_shape), source_(std::move(source)), run_(std::move(run)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    Draws draws(source_, arguments[1]);
    if (sets_shape_) out.SetShape(arguments[0].shape);
    return run_(draws, arguments[0], scratch, out);
  }

 private:
  const bool sets_shape_;
  const DrawSource source_;
  const DrawnFunction run_;
};

}  // namespace

BoundRowFunction BindDrawn(const TensorType& image, const Argument& seed, DrawnFunction run) {
  BoundRowFunction bound;
  bound.type = image;
  bound.kernel = std::make_shared<DrawnKernel>(!NumElements(image.shape).has_value(),
                                               ReadDraws(seed), std::move(run));
  bound.tensor_arguments = {0};
  bound.draws = true;
  return bound;
}

BoundRowFunction BindDrawnPixels(const TensorType& image, const Argument& seed, int64_t channels,
                                 std::function<PixelMap(Draws& draws)> draw) {
  return BindDrawn(
      image, seed,
      [dtype = image.dtype, channels, draw = std::move(draw)](
          Draws& draws, const RowValue& row, Arena& scratch, RowOutput& out) -> absl::Status {
        if (const absl::Status status = CheckChannels(row, channels); !status.ok()) {
          return status;
        }
        RunPixels(draw(draws), dtype, row, scratch, out);
        return absl::OkStatus();
      });
}

BoundRowFunction BindDrawnTurn(const TensorType& image, const Argument& seed, const Turn& turn) {
  const DType dtype = image.dtype;
  return BindDrawn(image, seed,
                   [dtype, turn](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
                     const bool turned = draws.Below(2) == 1;
                     draws.Note("flipped", turned);
                     RunTurn(turned ? turn : Turn{}, dtype, image, out);
                     return absl::OkStatus();
                   });
}

}  // namespace penstock::expr
