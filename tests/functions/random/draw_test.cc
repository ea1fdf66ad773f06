// What draws depend on, and what they do not.
#include <algorithm>
#include <set>

#include "server/expr/seeds.h"
#include "tests/expr/instruction_sets.h"
#include "tests/functions/random/drawn_rows.h"

namespace penstock::testing {
namespace {

// A call of every random function.
const std::vector<std::string> kCalls = {
    "random_uniform(seed=3)",
    "random_uniform([5], -2, 3, seed=3)",
    "random_uniform([3], dtype=\"float64\", seed=3)",
    "random_uniform([3], -5, 5, dtype=\"int32\", seed=3)",
    "random_uniform([3], 0, 9223372036854775807, dtype=\"int64\", seed=3)",
    "random_uniform(shape(image), seed=3)",
    "random_uniform([3], 0, shape(image)[1], \"int32\", seed=3)",
    "random_normal(shape(image)[:2], seed=3)",
    "random_normal([7], seed=3)",
    "random_beta(0.2, 0.3, [4], seed=3)",
    "random_beta(2, 3, dtype=\"float64\", seed=3)",
    "random_normal([3], 5, 2, dtype=\"float64\", seed=3)",
    "random_flip_left_right(image, seed=3)",
    "random_flip_up_down(image, seed=3)",
    "random_crop(image, [3, 4], seed=3)",
    "random_crop(image, [3, 4, 3], seed=3)",
    "random_resized_crop(image, [5, 6], seed=3)",
    "random_resized_crop(image, [5, 6], like=\"pil\", seed=3)",
    "random_resized_crop(image, [5, 6], scale=[0.3, 0.5], ratio=[1, 2], method=\"nearest\", "
    "seed=3)",
    "random_brightness(image, 0.3, seed=3)",
    "random_contrast(image, 0.3, 1.7, seed=3)",
    "random_saturation(image, 0.3, 1.7, seed=3)",
    "random_hue(image, 0.3, seed=3)",
    "random_gamma(image, 0.3, 1.7, seed=3)",
    "random_erasing(image, 0.7, value=9, seed=3)",
    "random_cutout(image, [4, 2], seed=3)",
    "random_rotation(image, [-50, 50], seed=3)",
    "random_rotation(float32(image), [-50, 50], \"bilinear\", -1, seed=3)",
    "random_affine(image, [-20, 20], [0.3, 0.2], [0.7, 1.2], [-10, 10], seed=3)",
    "random_gaussian_blur(image, 5, probability=0.5, seed=3)",
    "color_jitter(image, 0.4, 0.4, 0.4, 0.1, seed=3)",
    "rand_augment(image, seed=3)",
    "rand_augment(image, 5, 20, method=\"bicubic\", fill=128, seed=3)",
    "trivial_augment_wide(image, seed=3)",
    "auto_augment(image, \"svhn\", \"bilinear\", seed=3)",
    "random_brightness(float32(image) / 255, 0.3, seed=3) * 2",
};

TEST_CASE("A draw belongs to the row, whatever its block and its place in it") {
  const std::vector<uint64_t> paths = Paths(23);
  for (const std::string& call : kCalls) {
    CAPTURE(call);
    const DrawnRows together = Draw(call, paths, 23);
    CHECK(Draw(call, paths, 1).rows == together.rows);
    CHECK(Draw(call, paths, 5).rows == together.rows);
    std::vector<uint64_t> backwards(paths.rbegin(), paths.rend());
    DrawnRows turned = Draw(call, backwards, 4);
    std::reverse(turned.rows.begin(), turned.rows.end());
    CHECK(turned.rows == together.rows);
    // Rows differ.
    std::set<std::string> values;
    for (const auto& row : together.rows) values.emplace(row.begin(), row.end());
    CHECK(values.size() > 1);
  }
}

TEST_CASE("Draws have the same bits on every instruction set") {
  const std::vector<uint64_t> paths = Paths(9);
  for (const std::string& call : kCalls) {
    CAPTURE(call);
    std::vector<std::vector<uint8_t>> first;
    for (const expr::InstructionSet& set : expr::InstructionSets()) {
      CAPTURE(set.name);
      const expr::ScopedInstructionSet scoped(set);
      const auto program = CompileDrawing({"y = " + call}, "map", TestImage(8, 10), set.lanes);
      REQUIRE(program.ok());
      const DrawnRows rows = RunDrawing(**program, paths, 4);
      if (first.empty()) first = rows.rows;
      CHECK(rows.rows == first);
    }
  }
}

TEST_CASE("Sizes that only the data tells make no difference") {
  const std::vector<uint64_t> paths = Paths(5);
  for (const std::string& call : kCalls) {
    if (call.find("float32(image)") != std::string::npos) continue;
    CAPTURE(call);
    const auto program =
        CompileDrawing({"y = " + call}, "map", TestImage(8, 10), expr::Lanes::kVector, false);
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    const DrawnRows unknown = RunDrawing(**program, paths, 3);
    const DrawnRows known = Draw(call, paths);
    CHECK(unknown.rows == known.rows);
    CHECK(TypeToString(unknown.type) == TypeToString(known.type));
  }
}

TEST_CASE("Shapes and bounds of the data draw what constants do") {
  const std::vector<uint64_t> paths = Paths(5);
  const struct {
    std::string of_data;
    std::string constant;
  } kCases[] = {
      {"random_uniform(shape(image), seed=3)", "random_uniform([8, 10, 3], seed=3)"},
      {"random_uniform(shape(image)[:1], dtype=\"float64\", seed=3)",
       "random_uniform([8], dtype=\"float64\", seed=3)"},
      {"random_normal(shape(image)[:2], 5, 2, seed=3)", "random_normal([8, 10], 5, 2, seed=3)"},
      {"random_beta(2, 3, shape(image)[1:], seed=3)", "random_beta(2, 3, [10, 3], seed=3)"},
      {"random_uniform([5], -shape(image)[2], shape(image)[0], \"int64\", seed=3)",
       "random_uniform([5], -3, 8, \"int64\", seed=3)"},
      {"random_uniform(shape(image)[:1], 2, int16(shape(image)[0]), \"int32\", seed=3)",
       "random_uniform([8], 2, 8, \"int32\", seed=3)"},
      {"random_uniform([5], shape(image)[2] / 2, shape(image)[0], seed=3)",
       "random_uniform([5], 1.5, 8, seed=3)"},
      {"random_uniform([5], -1, float32(shape(image)[2]), \"float64\", seed=3)",
       "random_uniform([5], -1, 3, \"float64\", seed=3)"},
  };
  for (const auto& [of_data, constant] : kCases) {
    CAPTURE(of_data);
    CHECK(Draw(of_data, paths).rows == Draw(constant, paths).rows);
  }
}

TEST_CASE("A draw depends on seed, stage, function and row, and on nothing else") {
  const std::vector<uint64_t> paths = Paths(4);
  const auto rows = Draw("random_uniform([2], seed=3)", paths).rows;
  CHECK(Draw("random_uniform([2], seed=3)", paths).rows == rows);
  CHECK(Draw("0 + random_uniform(seed=3, shape=[2])", paths).rows == rows);
  CHECK(Draw("random_uniform([2], seed=4)", paths).rows != rows);
  CHECK(Draw("random_uniform([2], seed=3)", paths, 16, "map_2").rows != rows);
  CHECK(Draw("random_uniform([2], seed=3)", {1, 2, 3, 4}).rows != rows);
}

TEST_CASE("Calls are never one, unless they have the same seed") {
  const std::vector<uint64_t> paths = Paths(4);
  const auto zeros = std::vector<float>(4 * 2, 0.0f);
  CHECK(Draw("random_uniform([2]) - random_uniform([2])", paths).As<float>() != zeros);
  CHECK(Draw("random_uniform([2], seed=1) - random_uniform([2], seed=2)", paths).As<float>() !=
        zeros);
  CHECK(Draw("random_uniform([2], seed=1) - random_uniform([2], seed=1)", paths).As<float>() ==
        zeros);
  // A value that is used twice is drawn once.
  expr::MapSource map;
  map.stage = "map";
  map.lets = {"r = random_normal([2])"};
  map.outs = {"y = r - r"};
  const auto program = expr::Compile({{"image", {DType::kUint8, {8, 10, 3}}}}, {&map, 1});
  REQUIRE(program.ok());
  CHECK(RunDrawing(**program, paths, 16).As<float>() == zeros);
  // An image and its mask go the same way.
  const auto moved = Draw(
      "int32(random_crop(image, [3, 4], seed=5)[..., :1]) - "
      "int32(random_crop(image, [3, 4], seed=5)[..., :1])",
      paths);
  CHECK(moved.As<int32_t>() == std::vector<int32_t>(4 * 12, 0));
}

TEST_CASE("Bounds as far apart as the dtype holds give finite numbers between them") {
  for (const float value :
       Draw("random_uniform([64], -1.7e38, 1.7e38, seed=3)", Paths(4)).As<float>()) {
    CHECK(value >= -1.7e38F);
    CHECK(value < 1.7e38F);
  }
  for (const double value :
       Draw("random_uniform([64], -3e38, 3e38, \"float64\", seed=3)", Paths(4)).As<double>()) {
    CHECK(value >= -3e38);
    CHECK(value < 3e38);
  }
}

TEST_CASE("Behind batch every row draws for itself") {
  expr::MapSource map;
  map.stage = "map";
  map.batched = true;
  map.outs = {"y = random_uniform(seed=3)"};
  const auto program = expr::Compile({{"image", {DType::kUint8, {8, 10, 3}}}}, {&map, 1});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  CHECK(RunDrawing(**program, Paths(6), 6).rows == Draw("random_uniform(seed=3)", Paths(6)).rows);
}

TEST_CASE("A program says whether it draws") {
  CHECK(CompileDrawing({"y = random_uniform()"}).value()->draws());
  CHECK_FALSE(CompileDrawing({"y = image + 1"}).value()->draws());
}

TEST_CASE("Seeds are written into calls that have none") {
  int64_t next = 100;
  const auto seeded = [&next](std::string_view text) {
    next = 100;
    return expr::WithSeeds(text, [&next] { return ++next; });
  };
  CHECK(seeded("x = random_uniform()") == "x = random_uniform(seed=101)");
  CHECK(seeded("x = random_uniform([2], )") == "x = random_uniform([2], seed=101)");
  CHECK(seeded("x = random_uniform([2],seed=5)") == "x = random_uniform([2],seed=5)");
  CHECK(seeded("x = random_uniform([2], 0, 1, \"float32\", 9)") ==
        "x = random_uniform([2], 0, 1, \"float32\", 9)");
  CHECK(seeded("x = random_crop(random_flip_left_right(image), [2, 2]) + random_uniform( )") ==
        "x = random_crop(random_flip_left_right(image, seed=101), [2, 2], seed=102) + "
        "random_uniform( seed=103)");
  CHECK(seeded("random_uniform() < 0.5") == "random_uniform(seed=101) < 0.5");
  CHECK(seeded("x = uniform(random_uniform) # random_uniform()") ==
        "x = uniform(random_uniform) # random_uniform()");
  CHECK(seeded("x = random_uniform(") == "x = random_uniform(");
  CHECK(seeded("[null,{\"a\":null}]") == "[null,{\"a\":null}]");
  CHECK(seeded("") == "");
  CHECK(seeded("x = f(random_uniform(\n[3] # three,\n))") ==
        "x = f(random_uniform(\n[3] # three,\n, seed=101))");
}

TEST_CASE("Arguments that cannot be are refused") {
  const struct {
    std::string call;
    std::string message;
  } kCases[] = {
      {"random_uniform(seed=0.5)", "seed: expected an integer constant"},
      {"random_uniform([2], seed=[1])", "seed: expected an integer constant"},
      {"random_uniform([0])", "shape: expected positive sizes"},
      {"random_uniform([1000000, 1000000])", "shape: expected positive sizes of at most"},
      {"random_uniform(image)", "shape: expected a list"},
      {"random_uniform(float32(shape(image)))", "shape: expected a list of constant integers"},
      {"random_uniform([2], 0, shape(image), \"int32\")", "maxval: expected an integer constant"},
      {"random_uniform([2], 0, shape(image)[0] / 2, \"int32\")",
       "maxval: expected an integer constant"},
      {"random_uniform([2], shape(image))", "minval: expected a finite number"},
      {"random_uniform(dtype=\"int32\")", "maxval: expected a constant, since"},
      {"random_uniform(minval=0, maxval=0, dtype=\"int32\")", "maxval: expected a constant above"},
      {"random_uniform(minval=2)", "maxval: expected a constant above"},
      {"random_uniform(minval=-3e38, maxval=3e38)",
       "maxval: expected a constant whose distance from minval float32 holds, found -3e+38 and"},
      {"random_uniform(minval=1e39, maxval=2e39)", "distance from minval float32 holds"},
      {"random_uniform([2], -1e308, 1e308, \"float64\")", "distance from minval float64 holds"},
      {"random_uniform(dtype=\"uint8\")", "dtype: expected \"float32\""},
      {"random_uniform(maxval=3000000000, dtype=\"int32\")",
       "maxval: expected an integer constant"},
      {"random_normal(dtype=\"int32\")", "dtype: expected \"float32\""},
      {"random_flip_left_right(1)", "image: expected numbers of shape"},
      {"random_crop(image, [9, 2])", "image smaller than the crop"},
      {"random_crop(image, [2, 2, 1])", "size: expected all channels"},
      {"random_crop(image, [2])", "size: expected [height, width]"},
      {"random_resized_crop(image, [0, 2])", "size: expected a list of two positive"},
      {"random_resized_crop(image, [2, 2], scale=[0, 1])", "scale: expected [low, high]"},
      {"random_resized_crop(image, [2, 2], ratio=[2, 1])", "ratio: expected [low, high]"},
      {"random_resized_crop(image, [2, 2], method=\"best\")", "method"},
      {"random_resized_crop(image, [2, 2], like=\"gimp\")", "like: expected"},
      {"random_brightness(image, -1)", "max_delta: expected a constant of at least 0"},
      {"random_hue(image, 0.6)", "max_delta: expected a constant of 0 to 0.5"},
      {"random_contrast(image, 2, 1)", "upper: expected a constant above lower"},
      {"random_saturation(image, -1, 1)", "lower: expected a constant of at least 0"},
      {"random_erasing(image, 2)", "probability: expected a constant of 0 to 1"},
      {"random_erasing(image, value=300)", "value: expected a value of uint8"},
      {"random_erasing(image, value=0.5)", "value: expected a value of uint8"},
      {"random_cutout(image, [3, 2])", "mask_size: expected even sizes"},
      {"random_rotation(image, [50, 40])", "degrees: expected [low, high]"},
      {"random_rotation(int32(image), [0, 1])", "image: expected uint8, float32 of shape"},
      {"random_rotation(image, [0, 1], \"cubic\")", "method: expected \"nearest\""},
      {"random_rotation(image, [0, 1], fill=256)", "fill: expected a value of uint8"},
      {"random_affine(image, [0, 1], [0.1, 1.1])", "translate: expected [horizontal, vertical]"},
      {"random_affine(image, [0, 1], [0.1])", "translate: expected a list of 2 finite numbers"},
      {"random_affine(image, [0, 1], scale=[0, 1])", "scale: expected [low, high]"},
      {"random_affine(image, [0, 1], shear=[0, 90])", "shear: expected [low, high]"},
      {"random_gaussian_blur(image, 4)", "kernel_size: expected an odd constant"},
      {"random_gaussian_blur(image, 17)", "image too small for a blur of 17 pixels: (8, 10, 3)"},
      {"random_gaussian_blur(image, 3, [0, 1])", "sigma: expected [low, high]"},
      {"random_gaussian_blur(image, 3, probability=-1)", "probability: expected a constant"},
      {"random_beta(0, 1)", "a: expected a constant of 0.01 to 1000, found 0"},
      {"random_beta(1, 1, dtype=\"int32\")", "dtype: expected \"float32\" or \"float64\""},
      {"color_jitter(image, -0.1)", "brightness: expected a constant of 0 to 999999, or [low"},
      {"color_jitter(image, contrast=[2, 1])", "contrast: expected [low, high], two constants"},
      {"color_jitter(image, saturation=[-1, 1])", "saturation: expected [low, high], two"},
      {"color_jitter(image, saturation=\"x\")", "saturation: expected a finite number"},
      {"color_jitter(image, hue=0.6)", "hue: expected a constant of 0 to 0.5, or [low, high]"},
      {"color_jitter(image, hue=[0, 0.6])", "hue: expected [low, high], two constants of -0.5"},
      {"color_jitter(float32(image))", "image: expected uint8 of shape"},
      {"color_jitter(image[..., :2])", "image: expected one or three channels, found 2"},
      {"rand_augment(image, -1)", "num_ops: expected an integer constant of 0 to 16"},
      {"rand_augment(image, 2, 31)", "magnitude: expected an integer constant of 0 to 30"},
      {"rand_augment(image, num_magnitude_bins=1)", "num_magnitude_bins: expected"},
      {"rand_augment(image[..., :2])", "image: expected one or three channels, found 2"},
      {"rand_augment(float32(image))", "image: expected uint8 of shape"},
      {"trivial_augment_wide(image, fill=\"x\")", "fill: expected a finite number"},
      {"auto_augment(image, \"coco\")", "policy: expected \"imagenet\""},
  };
  for (const auto& test : kCases) {
    CAPTURE(test.call);
    const auto program = CompileDrawing({"y = " + test.call});
    REQUIRE_FALSE(program.ok());
    CHECK_THAT(std::string(program.status().message()), Catch::Contains(test.message));
  }
}

}  // namespace
}  // namespace penstock::testing
