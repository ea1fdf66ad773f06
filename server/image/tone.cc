#include "server/image/tone.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/kernels/byte_blend.h"

namespace penstock::expr {
namespace {

using ByteTable = std::array<uint8_t, 256>;
// How often each value occurs in one channel.
using Histogram = std::array<int64_t, 256>;

std::vector<Histogram> CountValues(const ImageView& image) {
  // Neighbours are often alike. Counted by turns in tables of their own, they do not wait for one
  // another.
  constexpr size_t kTurns = 4;
  const auto channels = static_cast<size_t>(image.channels);
  std::vector<std::array<uint32_t, 256>> counts(kTurns * channels);
  const uint8_t* pixel = image.pixels;
  const int64_t num_pixels = image.height * image.width;
  const auto count_pixel = [&](std::array<uint32_t, 256>* tables) {
    for (size_t c = 0; c < channels; ++c) ++tables[c][*pixel++];
  };
  InPieces(static_cast<size_t>(num_pixels) / kTurns, [&](size_t, size_t some) {
    for (size_t i = 0; i < some; ++i)
      for (size_t turn = 0; turn < kTurns; ++turn) count_pixel(&counts[turn * channels]);
  });
  for (size_t i = 0; i < static_cast<size_t>(num_pixels) % kTurns; ++i) count_pixel(counts.data());
  std::vector<Histogram> histograms(channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t value = 0; value < 256; ++value) {
      histograms[c][value] = 0;
      for (size_t turn = 0; turn < kTurns; ++turn)
        histograms[c][value] += counts[turn * channels + c][value];
    }
  }
  return histograms;
}

ByteTable Identity() {
  ByteTable table;
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i);
  return table;
}

uint8_t Clipped(int64_t value) { return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)); }

ByteTable EqualizeTable(const Histogram& histogram) {
  const auto last =
      std::find_if(histogram.rbegin(), histogram.rend(), [](int64_t count) { return count != 0; });
  if (last == histogram.rend()) return Identity();
  const int64_t total = std::accumulate(histogram.begin(), histogram.end(), int64_t{0});
  const int64_t step = (total - *last) / 255;
  if (step == 0) return Identity();
  ByteTable table;
  int64_t below = step / 2;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = Clipped(below / step);
    below += histogram[i];
  }
  return table;
}

// Takes `cut` values away from the front of [first, end).
template <typename Iterator>
void Cut(int64_t cut, Iterator first, Iterator end) {
  for (; first != end && cut > 0; ++first) {
    const int64_t away = std::min(cut, *first);
    *first -= away;
    cut -= away;
  }
}

ByteTable AutocontrastTable(double cutoff_low, double cutoff_high, Histogram histogram) {
  const auto total =
      static_cast<double>(std::accumulate(histogram.begin(), histogram.end(), int64_t{0}));
  Cut(static_cast<int64_t>(std::floor(total * cutoff_low / 100)), histogram.begin(),
      histogram.end());
  Cut(static_cast<int64_t>(std::floor(total * cutoff_high / 100)), histogram.rbegin(),
      histogram.rend());
  int low = 0, high = 255;
  while (low < 255 && histogram[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && histogram[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return Identity();
  ByteTable table;
  const double scale = 255.0 / (high - low);
  const double offset = -low * scale;
  for (int i = 0; i < 256; ++i)
    table[static_cast<size_t>(i)] = Clipped(static_cast<int64_t>(i * scale + offset));
  return table;
}

// A table for each channel.
NextRows StartTables(std::vector<ByteTable> tables, const ImageView& image) {
  return [image, tables = std::move(tables), from = image.pixels](int64_t num_rows,
                                                                  uint8_t* out) mutable {
    const uint8_t* const end = from + num_rows * image.row_bytes();
    if (tables.size() == 3) {
      const ByteTable &red = tables[0], &green = tables[1], &blue = tables[2];
      for (; from != end; from += 3, out += 3) {
        out[0] = red[from[0]];
        out[1] = green[from[1]];
        out[2] = blue[from[2]];
      }
      return;
    }
    while (from != end)
      for (const ByteTable& table : tables) *out++ = table[*from++];
  };
}

template <typename TableOfHistogram>
NextRows StartByHistograms(const ImageView& image, const TableOfHistogram& table_of) {
  std::vector<ByteTable> tables;
  for (const Histogram& histogram : CountValues(image)) tables.push_back(table_of(histogram));
  return StartTables(std::move(tables), image);
}

// What a function of bytes makes of the image's.
template <typename Function>
NextRows StartBytes(const ImageView& image, const Function& function) {
  return [image, function, from = image.pixels](int64_t num_rows, uint8_t* out) mutable {
    const int64_t bytes = num_rows * image.row_bytes();
    function(from, static_cast<size_t>(bytes), out);
    from += bytes;
  };
}

// Between one value and each.
NextRows StartBlendFrom(uint8_t value, float factor, const ImageView& image) {
  return StartBytes(image, [value, factor](const uint8_t* in, size_t count, uint8_t* out) {
    kernels::BlendFrom(value, in, count, factor, out);
  });
}

}  // namespace

absl::Status CheckHistograms(const ImageView& image) {
  if (image.channels <= kHistogramsMax) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("image of more channels than the limit: ", image.channels,
                                          " > ", kHistogramsMax));
}

NextRows StartEqualize(const ImageView& image) { return StartByHistograms(image, EqualizeTable); }

NextRows StartAutocontrast(double cutoff_low, double cutoff_high, const ImageView& image) {
  return StartByHistograms(image, [&](const Histogram& histogram) {
    return AutocontrastTable(cutoff_low, cutoff_high, histogram);
  });
}

NextRows StartPosterize(int64_t bits, const ImageView& image) {
  const auto mask = static_cast<uint8_t>(0xff << (8 - bits));
  return StartBytes(image, [mask](const uint8_t* in, size_t count, uint8_t* out) {
    kernels::MaskBytes(in, count, mask, out);
  });
}

NextRows StartSolarize(double threshold, const ImageView& image) {
  if (threshold > 255) return StartCopy(image);
  const auto least = static_cast<uint8_t>(std::ceil(std::max(threshold, 0.0)));
  return StartBytes(image, [least](const uint8_t* in, size_t count, uint8_t* out) {
    kernels::InvertBytes(in, count, least, out);
  });
}

NextRows StartBrightness(float factor, const ImageView& image) {
  return StartBlendFrom(0, factor, image);
}

NextRows StartContrast(float factor, const ImageView& image) {
  const int64_t num_pixels = image.height * image.width;
  const auto count = static_cast<size_t>(num_pixels);
  const uint64_t sum = image.channels == 3
                           ? kernels::SumOfGreys(image.pixels, count)
                           : std::accumulate(image.pixels, image.pixels + count, uint64_t{0});
  const double mean = static_cast<double>(sum) / static_cast<double>(num_pixels);
  return StartBlendFrom(static_cast<uint8_t>(mean + 0.5), factor, image);
}

NextRows StartSaturation(float factor, const ImageView& image) {
  // What is grey stays as it is.
  if (image.channels != 3) return StartCopy(image);
  return [image, factor, from = image.pixels](int64_t num_rows, uint8_t* out) mutable {
    kernels::BlendWithGrey(from, static_cast<size_t>(num_rows * image.width), factor, out);
    from += num_rows * image.row_bytes();
  };
}

NextRows StartSharpness(float factor, const ImageView& image, Arena& scratch) {
  const auto row_bytes = static_cast<size_t>(image.row_bytes());
  return [image, factor, row_bytes, y = int64_t{0}, smooth = scratch.Allocate(row_bytes)](
             int64_t num_rows, uint8_t* out) mutable {
    const auto channels = static_cast<size_t>(image.channels);
    for (int64_t i = 0; i < num_rows; ++i, ++y, out += row_bytes) {
      const uint8_t* const row = image.row(y);
      // The pixels at the edges stay as they are.
      std::memcpy(smooth, row, row_bytes);
      if (y > 0 && y + 1 < image.height && image.width > 2) {
        kernels::SmoothBytes(image.row(y - 1) + channels, row + channels,
                             image.row(y + 1) + channels, row_bytes - 2 * channels, channels,
                             smooth + channels);
      }
      kernels::BlendBytes(smooth, row, row_bytes, factor, out);
    }
  };
}

}  // namespace penstock::expr
