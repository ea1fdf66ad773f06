// A crop, or a smaller copy, of a file's image is the same whether the whole is decoded before or
// only that part, or row by row.
#include "tests/functions/random/drawn_rows.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

struct Cropped {
  std::string steps;
  std::vector<std::vector<uint8_t>> rows;
};

// Of some rows, all of the same file. Where `whole`, the image is wanted for itself too.
Cropped Crop(const std::string& file, const std::string& call, bool whole) {
  std::string contents = ReadGolden("images/" + file);
  const size_t size = contents.size();
  contents.resize(size + 64);
  expr::MapSource map;
  map.stage = "map";
  map.lets = {"image = decode_jpeg(contents, channels=3)"};
  map.outs = {"y = " + call};
  if (whole) map.outs.push_back("all = image");
  const auto program = expr::Compile({{"contents", {DType::kString, {}}}}, {&map, 1});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  Cropped result{(*program)->DebugString(), {}};
  constexpr int kRows = 20;
  const std::vector<RowBytes> rows(kRows,
                                   {reinterpret_cast<const uint8_t*>(contents.data()), size});
  std::vector<RowIdentity> identities;
  for (const uint64_t path : Paths(kRows)) identities.push_back({path, nullptr});
  std::vector<Column> in = {{nullptr, 0, rows.data()}};
  if ((*program)->draws())
    in.push_back({reinterpret_cast<uint8_t*>(identities.data()), sizeof(RowIdentity)});
  std::vector<Column> out(map.outs.size());
  std::vector<uint8_t> memory;
  if (const auto bytes = NumBytes((*program)->output()[0].type)) {
    memory.resize(kRows * *bytes + 64);
    out[0] = {memory.data(), static_cast<size_t>(*bytes)};
  }
  Arena arena;
  const RowStatus status = (*program)->Run(kRows, in, absl::MakeSpan(out), arena);
  INFO(status.status.ToString());
  REQUIRE(status.ok());
  for (int i = 0; i < kRows; ++i)
    result.rows.emplace_back(out[0].row(i), out[0].row(i) + out[0].row_size(i));
  return result;
}

TEST_CASE("A crop of a JPEG file decodes that part alone, to the same bytes") {
  for (const std::string call : {
           "random_resized_crop(image, [16, 24], scale=[0.1, 0.5], seed=1)",
           "random_resized_crop(image, [16, 24], scale=[0.1, 0.5], seed=1) / 255 - 1",
           "random_resized_crop(image, [16, 24], method=\"area\", seed=1)",
           "random_resized_crop(image, [16, 24], seed=1, like=\"pil\")",
           "random_crop(image, [9, 7], seed=1)",
           "float32(random_crop(image, [9, 7], seed=1)) * 2",
           "crop_to_bounding_box(image, 3, 5, 8, 9)",
           "central_crop(image, 0.5)",
           "image[3:11, -9:]",
           "float32(image[3:300, 5:14]) / 255",
           "image[4:4]",
           "resize_with_crop_or_pad(image, 50, 400)",
           "resize(image, [16, 24])",
           "resize(image, [16, 24]) / 255 - 1",
           "resize(image, [300, 201])",
           "resize(image, [40, 30], preserve_aspect_ratio=True)",
           "flip_left_right(resize(image, [16, 24]))",
           "flip_left_right(random_crop(image, [9, 7], seed=1))",
       }) {
    for (const std::string file : {"rgb_photo.jpg", "rgb_444.jpg", "rgb_420.jpg", "rgb_422.jpg",
                                   "rgb_progressive.jpg", "rgb_restarts.jpg", "cmyk.jpg"}) {
      CAPTURE(call, file);
      const Cropped part = Crop(file, call, false), whole = Crop(file, call, true);
      CHECK(part.steps.find("of a part of an image") != std::string::npos);
      CHECK(whole.steps.find("of a part of an image") == std::string::npos);
      const bool same = part.rows == whole.rows;
      CHECK(same);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
