#include "server/codec/png.h"

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "base/stop_flag.h"
#include "server/codec/damaged.h"
#include "server/codec/plain_png.h"

namespace penstock {
namespace {

// Of a byte that is inflated, as StopLook counts it.
constexpr uint64_t kByteWork = 4;

}  // namespace

// libpng reports errors by a function that must not return: it jumps back into the call that
// entered libpng. Between there and here only C frames may lie, and the functions that enter hold
// no object with a destructor.
struct PngDecoder::State {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const uint8_t* file = nullptr;
  size_t size = 0;
  const uint8_t* data = nullptr;  // of the file, what libpng has not read
  size_t left = 0;
  std::jmp_buf escape;
  char message[160] = "";
  PngShape shape;
  int num_passes = 1;
  bool widens = false;  // samples of 8 bits are made 16 afterwards
  bool plain = false;   // rows are the file's own bytes, once they are inflated

  static State& Of(png_structp png) { return *static_cast<State*>(png_get_error_ptr(png)); }

  [[noreturn]] static void Fail(png_structp png, png_const_charp message) {
    State& state = Of(png);
    std::snprintf(state.message, sizeof(state.message), "%s", message);
    std::longjmp(state.escape, 1);
  }

  static void Warn(png_structp, png_const_charp) {}

  static void Read(png_structp png, png_bytep out, png_size_t bytes) {
    State& state = Of(png);
    if (bytes > state.left) png_error(png, "it ends before its end");
    std::memcpy(out, state.data, bytes);
    state.data += bytes;
    state.left -= bytes;
  }

  ~State() {
    if (png != nullptr) png_destroy_read_struct(&png, info != nullptr ? &info : nullptr, nullptr);
  }

  bool RunHeader(const PngOptions& options) {
    if (setjmp(escape) != 0) return false;
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, Fail, Warn);
    if (png == nullptr) return Refuse("libpng cannot start");
    info = png_create_info_struct(png);
    if (info == nullptr) return Refuse("libpng cannot start");
    png_set_read_fn(png, nullptr, Read);
    // Text may unpack to megabytes a chunk, and is not asked for.
    static constexpr png_byte kPassedOver[] = "tEXt\0zTXt\0iTXt\0sPLT\0eXIf";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kPassedOver, 5);
    png_read_info(png, info);
    png_uint_32 width, height;
    int depth, colour;
    png_get_IHDR(png, info, &width, &height, &depth, &colour, nullptr, nullptr, nullptr);
    if (width > kPngSideMax || height > kPngSideMax || int64_t{width} * height > kPngPixelsMax) {
      std::snprintf(message, sizeof(message),
                    "image larger than the limit of %d pixels a side and %lld in all: %u x %u",
                    kPngSideMax, static_cast<long long>(kPngPixelsMax),
                    static_cast<unsigned>(height), static_cast<unsigned>(width));
      return false;
    }
    const bool has_palette = colour == PNG_COLOR_TYPE_PALETTE;
    const bool has_transparency = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
    const bool has_alpha = (colour & PNG_COLOR_MASK_ALPHA) != 0;
    const bool is_grey = (colour & PNG_COLOR_MASK_COLOR) == 0;
    int channels = options.channels;
    if (channels == 0 && has_palette) channels = has_transparency ? 4 : 3;
    if (channels == 0) channels = png_get_channels(png, info);
    if (channels % 2 == 0) {
      if (!has_alpha && has_transparency) png_set_tRNS_to_alpha(png);
      if (!has_alpha && !has_transparency) {
        png_set_add_alpha(png, (1U << depth) - 1, PNG_FILLER_AFTER);
      }
    } else if (has_alpha || has_transparency) {
      png_set_strip_alpha(png);
    }
    if (depth == 16 && !options.wide) png_set_strip_16(png);
    png_set_packing(png);
    num_passes = png_set_interlace_handling(png);
    if (options.wide) png_set_swap(png);
    if (has_palette) png_set_palette_to_rgb(png);
    if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    // The weights of ITU-R BT.601, silently.
    if (channels < 3 && !is_grey) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
    if (channels >= 3 && is_grey) png_set_gray_to_rgb(png);
    png_read_update_info(png, info);
    shape.height = static_cast<int>(height);
    shape.width = static_cast<int>(width);
    shape.channels = channels;
    shape.sample_bytes = options.wide ? 2 : 1;
    widens = options.wide && depth <= 8;
    plain = depth == 8 && !options.wide && num_passes == 1 && !has_palette && !has_transparency &&
            channels == int{is_grey ? 1 : 3} + int{has_alpha};
    const size_t row_bytes = size_t{1} * width * channels * (options.wide && !widens ? 2 : 1);
    if (png_get_rowbytes(png, info) != row_bytes) return Refuse("rows of another size");
    return true;
  }

  bool RunDecode(uint8_t* pixels) {
    if (setjmp(escape) != 0) return false;
    const size_t row_bytes = size_t{1} * shape.width * shape.channels * shape.sample_bytes;
    StopLook look;
    for (int pass = 0; pass < num_passes; ++pass) {
      for (int y = 0; y < shape.height; ++y) {
        look.Did(row_bytes * kByteWork);
        png_read_row(png, pixels + y * row_bytes, nullptr);
      }
    }
    png_read_end(png, info);
    if (widens) {
      for (int y = 0; y < shape.height; ++y) Widen(pixels + y * row_bytes, row_bytes / 2);
    }
    return true;
  }

  // Samples of 8 bits at the beginning of a row become 16 bits over all of it, 0xab 0xabab.
  static void Widen(uint8_t* row, size_t samples) {
    for (size_t i = samples; i-- > 0;) {
      const uint8_t sample = row[i];
      row[2 * i] = sample;
      row[2 * i + 1] = sample;
    }
  }

  bool Refuse(const char* text) {
    std::snprintf(message, sizeof(message), "%s", text);
    return false;
  }

  absl::Status Error() const { return DamagedData("PNG", message); }
};

PngDecoder::PngDecoder() : state_(std::make_unique<State>()) {}
PngDecoder::~PngDecoder() = default;

absl::StatusOr<PngShape> PngDecoder::Start(const uint8_t* data, size_t size,
                                           const PngOptions& options) {
  state_->file = state_->data = data;
  state_->size = state_->left = size;
  if (!state_->RunHeader(options)) return state_->Error();
  return state_->shape;
}

absl::Status PngDecoder::Decode(uint8_t* pixels) {
  const PngShape& shape = state_->shape;
  if (state_->plain) {
    const size_t row_bytes = size_t{1} * shape.width * shape.channels;
    if (DecodePlainPng(state_->file, state_->size, shape.height, row_bytes, shape.channels,
                       pixels)) {
      return absl::OkStatus();
    }
  }
  return state_->RunDecode(pixels) ? absl::OkStatus() : state_->Error();
}

}  // namespace penstock
