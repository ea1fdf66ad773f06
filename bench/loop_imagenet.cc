// The strictest bare loop for the pipeline "imagenet": mapped files with both checksums,
// libjpeg-turbo's partial decoding of the crop, and resize, flip and normalise fused into it row by
// row; a private ring of two slots a thread, no shuffle, no hand-over. The crops are drawn from the
// same distribution, by cheaper dice.
//
//   bench_loop_imagenet --files GLOB [--seconds S] [--threads N]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
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

constexpr int kSide = 224;
constexpr int kChannels = 3;
constexpr int kRowValues = kSide * kChannels;
constexpr int kBatch = 64;
constexpr int kSlots = 2;
constexpr size_t kImageValues = size_t{kSide} * kRowValues;
constexpr float kMean[] = {123.675f, 116.28f, 103.53f};
constexpr float kStd[] = {58.395f, 57.12f, 57.375f};

struct Pattern {
  alignas(32) float mean[24];
  alignas(32) float std[24];
  Pattern() {
    for (int i = 0; i < 24; ++i) {
      mean[i] = kMean[i % 3];
      std[i] = kStd[i % 3];
    }
  }
};

// (top + (bottom - top) lerp - mean) / std, true division.
__attribute__((target("avx2"))) void FinishRow(const Pattern& pattern, const float* top,
                                               const float* bottom, float lerp, float* out) {
  const __m256 factor = _mm256_set1_ps(lerp);
  for (int i = 0; i < kRowValues; i += 24) {
    for (int j = 0; j < 24; j += 8) {
      const __m256 t = _mm256_load_ps(top + i + j), b = _mm256_load_ps(bottom + i + j);
      const __m256 value = _mm256_add_ps(t, _mm256_mul_ps(_mm256_sub_ps(b, t), factor));
      const __m256 centred = _mm256_sub_ps(value, _mm256_load_ps(pattern.mean + j));
      _mm256_storeu_ps(out + i + j, _mm256_div_ps(centred, _mm256_load_ps(pattern.std + j)));
    }
  }
}

void Mirror(const float* in, float* out) {
  for (int x = 0; x < kSide; ++x)
    std::memcpy(out + kChannels * x, in + kChannels * (kSide - 1 - x), kChannels * sizeof(float));
}

void Fail(j_common_ptr info) {
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  Die("damaged JPEG", message);
}

struct Dice {
  uint64_t state = 1;
  double Unit() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

class Decoder {
 public:
  explicit Decoder(uint64_t seed) : errors_() {
    dice_.state = seed;
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
    Draw(static_cast<int>(info_.image_height), static_cast<int>(info_.image_width));
    jpeg_start_decompress(&info_);
    const int block = info_.max_h_samp_factor * DCTSIZE;
    JDIMENSION left = std::max(left_ - block, 0);
    JDIMENSION width = std::min<int>(left_ + width_ + block, info_.image_width) - left;
    jpeg_crop_scanline(&info_, &left, &width);
    if (top_ > 0) jpeg_skip_scanlines(&info_, top_);
    arena_.Reset();
    const kernels::BilinearRow row =
        kernels::MakeBilinearRowPart(width_, kSide, 0, kSide, kChannels, /*mirrored=*/false,
                                     arena_.Allocate(kernels::BilinearRowBytes(kSide, kChannels)));
    kernels::MakeBilinearTaps(height_, kSide, taps_);
    // libjpeg-turbo writes aligned rows past the caches, and they are read at once: so none is
    // aligned.
    const size_t row_bytes = (size_t{kChannels} * width + 63) / 64 * 64;
    uint8_t* const pixels = arena_.Allocate(row_bytes * kRowsAtOnce + 4) + 4;
    JSAMPROW rows[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) rows[i] = pixels + row_bytes * i;
    const bool mirrored = dice_.Unit() < 0.5;
    int y = 0;
    for (int first = 0; y < kSide;) {
      const int count = static_cast<int>(
          jpeg_read_scanlines(&info_, rows, std::min<int>(kRowsAtOnce, height_ - first)));
      for (int i = 0; i < count && y < kSide; ++i) {
        const int line = first + i;
        if (taps_[y].lower == line || taps_[y].upper == line) {
          kernels::ResizeRow(row, rows[i] + kChannels * (left_ - left), buffers_[line & 1]);
        }
        for (; y < kSide && taps_[y].upper == line; ++y) {
          float* const to = out + size_t{kRowValues} * y;
          FinishRow(pattern_, buffers_[taps_[y].lower & 1], buffers_[line & 1], taps_[y].lerp,
                    mirrored ? finished_ : to);
          if (mirrored) Mirror(finished_, to);
        }
      }
      first += count;
    }
    jpeg_abort_decompress(&info_);
  }

 private:
  static constexpr int kRowsAtOnce = 16;

  void Draw(int height, int width) {
    for (int i = 0; i < 10; ++i) {
      const double area = height * width * (0.08 + 0.92 * dice_.Unit());
      const double ratio = std::exp(std::log(3.0 / 4) + dice_.Unit() * std::log(16.0 / 9));
      width_ = static_cast<int>(std::lround(std::sqrt(area * ratio)));
      height_ = static_cast<int>(std::lround(std::sqrt(area / ratio)));
      if (width_ < 1 || height_ < 1 || width_ > width || height_ > height) continue;
      top_ = static_cast<int>(dice_.Unit() * (height - height_ + 1));
      left_ = static_cast<int>(dice_.Unit() * (width - width_ + 1));
      return;
    }
    top_ = left_ = 0;
    width_ = width;
    height_ = height;
  }

  Dice dice_;
  const Pattern pattern_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_;
  Arena arena_;
  kernels::BilinearTap taps_[kSide];
  int top_ = 0;
  int left_ = 0;
  int height_ = 0;
  int width_ = 0;
  alignas(64) float finished_[kRowValues];
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
  const auto decoder = std::make_unique<Decoder>(thread + 1);
  for (uint64_t row = 0; !stop.load(std::memory_order_relaxed); ++row) {
    const size_t place = row % (kSlots * kBatch);
    const Record record = walk.Next<Crc32cOfRecord>();
    ExampleValue values[2];
    void* const numbers[2] = {nullptr, labels + place};
    if (!parser.Parse(record.data, record.size, values, numbers).ok() || !values[0].present ||
        !values[1].present) {
      Die("not a flowers record", "expected image/encoded and image/class/label");
    }
    decoder->Decode(values[0].bytes, values[0].size, images + kImageValues * place);
    counter.Add(1);
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  const LoopFlags flags = ParseFlags(argc, argv, /*has_dtype=*/false);
  if (!__builtin_cpu_supports("avx2")) Die("no AVX2", "this machine is too old");
  std::vector<MappedFile> files;
  for (const std::string& path : MatchFiles(flags.files)) files.emplace_back(path);
  if (files.size() < static_cast<size_t>(flags.threads))
    Die("fewer files than threads", flags.files);
  Measure(flags, [&](int thread, LoopCounter& counter, const std::atomic<bool>& stop) {
    Work(files, thread, flags.threads, counter, stop);
  });
}
