#include "server/codec/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/large_charge.h"
#include "base/stop_flag.h"
#include "server/codec/exif.h"

// Last, since it needs <cstdio>'s names and is C.
#include <jpeglib.h>

namespace penstock {

// libjpeg reports errors by a function that must not return: it jumps back into the call that
// entered libjpeg. Between there and here only C frames may lie, and the functions that enter
// (RunHeader, RunRows, RunDecodeWindow) hold no object with a destructor.
struct JpegDecoder::State {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
  JpegShape shape;         // as decoded
  bool recovers = false;   // an end marker stands in for what is missing
  bool has_begun = false;  // of its rows some were read
  int orientation = 1;
  // One row of inks, or kRowsAtOnce rows for IsAligned().
  std::vector<uint8_t> spare_rows;

  static State& Of(j_common_ptr info) { return *static_cast<State*>(info->client_data); }

  [[noreturn]] static void Fail(j_common_ptr info) {
    State& state = Of(info);
    info->err->format_message(info, state.message);
    std::longjmp(state.escape, 1);
  }

  [[noreturn]] static void FailWith(j_common_ptr info, const char* message) {
    State& state = Of(info);
    std::snprintf(state.message, sizeof(state.message), "%s", message);
    std::longjmp(state.escape, 1);
  }

  // Warnings and traces. As in TensorFlow, damage that libjpeg can go on behind is no error.
  static void EmitMessage(j_common_ptr, int) {}
  static void OutputMessage(j_common_ptr) {}

  // In front of each row of blocks of each scan, of which a bomb has many.
  static void OnProgress(j_common_ptr info) {
    if (IsStopped()) FailWith(info, "not wanted any more");
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kJpegScansMax) {
      FailWith(info, "more scans than the limit of 256");
    }
  }

  static void InitSource(j_decompress_ptr) {}
  static void TermSource(j_decompress_ptr) {}

  // All data was there from the beginning: this is its end. Inside something that has begun,
  // libjpeg is asked to wait, and each caller below says what that means; TensorFlow does so too,
  // whose verdict on an image without the second byte of its end marker is thereby met.
  static boolean FillInput(j_decompress_ptr info) {
    State& state = Of(reinterpret_cast<j_common_ptr>(info));
    if (state.recovers) {
      // As often as it is asked for: a header that is cut may take the first for its own bytes.
      static constexpr JOCTET kEnd[] = {0xff, JPEG_EOI};
      info->src->next_input_byte = kEnd;
      info->src->bytes_in_buffer = sizeof(kEnd);
      return TRUE;
    }
    if (info->src->bytes_in_buffer != 0) return FALSE;
    FailWith(reinterpret_cast<j_common_ptr>(info), kCut);
  }

  static void SkipInput(j_decompress_ptr info, long bytes) {
    if (bytes <= 0) return;
    jpeg_source_mgr* const source = info->src;
    if (static_cast<size_t>(bytes) > source->bytes_in_buffer) {
      if (Of(reinterpret_cast<j_common_ptr>(info)).recovers) {
        source->bytes_in_buffer = 0;
        return;
      }
      FailWith(reinterpret_cast<j_common_ptr>(info), kCut);
    }
    source->next_input_byte += bytes;
    source->bytes_in_buffer -= bytes;
  }

  static constexpr int kRowsAtOnce = 4;
  static constexpr size_t kVectorBytes = 32;
  static constexpr char kCut[] = "it ends before its end marker";

  State() {
    std::memset(&info, 0, sizeof(info));
    info.err = jpeg_std_error(&errors);
    errors.error_exit = Fail;
    errors.emit_message = EmitMessage;
    errors.output_message = OutputMessage;
    info.client_data = this;
    if (setjmp(escape) != 0) {
      std::fprintf(stderr, "libjpeg cannot start: %s\n", message);
      std::abort();
    }
    jpeg_create_decompress(&info);
    info.client_data = this;
    source = {};
    source.init_source = InitSource;
    source.fill_input_buffer = FillInput;
    source.skip_input_data = SkipInput;
    source.resync_to_restart = jpeg_resync_to_restart;
    source.term_source = TermSource;
    info.src = &source;
    progress = {};
    progress.progress_monitor = OnProgress;
    info.progress = &progress;
  }

  ~State() { jpeg_destroy_decompress(&info); }

  // Back to the state before Start(), with all of the image's memory given back. Does not fail.
  void Forget() {
    jpeg_abort_decompress(&info);
    charge.reset();
  }

  // What libjpeg will keep of all of the image until its last row, where scans add to each other.
  // Throws MemoryLimitError.
  void ChargeScans() {
    charge.emplace();
    if (!jpeg_has_multiple_scans(&info)) return;
    uint64_t blocks = 0;
    for (int i = 0; i < info.num_components; ++i) {
      const jpeg_component_info& component = info.comp_info[i];
      blocks += uint64_t{component.width_in_blocks} * component.height_in_blocks;
    }
    charge->Add(blocks * DCTSIZE2 * sizeof(JCOEF));
  }

  bool Cut() {
    std::snprintf(message, sizeof(message), "%s", kCut);
    return false;
  }

  bool RunHeader(const uint8_t* data, size_t size, const JpegOptions& options) {
    if (setjmp(escape) != 0) return false;
    // The library goes on to the next marker.
    if (!BeginsAsJpeg(data, size)) return false;
    recovers = false;  // a header is there or not
    has_begun = false;
    orientation = options.upright ? JpegOrientation(data, size) : 1;
    source.next_input_byte = data;
    source.bytes_in_buffer = size;
    if (jpeg_read_header(&info, TRUE) == JPEG_SUSPENDED) return Cut();
    const int64_t width = info.image_width, height = info.image_height;
    if (width > kJpegSideMax || height > kJpegSideMax || width * height > kJpegPixelsMax) {
      std::snprintf(message, sizeof(message),
                    "image larger than the limit of %d pixels a side and %lld in all: %lld x %lld",
                    kJpegSideMax, static_cast<long long>(kJpegPixelsMax),
                    static_cast<long long>(width), static_cast<long long>(height));
      return false;
    }
    const int channels = options.channels != 0
                             ? options.channels
                             : (info.num_components < 3 ? info.num_components : 3);
    if (channels != 1 && channels != 3) {
      std::snprintf(message, sizeof(message), "%d colour components, expected 1, 3 or 4",
                    info.num_components);
      return false;
    }
    const bool has_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    if (channels == 1 && has_inks) {
      std::snprintf(message, sizeof(message), "CMYK cannot be decoded to one channel");
      return false;
    }
    info.out_color_space = channels == 1 ? JCS_GRAYSCALE : has_inks ? JCS_CMYK : JCS_RGB;
    info.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
    info.scale_num = 1;
    info.scale_denom = options.ratio;
    info.dct_method = options.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&info);
    shape.height = info.output_height;
    shape.width = info.output_width;
    shape.channels = channels;
    // Behind half a marker TensorFlow recovers nothing either.
    recovers = options.recover_truncated && data[size - 1] != 0xff;
    return true;
  }

  bool has_inks() const { return info.out_color_space == JCS_CMYK; }

  // The next `count` rows, the last of which ends the decoding.
  bool RunRows(int count, uint8_t* pixels) {
    if (setjmp(escape) != 0) return false;
    if (!has_begun && !jpeg_start_decompress(&info)) return Cut();
    has_begun = true;
    const size_t row_bytes = size_t{1} * shape.width * shape.channels;
    JSAMPROW rows[kRowsAtOnce];
    const JDIMENSION end = info.output_scanline + count;
    for (uint8_t* next = pixels; info.output_scanline < end;) {
      if (has_inks()) {
        rows[0] = spare_rows.data();
        if (jpeg_read_scanlines(&info, rows, 1) == 0) return Cut();
        InksToRgb(next);
        next += row_bytes;
        continue;
      }
      const int left = end - info.output_scanline;
      const int most = left < kRowsAtOnce ? left : kRowsAtOnce;
      for (int i = 0; i < most; ++i) {
        uint8_t* const row = next + i * row_bytes;
        rows[i] = IsAligned(row) ? SpareRow(i) : row;
      }
      const int read = jpeg_read_scanlines(&info, rows, most);
      if (read == 0) return Cut();
      for (int i = 0; i < read; ++i, next += row_bytes) {
        if (rows[i] != next) std::memcpy(next, rows[i], row_bytes);
      }
    }
    // Looks for the end marker. False would mean that it has begun, which is enough.
    if (info.output_scanline == info.output_height) {
      jpeg_finish_decompress(&info);
      charge.reset();
    }
    return true;
  }

  // Whether libjpeg's partial decoding gives the pixels of the whole, and its verdict on all in
  // front of the part's end: for a file that is not cut. Where a progressive one lacks scans,
  // libjpeg smooths over blocks, and does so otherwise at the part's edges.
  bool CanDecodePart() const {
    if (has_inks() || info.scale_denom != 1 || orientation != 1 || info.progressive_mode)
      return false;
    // Behind the first scan's header: a preview in front of it has an end marker of its own.
    const uint8_t* const begin = source.next_input_byte;
    for (const uint8_t* end = begin + source.bytes_in_buffer; end - begin >= 2; --end) {
      if (end[-1] == 0xd9 && end[-2] == 0xff) return true;
    }
    return false;
  }

  // REQUIRES: CanDecodePart(); spare_rows has room for a row of the image.
  bool RunDecodeWindow(const JpegWindow& window, uint8_t* pixels) {
    if (setjmp(escape) != 0) return false;
    if (!jpeg_start_decompress(&info)) return Cut();
    // Smooth chroma looks at neighbours: beside the window one more block stands on each side, of
    // which nothing is kept.
    const int block = info.max_h_samp_factor * DCTSIZE;
    const int first = window.left < block ? 0 : window.left - block;
    const int last = shape.width - window.left - window.width < block
                         ? shape.width
                         : window.left + window.width + block;
    JDIMENSION left = first, width = last - first;
    jpeg_crop_scanline(&info, &left, &width);
    // Between rows libjpeg keeps what smooth chroma needs.
    if (window.top > 0) jpeg_skip_scanlines(&info, window.top);
    const size_t row_bytes = size_t{1} * window.width * shape.channels;
    const size_t skipped_bytes = size_t{1} * (window.left - left) * shape.channels;
    JSAMPROW row = SpareRow(0);
    const auto end = static_cast<JDIMENSION>(window.top + window.height);
    while (info.output_scanline < end) {
      const size_t at = info.output_scanline - window.top;
      if (jpeg_read_scanlines(&info, &row, 1) == 0) return Cut();
      std::memcpy(pixels + at * row_bytes, row + skipped_bytes, row_bytes);
    }
    return true;
  }

  // libjpeg-turbo writes rows that begin at a multiple of its vectors past the caches. They are
  // read soon: 15 % of the whole work of decode and resize are lost by that. Such rows take a way
  // round through one that does not begin so.
  static bool IsAligned(const uint8_t* row) {
    return reinterpret_cast<uintptr_t>(row) % kVectorBytes == 0;
  }

  uint8_t* SpareRow(int i) {
    uint8_t* const start = spare_rows.data();
    const size_t past = reinterpret_cast<uintptr_t>(start) % kVectorBytes;
    return start + (kVectorBytes - past) + 4 + i * SpareRowBytes();
  }

  size_t SpareRowBytes() const {
    const size_t row_bytes = size_t{1} * shape.width * shape.channels;
    return (row_bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }

  void MakeSpareRows() {
    spare_rows.resize(info.out_color_space == JCS_CMYK
                          ? size_t{4} * shape.width
                          : kRowsAtOnce * SpareRowBytes() + kVectorBytes + 4);
  }

  void InksToRgb(uint8_t* out) const {
    const uint8_t* in = spare_rows.data();
    for (int x = 0; x < shape.width; ++x, in += 4, out += 3) {
      const int k = in[3];
      for (int i = 0; i < 3; ++i) {
        out[i] = info.saw_Adobe_marker ? in[i] * k / 255 : (255 - in[i]) * (255 - k) / 255;
      }
    }
  }

  JpegShape UprightShape() const {
    if (!OrientationSwapsSides(orientation)) return shape;
    return {shape.width, shape.height, shape.channels};
  }

  static bool BeginsAsJpeg(const uint8_t* data, size_t size) {
    return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
  }

  // In words, by where it was found.
  absl::Status Error(const uint8_t* data, size_t size) const {
    if (!BeginsAsJpeg(data, size)) {
      return absl::DataLossError(
          absl::StrCat("not a JPEG: expected the bytes ff d8 ff first (", size, " bytes)"));
    }
    if (std::strcmp(message, kCut) == 0) {
      return absl::DataLossError(
          absl::StrCat("JPEG data is cut: ", message, " (", size, " bytes)"));
    }
    return absl::DataLossError(absl::StrCat("JPEG cannot be decoded: ", message));
  }

  // What has gone wrong with the image, which is given up. Throws Stopped where that is why.
  absl::Status Failed() {
    const absl::Status error = Error(data, size);
    Forget();
    CheckStop();
    return error;
  }

  const uint8_t* data = nullptr;
  size_t size = 0;
  std::optional<LargeCharge> charge;  // of what libjpeg keeps
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}

JpegDecoder::~JpegDecoder() = default;

absl::StatusOr<JpegShape> JpegDecoder::Start(const uint8_t* data, size_t size,
                                             const JpegOptions& options) {
  State& state = *state_;
  state.Forget();
  state.data = data;
  state.size = size;
  state.message[0] = '\0';
  if (!state.RunHeader(data, size, options)) return state.Failed();
  state.ChargeScans();
  state.MakeSpareRows();
  return state.UprightShape();
}

absl::Status JpegDecoder::DecodeWindow(const JpegWindow& window, uint8_t* pixels) {
  State& state = *state_;
  const JpegShape shape = state.UprightShape();
  if (window.height == 0 || window.width == 0) return absl::OkStatus();
  const bool whole = window.height == shape.height && window.width == shape.width;
  if (whole) return Decode(pixels);
  if (state.CanDecodePart()) {
    if (!state.RunDecodeWindow(window, pixels)) return state.Failed();
    state.Forget();
    return absl::OkStatus();
  }
  LargeCharge charge;
  charge.Add(shape.bytes());
  std::vector<uint8_t> image(shape.bytes());
  if (const absl::Status status = Decode(image.data()); !status.ok()) return status;
  const size_t row_bytes = size_t{1} * window.width * shape.channels;
  for (int y = 0; y < window.height; ++y) {
    const size_t from = (size_t{1} * (window.top + y) * shape.width + window.left) * shape.channels;
    std::memcpy(pixels + y * row_bytes, image.data() + from, row_bytes);
  }
  return absl::OkStatus();
}

absl::Status JpegDecoder::Decode(uint8_t* pixels) {
  State& state = *state_;
  const JpegShape& shape = state.shape;
  const size_t lying_bytes = state.orientation == 1 ? 0 : shape.bytes();
  LargeCharge charge;
  charge.Add(lying_bytes);
  std::vector<uint8_t> lying(lying_bytes);
  if (state.RunRows(shape.height, lying.empty() ? pixels : lying.data())) {
    if (!lying.empty()) {
      TurnUpright(state.orientation, lying.data(), shape.height, shape.width, shape.channels,
                  pixels);
    }
    return absl::OkStatus();
  }
  return state.Failed();
}

bool JpegDecoder::has_rows() const { return !state_->has_inks() && state_->orientation == 1; }

absl::Status JpegDecoder::ReadRows(int count, uint8_t* pixels) {
  return state_->RunRows(count, pixels) ? absl::OkStatus() : state_->Failed();
}

}  // namespace penstock
