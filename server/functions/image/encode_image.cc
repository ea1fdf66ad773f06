// encode_jpeg and encode_png: images as the bytes of files.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/codec/jpeg_writer.h"
#include "server/codec/png_writer.h"
#include "server/expr/arguments.h"
#include "server/expr/scalar_type.h"

namespace penstock::expr {
namespace {

absl::Status WriteFile(const absl::StatusOr<std::string>& file, RowOutput& out) {
  // Sizes that only the data tells are an error of the record.
  if (!file.ok()) return absl::DataLossError(file.status().message());
  std::memcpy(out.Reserve(file->size()), file->data(), file->size());
  out.Commit();
  return absl::OkStatus();
}

class EncodeJpegKernel final : public RowKernel {
 public:
  explicit EncodeJpegKernel(const JpegWriteOptions& options) : options_(options) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& image = arguments[0];
    return WriteFile(
        EncodeJpeg(image.data, image.shape[0], image.shape[1], image.shape[2], options_), out);
  }

 private:
  const JpegWriteOptions options_;
};

class EncodePngKernel final : public RowKernel {
 public:
  EncodePngKernel(int sample_bytes, int compression)
      : sample_bytes_(sample_bytes), compression_(compression) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& image = arguments[0];
    return WriteFile(EncodePng(image.data, image.shape[0], image.shape[1], image.shape[2],
                               sample_bytes_, compression_),
                     out);
  }

 private:
  const int sample_bytes_;
  const int compression_;
};

BoundRowFunction BindFile(std::shared_ptr<const RowKernel> kernel) {
  BoundRowFunction bound;
  bound.type = ScalarType(DType::kString);
  bound.kernel = std::move(kernel);
  bound.tensor_arguments = {0};
  return bound;
}

absl::Status CheckKnown(const Argument& image, int64_t side_max, int64_t channels_max) {
  const Shape& shape = image.type.shape;
  const bool fits = shape[0] <= side_max && shape[1] <= side_max && shape[2] <= channels_max &&
                    shape[0] != 0 && shape[1] != 0 && shape[2] != 0;
  if (fits) return absl::OkStatus();
  return WrongArgument("image",
                       absl::StrCat("1 to ", side_max, " pixels a side and 1 to ", channels_max,
                                    " channels, found ", TypeToString(image.type)));
}

absl::StatusOr<BoundRowFunction> BindJpeg(absl::Span<const Argument> arguments) {
  int64_t quality = 95;
  JpegWriteOptions options;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0], {DType::kUint8}),
           ReadConstant(arguments[1], "quality", 0, 100, &quality),
           ReadConstant(arguments[2], "progressive", &options.progressive),
           ReadConstant(arguments[3], "optimize_size", &options.optimize_size),
           ReadConstant(arguments[4], "chroma_downsampling", &options.chroma_downsampling)});
      !status.ok()) {
    return status;
  }
  if (const absl::Status status = CheckKnown(arguments[0], kJpegWriteSideMax, 3); !status.ok()) {
    return status;
  }
  if (arguments[0].type.shape[2] == 2) return WrongArgument("image", "1 or 3 channels, found 2");
  options.quality = static_cast<int>(quality);
  return BindFile(std::make_shared<EncodeJpegKernel>(options));
}

absl::StatusOr<BoundRowFunction> BindPng(absl::Span<const Argument> arguments) {
  int64_t compression = -1;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kUint16}),
                      ReadConstant(arguments[1], "compression", -1, 9, &compression)});
      !status.ok()) {
    return status;
  }
  if (const absl::Status status = CheckKnown(arguments[0], kPngWriteSideMax, 4); !status.ok()) {
    return status;
  }
  return BindFile(std::make_shared<EncodePngKernel>(
      static_cast<int>(DTypeSize(arguments[0].type.dtype)), static_cast<int>(compression)));
}

const RowFunctionRegistration kJpeg({
    .name = "encode_jpeg",
    .signature = "encode_jpeg(image, quality=95, progressive=False, optimize_size=False, "
                 "chroma_downsampling=True)",
    .doc =
        "An image as the bytes of a JPEG file, a string, as tf.io.encode_jpeg makes it.\n"
        "\n"
        "image: uint8 of shape (height, width, channels), 1 or 3 channels.\n"
        "quality: 0 to 100, a constant.\n"
        "progressive: whether the file is progressive.\n"
        "optimize_size: whether a second pass makes the file smaller.\n"
        "chroma_downsampling: whether colours have half the resolution.\n"
        "\n"
        "The file decodes to the pixels of TensorFlow's. An image without pixels, or larger than "
        "JPEG can hold, is an error of its record.",
    .bind = BindJpeg,
});

const RowFunctionRegistration kPng({
    .name = "encode_png",
    .signature = "encode_png(image, compression=-1)",
    .doc = "An image as the bytes of a PNG file, a string, as tf.io.encode_png makes it.\n"
           "\n"
           "image: uint8 or uint16 of shape (height, width, channels): 1 (grey), 2 (grey and "
           "alpha), 3 (RGB) or 4 (RGB and alpha).\n"
           "compression: zlib's level, 0 to 9, or -1 for its default.\n"
           "\n"
           "Nothing is lost. An image without pixels is an error of its record.",
    .bind = BindPng,
});

}  // namespace
}  // namespace penstock::expr
