#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/codec/bmp.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class DecodeBmp final : public RowKernel {
 public:
  explicit DecodeBmp(const BmpOptions& options) : options_(options) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    BmpDecoder decoder;
    const auto shape = decoder.Start(arguments[0].data, arguments[0].bytes, options_);
    if (!shape.ok()) return shape.status();
    out.SetShape({shape->height, shape->width, shape->channels});
    uint8_t* const pixels = out.Reserve(shape->bytes());
    if (const absl::Status status = decoder.Decode(pixels); !status.ok()) return status;
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const BmpOptions options_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& contents = arguments[0].type;
  if (contents.dtype != DType::kString || !contents.shape.empty() || arguments[0].literal) {
    return WrongArgument("contents",
                         absl::StrCat("a string scalar, found ", TypeToString(contents)));
  }
  int64_t channels = 0;
  if (const absl::Status status = ReadConstant(arguments[1], "channels", 0, 4, &channels);
      !status.ok()) {
    return status;
  }
  if (channels == 1 || channels == 2) return WrongArgument("channels", "0, 3 or 4 as a constant");
  BoundRowFunction bound;
  bound.type = {DType::kUint8,
                {kUnknownSize, kUnknownSize, channels != 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeBmp>(BmpOptions{.channels = static_cast<int>(channels)});
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_bmp",
    .signature = "decode_bmp(contents, channels=0)",
    .doc = "Decodes a BMP image to uint8 of shape (height, width, channels), as tf.io.decode_bmp "
           "does.\n"
           "\n"
           "contents: a string scalar, the bytes of the file.\n"
           "channels: 3, 4, or 0: as many as a pixel of the file has bytes.\n"
           "\n"
           "Pixels of 8 bits are grey values: a palette is not looked at, as in TensorFlow. A file "
           "of another length than its header says, of\n"
           "pixels of 1, 4 or 16 bits, or without the first letters BM is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
