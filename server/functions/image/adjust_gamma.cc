#include <memory>

#include "server/expr/arguments.h"
#include "server/image/adjust.h"

namespace penstock::expr {
namespace {

// A uint8 image has 256 results, and a power takes some 5 ns.
class Lookup final : public RowKernel {
 public:
  Lookup(bool sets_shape, const ByteTable& table) : sets_shape_(sets_shape), table_(table) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    if (sets_shape_) out.SetShape(arguments[0].shape);
    RunTable(table_, arguments[0], out);
    return absl::OkStatus();
  }

 private:
  const bool sets_shape_;
  const ByteTable table_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double gamma = 1, gain = 1;
  if (const absl::Status status =
          FirstError({CheckPixels(arguments[0]), ReadConstant(arguments[1], "gamma", &gamma),
                      ReadConstant(arguments[2], "gain", &gain)});
      !status.ok()) {
    return status;
  }
  if (gamma < 0) return WrongArgument("gamma", "a constant of at least 0");
  const PixelMap map = GammaMap(static_cast<float>(gamma), static_cast<float>(gain));
  BoundRowFunction bound = BindPixels(arguments[0].type, map);
  if (arguments[0].type.dtype == DType::kUint8) {
    bound.kernel =
        std::make_shared<Lookup>(!NumElements(bound.type.shape).has_value(), TableOf(map));
  }
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "adjust_gamma",
    .signature = "adjust_gamma(image, gamma=1, gain=1)",
    .doc =
        "gain * image ** gamma, as tf.image.adjust_gamma computes it.\n"
        "\n"
        "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels); the "
        "result has its dtype.\n"
        "gamma: a constant of at least 0.\n"
        "gain: a constant.\n"
        "\n"
        "Integers count as values of 0 to 1 (the greatest), and are clipped. Floats are within "
        "2.5e-7 of TensorFlow's (relative to\n"
        "those above 1); integers could differ by 1 where that crosses a step, and do not in the "
        "goldens. Of uint8 the power is a table,\n"
        "of others it takes some 5 ns a value.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
