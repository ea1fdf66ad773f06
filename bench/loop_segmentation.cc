// The strictest bare loop for the pipeline "segmentation": mapped records with both checksums, the
// same inflate and unfilter, crop or pad and scale or one-hot written straight into a private ring
// of two slots a thread; no shuffle, no hand-over.
//
//   bench_loop_segmentation --files GLOB [--seconds S] [--threads N]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/loop_measure.h"
#include "bench/loop_records.h"
#include "server/codec/example.h"
#include "server/codec/plain_png.h"

namespace penstock::bench {
namespace {

constexpr int kSide = 512;
constexpr int kClasses = 12;
constexpr int kBatch = 3;
constexpr int kSlots = 2;
constexpr size_t kImageValues = size_t{kSide} * kSide * 3;
constexpr size_t kLabelValues = size_t{kSide} * kSide * kClasses;

struct Image {
  int height = 0;
  int width = 0;
  std::vector<uint8_t> pixels;

  void Decode(const uint8_t* file, size_t size) {
    const auto number = [file](size_t at) {
      return file[at] << 24 | file[at + 1] << 16 | file[at + 2] << 8 | file[at + 3];
    };
    if (size < 33 || file[24] != 8 || file[25] != 2) Die("not an RGB PNG", "of 8 bits");
    width = number(16);
    height = number(20);
    pixels.resize(size_t{3} * height * width);
    if (!DecodePlainPng(file, size, height, size_t{3} * width, 3, pixels.data()))
      Die("not a plain PNG", "or damaged");
  }

  // Calls write(y, x, count, pixels) for the stretches of the 512 x 512 window that the image
  // covers, and clear(y, x, count) for others.
  template <typename Write, typename Clear>
  void Window(const Write& write, const Clear& clear) const {
    const int top = (height - kSide) / 2, left = (width - kSide) / 2;
    const int begin = std::max(-left, 0), end = std::min(width - left, kSide);
    for (int y = 0; y < kSide; ++y) {
      const int line = y + top;
      if (line < 0 || line >= height) {
        clear(y, 0, kSide);
        continue;
      }
      clear(y, 0, begin);
      write(y, begin, end - begin,
            pixels.data() + size_t{3} * (size_t(line) * width + left + begin));
      clear(y, end, kSide - end);
    }
  }
};

// The colours of the sample's classes differ in their two highest bits.
struct Classes {
  uint8_t of[64] = {};
  Classes() {
    static constexpr uint8_t kColours[kClasses][3] = {
        {0, 0, 0},     {128, 0, 0},     {0, 128, 0}, {128, 128, 0}, {0, 0, 128},  {128, 0, 128},
        {0, 128, 128}, {128, 128, 128}, {64, 0, 0},  {192, 0, 0},   {64, 128, 0}, {192, 128, 0}};
    for (int i = 0; i < kClasses; ++i) of[Key(kColours[i])] = static_cast<uint8_t>(i);
  }
  static int Key(const uint8_t* pixel) {
    return pixel[0] >> 6 << 4 | pixel[1] >> 6 << 2 | pixel[2] >> 6;
  }
};

void Scale(const Image& image, float* out) {
  constexpr auto kScale = static_cast<float>(1.0 / 255);
  image.Window(
      [out](int y, int x, int count, const uint8_t* pixels) {
        float* const to = out + size_t{3} * (size_t(y) * kSide + x);
        for (int i = 0; i < 3 * count; ++i) to[i] = static_cast<float>(pixels[i]) * kScale;
      },
      [out](int y, int x, int count) {
        std::memset(out + size_t{3} * (size_t(y) * kSide + x), 0, sizeof(float) * 3 * count);
      });
}

void OneHot(const Image& image, const Classes& classes, float* out) {
  std::memset(out, 0, kLabelValues * sizeof(float));
  image.Window(
      [&](int y, int x, int count, const uint8_t* pixels) {
        float* const to = out + size_t{kClasses} * (size_t(y) * kSide + x);
        for (int i = 0; i < count; ++i)
          to[kClasses * i + classes.of[Classes::Key(pixels + 3 * i)]] = 1;
      },
      [out](int y, int x, int count) {
        float* const to = out + size_t{kClasses} * (size_t(y) * kSide + x);
        for (int i = 0; i < count; ++i) to[kClasses * i] = 1;  // black is the first class
      });
}

void Work(const std::vector<MappedFile>& files, size_t thread, size_t threads, LoopCounter& counter,
          const std::atomic<bool>& stop) {
  const ExampleParser parser({{"image", DType::kString, 1}, {"label", DType::kString, 1}});
  auto* const images =
      reinterpret_cast<float*>(AllocateRing(kSlots * kBatch * kImageValues * sizeof(float)));
  auto* const labels =
      reinterpret_cast<float*>(AllocateRing(kSlots * kBatch * kLabelValues * sizeof(float)));
  RecordWalk walk(files, thread, threads);
  const Classes classes;
  Image image;
  for (uint64_t row = 0; !stop.load(std::memory_order_relaxed); ++row) {
    const size_t place = row % (kSlots * kBatch);
    const Record record = walk.Next<Crc32cOfRecord>();
    ExampleValue values[2];
    void* const numbers[2] = {nullptr, nullptr};
    if (!parser.Parse(record.data, record.size, values, numbers).ok() || !values[0].present ||
        !values[1].present) {
      Die("not a segmentation record", "expected image and label");
    }
    image.Decode(values[0].bytes, values[0].size);
    Scale(image, images + kImageValues * place);
    image.Decode(values[1].bytes, values[1].size);
    OneHot(image, classes, labels + kLabelValues * place);
    counter.Add(1);
  }
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  const LoopFlags flags = ParseFlags(argc, argv, /*has_dtype=*/false);
  std::vector<MappedFile> files;
  for (const std::string& path : MatchFiles(flags.files)) files.emplace_back(path);
  if (files.size() < static_cast<size_t>(flags.threads))
    Die("fewer files than threads", flags.files);
  Measure(flags, [&](int thread, LoopCounter& counter, const std::atomic<bool>& stop) {
    Work(files, thread, flags.threads, counter, stop);
  });
}
