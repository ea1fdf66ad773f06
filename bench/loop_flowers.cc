// The strictest bare loop for the pipeline "flowers": mapped files with both checksums,
// libjpeg-turbo, and resize and scale fused into it row by row, so that no image is ever held
// whole; a private ring of two slots a thread, no shuffle, no hand-over.
//
//   bench_loop_flowers --files GLOB [--seconds S] [--threads N]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
#include <immintrin.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Behind <cstdio>, whose names it needs.
#include <jpeglib.h>

#include "base/arena.h"
#include "bench/loop_measure.h"
#include "bench/loop_records.h"
#include "server/codec/example.h"
#include "server/kernels/resize.h"

namespace penstock::bench {
namespace {

constexpr int kSide = 192;
constexpr int kChannels = 3;
constexpr int kRowValues = kSide * kChannels;
constexpr int kBatch = 40;
constexpr int kSlots = 2;
constexpr size_t kImageValues = size_t{kSide} * kRowValues;

// out = 2 ((top + (bottom - top) lerp) / 255) - 1. The quotient is the correctly rounded one: a
// product with the rounded reciprocal, set right by its remainder.
__attribute__((target("avx2,fma"))) void FinishRow(const float* top, const float* bottom,
                                                   float lerp, float* out) {
  const __m256 factor = _mm256_set1_ps(lerp), divisor = _mm256_set1_ps(255),
               reciprocal = _mm256_set1_ps(1.0f / 255);
  const __m256 one = _mm256_set1_ps(1);
  for (int i = 0; i < kRowValues; i += 8) {
    const __m256 t = _mm256_load_ps(top + i), b = _mm256_load_ps(bottom + i);
    const __m256 value = _mm256_add_ps(t, _mm256_mul_ps(_mm256_sub_ps(b, t), factor));
    const __m256 estimate = _mm256_mul_ps(value, reciprocal);
    const __m256 quotient =
        _mm256_fmadd_ps(_mm256_fnmadd_ps(estimate, divisor, value), reciprocal, estimate);
    _mm256_storeu_ps(out + i, _mm256_sub_ps(_mm256_add_ps(quotient, quotient), one));
  }
}

void Fail(j_common_ptr info) {
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  Die("damaged JPEG", message);
}

class Decoder {
 public:
  Decoder() : errors_() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = Fail;
    jpeg_create_decompress(&info_);
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  void Decode(const uint8_t* jpeg, size_t size, float* out) {
    jpeg_mem_src(&info_, jpeg, size);
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    info_.dct_method = JDCT_IFAST;
    jpeg_start_decompress(&info_);
    const int height = static_cast<int>(info_.output_height),
              width = static_cast<int>(info_.output_width);
    Prepare(height, width);
    JSAMPROW rows[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) rows[i] = pixels_ + row_bytes_ * i;
    int y = 0;
    for (int first = 0; first < height && y < kSide;) {
      const int count = static_cast<int>(jpeg_read_scanlines(&info_, rows, kRowsAtOnce));
      for (int i = 0; i < count && y < kSide; ++i) {
        const int row = first + i;
        if (taps_[y].lower == row || taps_[y].upper == row)
          kernels::ResizeRow(row_, rows[i], buffers_[row & 1]);
        for (; y < kSide && taps_[y].upper == row; ++y) {
          FinishRow(buffers_[taps_[y].lower & 1], buffers_[row & 1], taps_[y].lerp,
                    out + size_t{kRowValues} * y);
        }
      }
      first += count;
    }
    jpeg_abort_decompress(&info_);
  }

 private:
  static constexpr int kRowsAtOnce = 16;

  void Prepare(int height, int width) {
    if (width != width_) {
      arena_.Reset();
      row_ = kernels::MakeBilinearRowPart(
          width, kSide, 0, kSide, kChannels, /*mirrored=*/false,
          arena_.Allocate(kernels::BilinearRowBytes(kSide, kChannels)));
      // libjpeg-turbo writes aligned rows past the caches, and they are read at once: so none is
      // aligned.
      row_bytes_ = (size_t{kChannels} * width + 63) / 64 * 64;
      pixels_ = arena_.Allocate(row_bytes_ * kRowsAtOnce + 4) + 4;
      width_ = width;
    }
    if (height != height_) kernels::MakeBilinearTaps(height, kSide, taps_);
    height_ = height;
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_;
  Arena arena_;
  kernels::BilinearRow row_;
  kernels::BilinearTap taps_[kSide];
  uint8_t* pixels_ = nullptr;
  size_t row_bytes_ = 0;
  int width_ = 0;
  int height_ = 0;
  // Source rows of even and of odd number, interpolated along the row.
  alignas(64) float buffers_[2][kRowValues + kernels::kBilinearPadding / sizeof(float)];
};

void Work(const std::vector<MappedFile>& files, size_t thread, size_t threads, LoopCounter& counter,
          const std::atomic<bool>& stop) {
  const ExampleParser parser(
      {{"image/encoded", DType::kString, 1}, {"image/class/label", DType::kInt64, 1}});
  auto* const images =
      reinterpret_cast<float*>(AllocateRing(kSlots * kBatch * kImageValues * sizeof(float)));
  int64_t labels[kSlots * kBatch];
  RecordWalk walk(files, thread, threads);
  Decoder decoder;
  for (uint64_t row = 0; !stop.load(std::memory_order_relaxed); ++row) {
    const size_t place = row % (kSlots * kBatch);
    const Record record = walk.Next<Crc32cOfRecord>();
    ExampleValue values[2];
    void* const numbers[2] = {nullptr, labels + place};
    if (!parser.Parse(record.data, record.size, values, numbers).ok() || !values[0].present ||
        !values[1].present) {
      Die("not a flowers record", "expected image/encoded and image/class/label");
    }
    decoder.Decode(values[0].bytes, values[0].size, images + kImageValues * place);
    counter.Add(1);
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  const LoopFlags flags = ParseFlags(argc, argv, /*has_dtype=*/false);
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    Die("no AVX2", "this machine is too old");
  std::vector<MappedFile> files;
  for (const std::string& path : MatchFiles(flags.files)) files.emplace_back(path);
  if (files.size() < static_cast<size_t>(flags.threads))
    Die("fewer files than threads", flags.files);
  Measure(flags, [&](int thread, LoopCounter& counter, const std::atomic<bool>& stop) {
    Work(files, thread, flags.threads, counter, stop);
  });
}
