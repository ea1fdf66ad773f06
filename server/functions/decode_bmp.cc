#include <cstdint>
#include <memory>

#include "server/codec/bmp.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeBmp final : public RowKernel {
 public:
  explicit DecodeBmp(const BmpOptions& options) : options_(options) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    return DecodeContents<BmpDecoder>(arguments[0], options_, out);
  }

 private:
  const BmpOptions options_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
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
