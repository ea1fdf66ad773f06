#include <png.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "client/ctl/shards.h"
#include "client/samples/drawn_photos.h"
#include "client/samples/fill_shards.h"
#include "client/samples/photo.h"
#include "client/samples/samples.h"
#include "io/record/example_builder.h"

namespace penstock::samples {
namespace {

constexpr int kMinWidth = 400;
constexpr int kMaxWidth = 600;
constexpr int kMaxSide = 2600;  // of a photograph in memory
constexpr int kRegions = 16;    // of a label image

// Those of config/pipelines/segmentation.textproto.
constexpr std::array<std::array<uint8_t, 3>, 12> kColours = {{{0, 0, 0},
                                                              {128, 0, 0},
                                                              {0, 128, 0},
                                                              {128, 128, 0},
                                                              {0, 0, 128},
                                                              {128, 0, 128},
                                                              {0, 128, 128},
                                                              {128, 128, 128},
                                                              {64, 0, 0},
                                                              {192, 0, 0},
                                                              {64, 128, 0},
                                                              {192, 128, 0}}};

std::string EncodePng(const Photo& photo) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp target, png_bytep bytes, png_size_t count) {
        static_cast<std::string*>(png_get_io_ptr(target))
            ->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, photo.width, photo.height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int y = 0; y < photo.height; ++y)
    png_write_row(png, photo.rgb.data() + size_t{3} * y * photo.width);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

absl::Status WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  bool written =
      file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path.string()));
}

struct Pair {
  std::string image;
  std::string label;
};

// It depends on the seed and its ordinal alone, not on the thread that makes it.
Pair MakePair(const std::vector<Photo>& photos, uint64_t seed, uint64_t ordinal) {
  DrawSequence draws(seed, ordinal);
  uint64_t num_draws = 0;
  const auto draw = [&](size_t bound) {
    return static_cast<int>(draws.Below(num_draws++, static_cast<uint32_t>(bound)));
  };
  const Photo& photo = photos[draw(photos.size())];
  const int width = kMinWidth + draw(kMaxWidth - kMinWidth + 1), height = width * 3 / 4;
  const int percent =
      100 + draw(std::min({300, 100 * photo.width / width, 100 * photo.height / height}) - 99);
  const int cut_width = width * percent / 100, cut_height = height * percent / 100;
  const int x = draw(photo.width - cut_width + 1), y = draw(photo.height - cut_height + 1);
  const Photo piece = CutAndScale(photo, x, y, cut_width, cut_height, width, height);
  // Each pixel belongs to the nearest of some places, where a brighter one counts as farther off: so edges are as uneven as objects'.
  struct Region {
    int x, y, colour;
  };
  std::array<Region, kRegions> regions;
  for (Region& region : regions) region = {draw(width), draw(height), draw(kColours.size())};
  Photo labels{width, height, std::vector<uint8_t>(piece.rgb.size())};
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const size_t at = (size_t{1} * row * width + column) * 3;
      const int unevenness = piece.rgb[at] / 8;
      int best = INT_MAX, colour = 0;
      for (const Region& region : regions) {
        const int dx = column - region.x + (region.colour % 2 == 0 ? unevenness : 0);
        const int dy = row - region.y;
        if (dx * dx + dy * dy < best) {
          best = dx * dx + dy * dy;
          colour = region.colour;
        }
      }
      std::copy_n(kColours[colour].begin(), 3, labels.rgb.begin() + static_cast<int64_t>(at));
    }
  }
  return {EncodePng(piece), EncodePng(labels)};
}

}  // namespace

absl::Status MakeSegmentation(const SampleOptions& options,
                              const std::vector<std::string>& patterns) {
  absl::StatusOr<std::vector<Photo>> photos =
      patterns.empty() ? DrawFlowers() : ReadPhotos(patterns, kMaxWidth, kMaxSide);
  if (!photos.ok()) return photos.status();
  const std::filesystem::path folder(options.directory);
  for (const char* const part : {"images", "labels"}) {
    std::error_code error;
    std::filesystem::create_directories(folder / part, error);
    if (error) {
      return absl::ErrnoToStatus(error.value(),
                                 absl::StrCat("cannot make ", (folder / part).string()));
    }
  }
  auto shards = ctl::ShardSet::Create(options.directory, "segmentation", options.shards);
  if (!shards.ok()) return shards.status();

  const auto make = [&](int64_t ordinal, ExampleBuilder* example) {
    const Pair pair = MakePair(*photos, options.seed, static_cast<uint64_t>(ordinal));
    example->AddBytes("image", pair.image);
    example->AddBytes("label", pair.label);
    const std::string name = absl::StrFormat("%06d.png", ordinal);
    absl::Status status = WriteFile(folder / "images" / name, pair.image);
    status.Update(WriteFile(folder / "labels" / name, pair.label));
    return status;
  };
  return FillShards(*shards, options.records, options.directory, make);
}

}  // namespace penstock::samples
