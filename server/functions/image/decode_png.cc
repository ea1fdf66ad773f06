#include <cstdint>
#include <memory>
#include <string>

#include "server/codec/png.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodePng final : public RowKernel {
 public:
  explicit DecodePng(const PngOptions& options) : options_(options) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    return DecodeContents<PngDecoder>(arguments[0], options_, out);
  }

 private:
  const PngOptions options_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
  int64_t channels = 0;
  std::string dtype = "uint8";
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[1], "channels", 0, 4, &channels),
                      ReadConstant(arguments[2], "dtype", &dtype)});
      !status.ok()) {
    return status;
  }
  if (channels == 2) return WrongArgument("channels", "0, 1, 3 or 4 as a constant");
  if (dtype != "uint8" && dtype != "uint16") {
    return WrongArgument("dtype", "\"uint8\" or \"uint16\"");
  }
  const bool wide = dtype == "uint16";
  BoundRowFunction bound;
  bound.type = {wide ? DType::kUint16 : DType::kUint8,
                {kUnknownSize, kUnknownSize, channels != 0 ? channels : kUnknownSize}};
  bound.kernel =
      std::make_shared<DecodePng>(PngOptions{.channels = static_cast<int>(channels), .wide = wide});
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_png",
    .signature = "decode_png(contents, channels=0, dtype=\"uint8\")",
    .doc =
        "Decodes a PNG image to shape (height, width, channels), as tf.io.decode_png does.\n"
        "\n"
        "contents: a string scalar, the bytes of a PNG file of any colour type and depth, "
        "interlaced or not.\n"
        "channels: 1 (grey), 3 (RGB), 4 (RGB and alpha), or 0: as many as the image has, of a "
        "palette 3, or 4 with transparency.\n"
        "dtype: \"uint8\" or \"uint16\". Samples of 16 bits lose their lower half as uint8, those "
        "of 8 bits are repeated as uint16.\n"
        "\n"
        "TensorFlow's bytes: libpng's. Data that is cut, damaged or no PNG, or has more than "
        "16384 pixels a side or 64 Mi in all, is an\n"
        "error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
