#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/codec/jpeg.h"
#include "server/codec/png.h"
#include "server/codec/webp.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

template <typename Decoder, typename Options>
absl::Status ReadShape(const RowValue& contents, const Options& options, int32_t* sizes) {
  Decoder decoder;
  const auto shape = decoder.Start(contents.data, contents.bytes, options);
  if (!shape.ok()) return shape.status();
  sizes[0] = static_cast<int32_t>(shape->height);
  sizes[1] = static_cast<int32_t>(shape->width);
  sizes[2] = static_cast<int32_t>(shape->channels);
  return absl::OkStatus();
}

class ImageShape final : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& contents = arguments[0];
    int32_t sizes[3] = {};
    absl::Status status;
    if (contents.bytes >= 2 && contents.data[0] == 0xff && contents.data[1] == 0xd8) {
      status = ReadShape<JpegDecoder>(contents, JpegOptions{}, sizes);
    } else if (contents.bytes >= 3 && contents.data[0] == 0x89 && contents.data[1] == 'P' &&
               contents.data[2] == 'N') {
      status = ReadShape<PngDecoder>(contents, PngOptions{}, sizes);
    } else if (IsWebp(contents.data, contents.bytes)) {
      status = ReadShape<WebpDecoder>(contents, WebpOptions{.first_frame_only = true}, sizes);
    } else {
      status = absl::DataLossError(absl::StrCat(
          "no JPEG, PNG or WebP image by its first bytes: ", contents.bytes, " bytes"));
    }
    if (!status.ok()) return status;
    std::memcpy(out.Reserve(sizeof(sizes)), sizes, sizeof(sizes));
    out.Commit();
    return absl::OkStatus();
  }
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& contents = arguments[0].type;
  if (contents.dtype != DType::kString || !contents.shape.empty() || arguments[0].literal) {
    return WrongArgument("contents",
                         absl::StrCat("a string scalar, found ", TypeToString(contents)));
  }
  BoundRowFunction bound;
  bound.type = {DType::kInt32, {3}};
  bound.kernel = std::make_shared<ImageShape>();
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "image_shape",
    .signature = "image_shape(contents)",
    .doc =
        "The shape that decode_image gives a JPEG, PNG or WebP file, from its header alone: int32 "
        "[height, width, channels], as\n"
        "tf.io.extract_jpeg_shape does.\n"
        "\n"
        "contents: a string scalar, the bytes of the file. What has no sound header, or is "
        "larger than the decoders' limits, is an error of\n"
        "its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
