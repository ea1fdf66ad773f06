#include "server/codec/bmp.h"

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"

namespace penstock {
namespace {

constexpr size_t kMinBytes = 32;

}  // namespace

absl::StatusOr<BmpShape> BmpDecoder::Start(const uint8_t* file, size_t size,
                                           const BmpOptions& options) {
  if (size < 2 || file[0] != 'B' || file[1] != 'M')
    return absl::DataLossError(absl::StrCat("no BMP image by its first bytes: ", size, " bytes"));
  if (size < kMinBytes) {
    return absl::DataLossError(
        absl::StrCat("BMP image without its header: ", size, " < ", kMinBytes, " bytes"));
  }
  const int64_t begin = LoadLittle<int32_t>(file + 10);
  const int64_t width = LoadLittle<int32_t>(file + 18);
  const int64_t height = LoadLittle<int32_t>(file + 22);
  const int64_t bits = LoadLittle<uint16_t>(file + 28);
  channels_ = bits / 8;
  if (channels_ != 1 && channels_ != 3 && channels_ != 4) {
    return absl::DataLossError(
        absl::StrCat("BMP image of pixels of other than 1, 3 or 4 bytes: ", bits, " bits"));
  }
  if (begin < 0 || width <= 0 || height == 0) {
    return absl::DataLossError(absl::StrCat("BMP image with a header that makes no sense: ", width,
                                            " x ", height, ", pixels from byte ", begin));
  }
  shape_ = {height < 0 ? -height : height, width,
            options.channels != 0 ? options.channels : channels_};
  is_upward_ = height > 0;
  // Below 2^33; then the product is below 2^64.
  row_bytes_ = static_cast<size_t>((channels_ * width + 3) / 4 * 4);
  const size_t pixels_bytes = row_bytes_ * static_cast<size_t>(shape_.height);
  if (static_cast<size_t>(begin) > size || pixels_bytes != size - begin) {
    return absl::DataLossError(absl::StrCat("BMP image of another size than its header says: ",
                                            begin, " + ", pixels_bytes, " bytes, found ", size));
  }
  rows_ = file + begin;
  return shape_;
}

absl::Status BmpDecoder::Decode(uint8_t* pixels) const {
  for (int64_t y = 0; y < shape_.height; ++y) {
    const uint8_t* from = rows_ + row_bytes_ * (is_upward_ ? shape_.height - 1 - y : y);
    for (int64_t x = 0; x < shape_.width; ++x, from += channels_, pixels += shape_.channels) {
      // Stored as blue, green, red, alpha.
      const uint8_t red = channels_ == 1 ? from[0] : from[2];
      pixels[0] = red;
      if (shape_.channels == 1) continue;
      pixels[1] = channels_ == 1 ? red : from[1];
      pixels[2] = from[0];
      if (shape_.channels == 4) pixels[3] = channels_ == 4 ? from[3] : 0xff;
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
