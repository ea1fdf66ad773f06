#include <algorithm>
#include <vector>

#include "base/random.h"
#include "client/ctl/shards.h"
#include "client/samples/drawn_photos.h"
#include "client/samples/fill_shards.h"
#include "client/samples/photo.h"
#include "client/samples/samples.h"
#include "io/record/example_builder.h"

namespace penstock::samples {
namespace {

constexpr int kMinWidth = 320;
constexpr int kMaxWidth = 500;
constexpr int kQuality = 90;
// A piece of a photograph is this many percent of the size of the picture made of it: enlarged
// detail has too little to decode.
constexpr int kMinReduction = 150;
constexpr int kMaxReduction = 500;
constexpr int kMaxSide = 2600;  // of a photograph in memory: about 15 MB

// A record depends on the seed and its ordinal alone, not on the thread that makes it.
void MakeRecord(const std::vector<Photo>& photos, uint64_t seed, uint64_t ordinal,
                ExampleBuilder* example) {
  DrawSequence draws(seed, ordinal);
  uint64_t num_draws = 0;
  const auto draw = [&](size_t bound) {
    return static_cast<int>(draws.Below(num_draws++, static_cast<uint32_t>(bound)));
  };
  const int label = draw(photos.size());
  const Photo& photo = photos[label];
  const int width = kMinWidth + draw(kMaxWidth - kMinWidth + 1);
  const int height = width * 3 / 4;
  const int most =
      std::min({kMaxReduction, 100 * photo.width / width, 100 * photo.height / height});
  const int least = std::min(kMinReduction, most);
  const int percent = least + draw(most - least + 1);
  const int cut_width = width * percent / 100, cut_height = height * percent / 100;
  const int x = draw(photo.width - cut_width + 1);
  const int y = draw(photo.height - cut_height + 1);
  const std::string jpeg =
      EncodeJpeg(CutAndScale(photo, x, y, cut_width, cut_height, width, height), kQuality);
  example->AddBytes("image/encoded", jpeg);
  example->AddInt64("image/class/label", label);
}

}  // namespace

absl::Status MakeFlowers(const SampleOptions& options, const std::vector<std::string>& patterns) {
  absl::StatusOr<std::vector<Photo>> photos =
      patterns.empty() ? DrawFlowers() : ReadPhotos(patterns, kMaxWidth, kMaxSide);
  if (!photos.ok()) return photos.status();
  auto shards = ctl::ShardSet::Create(options.directory, "flowers", options.shards);
  if (!shards.ok()) return shards.status();
  return FillShards(*shards, options.records, options.directory,
                    [&](int64_t ordinal, ExampleBuilder* example) {
                      MakeRecord(*photos, options.seed, static_cast<uint64_t>(ordinal), example);
                      return absl::OkStatus();
                    });
}

}  // namespace penstock::samples
