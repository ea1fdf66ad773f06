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
  int channels = 0;
  if (absl::Status status = ReadColorChannels(arguments[1], &channels); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = {DType::kUint8,
                {kUnknownSize, kUnknownSize, channels != 0 ? channels : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeBmp>(BmpOptions{.channels = channels});
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
