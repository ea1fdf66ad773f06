#include "server/codec/png_writer.h"

#include <png.h>

#include <csetjmp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// Of a byte that is compressed, as StopLook counts it.
constexpr uint64_t kByteWork = 16;

// libpng's errors jump back into Run(), which holds no object with a destructor.
struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf escape;
  char message[160] = "";
  std::string file;

  [[noreturn]] static void Fail(png_structp png, png_const_charp message) {
    auto& writer = *static_cast<Writer*>(png_get_error_ptr(png));
    std::snprintf(writer.message, sizeof(writer.message), "%s", message);
    std::longjmp(writer.escape, 1);
  }
  static void Warn(png_structp, png_const_charp) {}
  static void Append(png_structp png, png_bytep data, png_size_t bytes) {
    static_cast<Writer*>(png_get_io_ptr(png))
        ->file.append(reinterpret_cast<const char*>(data), bytes);
  }
  static void Flush(png_structp) {}

  ~Writer() {
    if (png != nullptr) png_destroy_write_struct(&png, info != nullptr ? &info : nullptr);
  }

  bool Run(const uint8_t* samples, png_uint_32 height, png_uint_32 width, int channels,
           int sample_bytes, int compression) {
    static constexpr int kColours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                       PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(escape) != 0) return false;
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, Fail, Warn);
    if (png == nullptr) return false;
    info = png_create_info_struct(png);
    if (info == nullptr) return false;
    png_set_write_fn(png, this, Append, Flush);
    png_set_compression_level(png, compression);
    png_set_IHDR(png, info, width, height, 8 * sample_bytes, kColours[channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (sample_bytes == 2) png_set_swap(png);
    const size_t row_bytes = size_t{width} * static_cast<size_t>(channels * sample_bytes);
    StopLook look;
    for (png_uint_32 y = 0; y < height; ++y) {
      look.Did(row_bytes * kByteWork);
      png_write_row(png, samples + y * row_bytes);
    }
    png_write_end(png, nullptr);
    return true;
  }
};

}  // namespace

absl::StatusOr<std::string> EncodePng(const uint8_t* samples, int64_t height, int64_t width,
                                      int64_t channels, int sample_bytes, int compression) {
  if (height < 1 || width < 1 || height > kPngWriteSideMax || width > kPngWriteSideMax ||
      channels < 1 || channels > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image that PNG has no form for (sides of 1 to ", kPngWriteSideMax,
                     ", 1 to 4 channels): ", height, " x ", width, " of ", channels, " channels"));
  }
  Writer writer;
  if (!writer.Run(samples, static_cast<png_uint_32>(height), static_cast<png_uint_32>(width),
                  static_cast<int>(channels), sample_bytes, compression)) {
    return absl::InternalError(absl::StrCat("PNG cannot be encoded: ", writer.message));
  }
  return std::move(writer.file);
}

}  // namespace penstock
