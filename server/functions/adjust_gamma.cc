#include <algorithm>
#include <array>
#include <memory>

#include "server/expr/arguments.h"
#include "server/image/pixels.h"
#include "server/kernels/power.h"

namespace penstock::expr {
namespace {

// A uint8 image has 256 results, and a power takes some 100 ns.
class Lookup final : public RowKernel {
 public:
  Lookup(bool sets_shape, const std::array<uint8_t, 256>& table)
      : sets_shape_(sets_shape), table_(table) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    if (sets_shape_) out.SetShape(arguments[0].shape);
    constexpr size_t kTileBytes = 4096;
    for (size_t start = 0; start < arguments[0].bytes; start += kTileBytes) {
      const size_t count = std::min(kTileBytes, arguments[0].bytes - start);
      uint8_t* const to = out.Reserve(count);
      for (size_t i = 0; i < count; ++i) to[i] = table_[arguments[0].data[start + i]];
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const bool sets_shape_;
  const std::array<uint8_t, 256> table_;
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
  const auto apply = [gamma = static_cast<float>(gamma), gain = static_cast<float>(gain)](
                         const float* in, int64_t num_pixels, int64_t channels, float* out) {
    for (int64_t i = 0; i < num_pixels * channels; ++i) {
      out[i] = gain * kernels::ScalarPower::Apply(in[i], gamma);
    }
  };
  BoundRowFunction bound = BindPixels(arguments[0].type, {.apply = apply});
  if (arguments[0].type.dtype == DType::kUint8) {
    std::array<uint8_t, 256> table;
    std::array<float, 256> values;
    for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
    PixelsToFloat(DType::kUint8, table.data(), table.size(), values.data());
    apply(values.data(), 256, 1, values.data());
    FloatToPixels(DType::kUint8, values.data(), values.size(), table.data());
    bound.kernel = std::make_shared<Lookup>(!NumElements(bound.type.shape).has_value(), table);
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
        "of others it takes some 100 ns a value.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
