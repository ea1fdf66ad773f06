#include <memory>

#include "server/codec/gif.h"
#include "server/expr/arguments.h"
#include "server/image/image_contents.h"

namespace penstock::expr {
namespace {

class DecodeGif final : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    return DecodeFrames<GifDecoder>(arguments[0], GifOptions{}, out);
  }
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = CheckContents(arguments[0]); !status.ok()) return status;
  BoundRowFunction bound;
  bound.type = {DType::kUint8, {kUnknownSize, kUnknownSize, kUnknownSize, 3}};
  bound.kernel = std::make_shared<DecodeGif>();
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "decode_gif",
    .signature = "decode_gif(contents)",
    .doc =
        "Decodes a GIF image to uint8 of shape (frames, height, width, 3), as tf.io.decode_gif "
        "does.\n"
        "\n"
        "contents: a string scalar, the bytes of the file.\n"
        "\n"
        "Each frame is drawn over the one before it; height and width are those of the largest "
        "frame, and what none covers is black.\n"
        "Whatever follows the last whole frame is not looked at. A frame that ends early, and more "
        "than 67,108,864 pixels in all, are\n"
        "errors of the record (TensorFlow returns what is in memory for the rest of such a frame).",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
