#include "server/codec/jpeg_writer.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

// Last, since it needs <cstdio>'s names and is C.
#include <jpeglib.h>

namespace penstock {
namespace {

// Of a byte that is compressed, as StopLook counts it.
constexpr uint64_t kByteWork = 4;

// libjpeg's errors jump back into Run(), which holds no object with a destructor.
struct Writer {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
  unsigned char* file = nullptr;
  unsigned long bytes = 0;  // NOLINT: libjpeg's type
  bool is_whole = false;

  [[noreturn]] static void Fail(j_common_ptr info) {
    auto& writer = *static_cast<Writer*>(info->client_data);
    info->err->format_message(info, writer.message);
    std::longjmp(writer.escape, 1);
  }
  static void OutputMessage(j_common_ptr) {}

  ~Writer() {
    // libjpeg tells where its memory is at the end alone. It has grown since then, if this ends
    // before, by an error or a stop.
    if (!is_whole && info.dest != nullptr) info.dest->term_destination(&info);
    jpeg_destroy_compress(&info);
    std::free(file);
  }

  bool Run(const uint8_t* pixels, int height, int width, int channels,
           const JpegWriteOptions& options) {
    std::memset(&info, 0, sizeof(info));
    info.err = jpeg_std_error(&errors);
    errors.error_exit = Fail;
    errors.output_message = OutputMessage;
    info.client_data = this;
    if (setjmp(escape) != 0) return false;
    jpeg_create_compress(&info);
    info.client_data = this;
    jpeg_mem_dest(&info, &file, &bytes);
    info.image_width = static_cast<JDIMENSION>(width);
    info.image_height = static_cast<JDIMENSION>(height);
    info.input_components = channels;
    info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    info.optimize_coding = options.optimize_size ? TRUE : FALSE;
    info.density_unit = 1;  // as TensorFlow writes: 300 an inch
    info.X_density = 300;
    info.Y_density = 300;
    jpeg_set_quality(&info, options.quality, TRUE);
    if (options.progressive) jpeg_simple_progression(&info);
    if (!options.chroma_downsampling) {
      for (int i = 0; i < info.num_components; ++i) {
        info.comp_info[i].h_samp_factor = 1;
        info.comp_info[i].v_samp_factor = 1;
      }
    }
    jpeg_start_compress(&info, TRUE);
    const size_t row_bytes = size_t{1} * width * channels;
    StopLook look;
    while (info.next_scanline < info.image_height) {
      look.Did(row_bytes * kByteWork);
      // libjpeg reads it only.
      JSAMPROW row = const_cast<JSAMPROW>(pixels + info.next_scanline * row_bytes);
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    is_whole = true;
    return true;
  }
};

}  // namespace

absl::StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, int64_t height, int64_t width,
                                       int64_t channels, const JpegWriteOptions& options) {
  if (height < 1 || width < 1 || height > kJpegWriteSideMax || width > kJpegWriteSideMax ||
      (channels != 1 && channels != 3)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image that JPEG has no form for (sides of 1 to ", kJpegWriteSideMax,
                     ", 1 or 3 channels): ", height, " x ", width, " of ", channels, " channels"));
  }
  Writer writer;
  if (!writer.Run(pixels, static_cast<int>(height), static_cast<int>(width),
                  static_cast<int>(channels), options)) {
    return absl::InternalError(absl::StrCat("JPEG cannot be encoded: ", writer.message));
  }
  return std::string(reinterpret_cast<const char*>(writer.file), writer.bytes);
}

}  // namespace penstock
