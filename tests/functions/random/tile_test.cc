// What several functions make of an image is the same whether it goes through them in tiles or is
// computed whole after each.
#include "tests/functions/random/drawn_rows.h"

namespace penstock::testing {
namespace {

// `calls` one after the other, each on the one before: x, then "f(x)". Where `whole`, each result
// is wanted for itself, too.
DrawnRows RunChain(const std::vector<std::string>& calls, bool whole, std::string* steps) {
  expr::MapSource map;
  map.stage = "map";
  std::string last = "image";
  std::vector<std::string> outs;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string name = "step" + std::to_string(i);
    std::string text = calls[i];
    text.replace(text.find("(x") + 1, 1, last);
    map.lets.push_back(name + " = " + text);
    outs.push_back("out" + std::to_string(i) + " = " + name);
    last = name;
  }
  map.outs = {"y = " + last};
  if (whole) map.outs.insert(map.outs.end(), outs.begin(), outs.end() - 1);
  const TestImage image(37, 53);
  const auto program =
      expr::Compile({{"image", {DType::kUint8, {image.height, image.width, 3}}}}, {&map, 1});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  *steps = (*program)->DebugString();
  return RunDrawing(**program, Paths(12), 5, image, /*logged=*/true);
}

struct Chain {
  std::vector<std::string> calls;
  int filters;  // functions that take tiles of the one before
};

TEST_CASE("Functions that take tiles give the bytes and the draws that they give of whole images") {
  const Chain chains[] = {
      {{"resize(x, [40, 48])", "random_crop(x, [32, 31], seed=1)",
        "random_flip_left_right(x, seed=2)", "random_brightness(x, 32, seed=3)",
        "random_contrast(x, 0.5, 1.5, seed=4)", "abs(x) / 255"},
       3},
      // Rows of more than a tile, whose tiles end within a pixel.
      {{"resize(x, [9, 701])", "flip_left_right(x)", "adjust_brightness(x, 0.25)"}, 2},
      {{"resize(x, [9, 701])", "adjust_contrast(x, 0.5)", "random_flip_left_right(x, seed=2)"}, 2},
      {{"resize(x, [9, 11], method=\"area\")", "random_gamma(x, 0.5, 2, seed=2)",
        "flip_left_right(x)"},
       2},
      // Of bytes; the first takes the input as it lies.
      {{"flip_up_down(x)", "flip_left_right(x)", "random_brightness(x, 0.2, seed=3)",
        "adjust_contrast(x, 1.5)"},
       3},
      {{"random_crop(x, [33, 47], seed=1)", "random_flip_left_right(x, seed=2)"}, 1},
      // What is resized is written from right to left, where it is made larger and where it is made
      // smaller.
      {{"random_resized_crop(x, [50, 61], seed=5)", "random_flip_left_right(x, seed=2)",
        "(x - [3, 4, 5]) / [6, 7, 8]"},
       1},
      {{"resize(x, [7, 9])", "random_flip_left_right(x, seed=2)",
        "random_flip_left_right(x, seed=3)", "adjust_contrast(x, 2)"},
       3},
      // What stands on whole images alone ends the chain, and begins another one.
      {{"flip_left_right(x)", "adjust_brightness(x, 0.1)", "flip_up_down(x)",
        "adjust_contrast(x, 2)"},
       2},
      // A window that the resized image covers in part, and a part that is resized once more.
      {{"resize(x, [20, 30])", "resize_with_crop_or_pad(x, 26, 24)", "flip_left_right(x)"}, 1},
      {{"resize(x, [40, 48])", "random_resized_crop(x, [16, 16], seed=5)"}, 0},
      {{"resize(x, [40, 48], preserve_aspect_ratio=True)", "central_crop(x, 0.5)",
        "adjust_contrast(x, 2)"},
       1},
  };
  for (const Chain& chain : chains) {
    CAPTURE(chain.calls);
    std::string steps, whole_steps;
    const DrawnRows tiles = RunChain(chain.calls, false, &steps);
    const DrawnRows whole = RunChain(chain.calls, true, &whole_steps);
    CAPTURE(steps);
    int filters = 0;
    constexpr std::string_view kThrough = "through ";
    for (size_t at = steps.find(kThrough); at != std::string::npos;
         at = steps.find(kThrough, at + 1)) {
      filters += std::stoi(steps.substr(at + kThrough.size()));
    }
    CHECK(filters == chain.filters);
    CHECK(whole_steps.find(kThrough) == std::string::npos);
    const bool same = tiles.rows == whole.rows;
    CHECK(same);
    REQUIRE(tiles.log.draws.size() == whole.log.draws.size());
    for (size_t i = 0; i < tiles.log.draws.size(); ++i) {
      CHECK(tiles.log.draws[i].name == whole.log.draws[i].name);
      CHECK(tiles.log.draws[i].value == whole.log.draws[i].value);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
