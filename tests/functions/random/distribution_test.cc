// What is drawn has the distribution that it ought to have, and what is done is what was drawn. The
// seeds are fixed, so that a test's verdict never changes; the limits are those of a probability of
// about 1e-6.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "server/image/augment.h"
#include "tests/functions/random/distance.h"
#include "tests/functions/random/drawn_rows.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

constexpr size_t kRows = 20'000;

// By the numbers of AugmentOp.
constexpr std::string_view kOps[] = {"Identity",     "ShearX",    "ShearY",     "TranslateX",
                                     "TranslateY",   "Rotate",    "Brightness", "Color",
                                     "Contrast",     "Sharpness", "Posterize",  "Solarize",
                                     "AutoContrast", "Equalize",  "Invert"};

double UniformBelow(double x) { return std::clamp(x, 0.0, 1.0); }
double NormalBelow(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

template <typename T>
std::vector<double> Doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// Whether all counts are as if each had the same probability.
void CheckEven(const std::map<double, int>& counts, size_t kinds, size_t total) {
  CHECK(counts.size() == kinds);
  const double expected = static_cast<double>(total) / static_cast<double>(kinds);
  double chi_squared = 0;
  for (const auto& [value, count] : counts)
    chi_squared += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(kinds - 1);
  // By Wilson and Hilferty, at 4.75 deviations.
  const double limit =
      freedom * std::pow(1 - 2 / (9 * freedom) + 4.75 * std::sqrt(2 / (9 * freedom)), 3);
  CHECK(chi_squared < limit);
}

// The draws of one name.
std::vector<double> Drawn(const DrawnRows& rows, const std::string& name) {
  std::vector<double> values;
  for (const DrawLog::Draw& draw : rows.log.draws) {
    if (draw.name == name) values.push_back(draw.value);
  }
  return values;
}

DrawnRows DrawLogged(const std::string& text, size_t n, const TestImage& image = TestImage(8, 10)) {
  const auto program = CompileDrawing({"y = " + text}, "map", image);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return RunDrawing(**program, Paths(n), 64, image, true);
}

TEST_CASE("random_uniform is uniform, over rows and inside of one") {
  CHECK(Distance(Doubles(Draw("random_uniform(seed=1)", Paths(kRows)).As<float>()), UniformBelow) <
        kFarthest);
  CHECK(Distance(Doubles(Draw("random_uniform([20000], seed=2)", Paths(1)).As<float>()),
                 UniformBelow) < kFarthest);
  CHECK(Distance(Draw("random_uniform([2], dtype=\"float64\", seed=3)", Paths(kRows)).As<double>(),
                 UniformBelow) < kFarthest);
  // Rows whose numbers follow one another are as good as any.
  std::vector<uint64_t> neighbours;
  for (uint64_t i = 0; i < kRows; ++i) neighbours.push_back(i);
  CHECK(Distance(Doubles(Draw("random_uniform(seed=1)", neighbours).As<float>()), UniformBelow) <
        kFarthest);
  const auto wide = Draw("random_uniform([3], -2, 3, seed=4)", Paths(kRows)).As<float>();
  CHECK(*std::min_element(wide.begin(), wide.end()) >= -2);
  CHECK(*std::max_element(wide.begin(), wide.end()) < 3);
  CHECK(*std::min_element(wide.begin(), wide.end()) < -1.99f);
  CHECK(*std::max_element(wide.begin(), wide.end()) > 2.99f);
}

TEST_CASE("Integers are uniform from minval on and below maxval") {
  for (const char* const dtype : {"int32", "int64"}) {
    const std::string call =
        std::string("random_uniform(minval=-3, maxval=4, dtype=\"") + dtype + "\", seed=1)";
    const DrawnRows rows = Draw(call, Paths(kRows));
    std::map<double, int> counts;
    if (std::string(dtype) == "int32") {
      for (const int32_t value : rows.As<int32_t>()) ++counts[value];
    } else {
      for (const int64_t value : rows.As<int64_t>()) ++counts[static_cast<double>(value)];
    }
    CheckEven(counts, 7, kRows);
    CHECK(counts.begin()->first == -3);
  }
}

TEST_CASE("random_beta has the distribution of its two numbers") {
  const auto draw = [](const std::string& arguments) {
    return Draw("random_beta(" + arguments + ", dtype=\"float64\")", Paths(kRows)).As<double>();
  };
  CHECK(Distance(Doubles(Draw("random_beta(seed=1)", Paths(kRows)).As<float>()), UniformBelow) <
        kFarthest);
  CHECK(Distance(draw("2, 2, seed=2"), [](double x) { return x * x * (3 - 2 * x); }) < kFarthest);
  CHECK(Distance(draw("0.2, 1, seed=3"), [](double x) { return std::pow(x, 0.2); }) < kFarthest);
  CHECK(Distance(draw("1, 5, seed=4"), [](double x) { return 1 - std::pow(1 - x, 5); }) <
        kFarthest);
  // The arcsine's.
  CHECK(Distance(draw("0.5, 0.5, seed=5"), [](double x) {
          return std::asin(std::sqrt(x)) * 2 / std::acos(-1.0);
        }) < kFarthest);
  const auto several = Draw("random_beta(3, 1, [20000], seed=6)", Paths(1));
  CHECK(several.type.shape == Shape{20000});
  CHECK(Distance(Doubles(several.As<float>()), [](double x) { return x * x * x; }) < kFarthest);
}

TEST_CASE("random_normal is normal") {
  CHECK(Distance(Doubles(Draw("random_normal(seed=1)", Paths(kRows)).As<float>()), NormalBelow) <
        kFarthest);
  const auto values =
      Draw("random_normal([20000], 5, 2, dtype=\"float64\", seed=2)", Paths(1)).As<double>();
  std::vector<double> standard;
  for (const double value : values) standard.push_back((value - 5) / 2);
  CHECK(Distance(standard, NormalBelow) < kFarthest);
  // The tails are there: of 20,000 values 54 lie beyond three deviations.
  const auto far = std::count_if(standard.begin(), standard.end(),
                                 [](double value) { return std::fabs(value) > 3; });
  CHECK(far > 54 - 36);
  CHECK(far < 54 + 36);
}

TEST_CASE("Values of different places, rows and seeds are independent") {
  const auto pairs =
      Draw("random_normal([2], dtype=\"float64\", seed=1) ", Paths(kRows)).As<double>();
  const auto others =
      Draw("random_normal([2], dtype=\"float64\", seed=2)", Paths(kRows)).As<double>();
  double inside = 0, across = 0, seeds = 0;
  for (size_t i = 0; i + 3 < pairs.size(); i += 2) {
    inside += pairs[i] * pairs[i + 1];
    across += pairs[i] * pairs[i + 2];
    seeds += pairs[i] * others[i];
  }
  const double limit = 4.9 * std::sqrt(static_cast<double>(kRows));
  CHECK(std::fabs(inside) < limit);
  CHECK(std::fabs(across) < limit);
  CHECK(std::fabs(seeds) < limit);
}

TEST_CASE("Flips are made half of the time") {
  for (const std::string side : {"left_right", "up_down"}) {
    const TestImage image(2, 3);
    const DrawnRows rows = DrawLogged("random_flip_" + side + "(image, seed=1)", kRows, image);
    const auto flipped = CompileDrawing({"y = flip_" + side + "(image)"}, "map", image);
    const auto turned = RunDrawing(**flipped, Paths(1), 1, image).rows[0];
    std::map<double, int> counts;
    const std::vector<double> drawn = Drawn(rows, "flipped");
    REQUIRE(drawn.size() == kRows);
    for (size_t i = 0; i < kRows; ++i) {
      const bool is_turned = rows.rows[i] == turned;
      CHECK((is_turned || rows.rows[i] == image.pixels));
      CHECK(is_turned == (drawn[i] == 1));
      ++counts[is_turned];
    }
    CheckEven(counts, 2, kRows);
  }
}

TEST_CASE("Crops lie everywhere in the image with the same probability") {
  const TestImage image(4, 5);
  const DrawnRows rows = DrawLogged("random_crop(image, [2, 3], seed=1)", kRows, image);
  std::map<double, int> counts;
  const auto tops = Drawn(rows, "top"), lefts = Drawn(rows, "left");
  for (size_t i = 0; i < kRows; ++i) {
    ++counts[tops[i] * 10 + lefts[i]];
    // Of the first row of pixels.
    const size_t first = static_cast<size_t>(tops[i]) * 15 + static_cast<size_t>(lefts[i]) * 3;
    CHECK(std::equal(rows.rows[i].begin(), rows.rows[i].begin() + 9,
                     image.pixels.begin() + static_cast<int64_t>(first)));
  }
  CheckEven(counts, 9, kRows);
}

TEST_CASE("Parts of an image have the areas and the ratios that were asked for") {
  const TestImage image(400, 500);
  const DrawnRows rows = DrawLogged(
      "random_resized_crop(image, [1, 1], scale=[0.1, 0.4], ratio=[0.5, 2], method=\"nearest\", "
      "seed=1)",
      4'000, image);
  const auto heights = Drawn(rows, "height"), widths = Drawn(rows, "width");
  const auto tops = Drawn(rows, "top"), lefts = Drawn(rows, "left");
  std::vector<double> areas, ratios, places;
  for (size_t i = 0; i < heights.size(); ++i) {
    areas.push_back((heights[i] * widths[i] / (400 * 500) - 0.1) / 0.3);
    ratios.push_back(std::log2(widths[i] / heights[i]) / 2 + 0.5);
    places.push_back((tops[i] + 0.5) / (401 - heights[i]));
    CHECK(tops[i] + heights[i] <= 400);
    CHECK(lefts[i] + widths[i] <= 500);
  }
  // Sides are rounded to pixels, which moves areas and ratios a little.
  CHECK(Distance(areas, UniformBelow) < kFarthest);
  CHECK(Distance(ratios, UniformBelow) < kFarthest);
  CHECK(Distance(places, UniformBelow) < kFarthest);
}

TEST_CASE("An image that no part fits into gives the largest of a ratio that is allowed") {
  const TestImage wide(4, 100);
  const DrawnRows rows =
      DrawLogged("random_resized_crop(image, [2, 2], scale=[0.9, 1.0], seed=1)", 3, wide);
  CHECK(Drawn(rows, "height") == std::vector<double>{4, 4, 4});
  CHECK(Drawn(rows, "width") == std::vector<double>{5, 5, 5});  // 4 * 4 / 3
  CHECK(Drawn(rows, "left") == std::vector<double>{47, 47, 47});
}

// The text with {name} replaced by what was drawn.
std::string Filled(std::string text, const DrawnRows& rows, size_t row) {
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{')) {
    const size_t close = text.find('}', open);
    const double value = Drawn(rows, text.substr(open + 1, close - open - 1))[row];
    char number[40];
    std::snprintf(number, sizeof(number), "%.17g", value);
    text.replace(open, close - open + 1, number);
  }
  return text;
}

TEST_CASE("What is done is what was drawn") {
  const TestImage image(20, 30);
  const struct {
    std::string random;
    std::string fixed;
  } kCases[] = {
      {"random_brightness(image, 0.4, seed=1)", "adjust_brightness(image, {delta})"},
      {"random_hue(image, 0.4, seed=1)", "adjust_hue(image, {delta})"},
      {"random_contrast(image, 0.2, 1.8, seed=1)", "adjust_contrast(image, {factor})"},
      {"random_saturation(image, 0.2, 1.8, seed=1)", "adjust_saturation(image, {factor})"},
      {"random_gamma(image, 0.2, 1.8, seed=1)", "adjust_gamma(image, {gamma})"},
      {"random_resized_crop(image, [9, 7], seed=1)",
       "resize(crop_to_bounding_box(image, {top}, {left}, {height}, {width}), [9, 7])"},
      {"random_resized_crop(image, [9, 7], method=\"bicubic\", antialias=True, seed=1)",
       "resize(crop_to_bounding_box(image, {top}, {left}, {height}, {width}), [9, 7], "
       "\"bicubic\", antialias=True)"},
      {"random_resized_crop(image, [9, 7], seed=1, like=\"pil\")",
       "resize(crop_to_bounding_box(image, {top}, {left}, {height}, {width}), [9, 7], "
       "like=\"pil\")"},
      {"random_rotation(image, [-40, 80], \"bilinear\", 3, seed=1)",
       "rotate(image, {angle}, \"bilinear\", 3)"},
      {"random_gaussian_blur(image, 7, [0.5, 3], seed=1)", "gaussian_blur(image, 7, {sigma})"},
      {"random_crop(image, [9, 7], seed=1)", "crop_to_bounding_box(image, {top}, {left}, 9, 7)"},
  };
  for (const auto& test : kCases) {
    constexpr size_t kTries = 12;
    const DrawnRows rows = DrawLogged(test.random, kTries, image);
    for (size_t i = 0; i < kTries; ++i) {
      const std::string fixed = Filled(test.fixed, rows, i);
      CAPTURE(test.random, fixed);
      const auto program = CompileDrawing({"y = " + fixed}, "map", image);
      REQUIRE(program.ok());
      CHECK(RunDrawing(**program, Paths(1), 1, image).rows[0] == rows.rows[i]);
    }
  }
}

TEST_CASE("What is erased is the rectangle that was drawn") {
  const TestImage image(40, 60);
  for (const std::string call : {"random_erasing(image, 0.6, value=7, seed=1)",
                                 "random_cutout(image, [20, 10], 7, seed=1)"}) {
    constexpr size_t kTries = 400;
    const DrawnRows rows = DrawLogged(call, kTries, image);
    const auto tops = Drawn(rows, "top"), lefts = Drawn(rows, "left");
    const auto heights = Drawn(rows, "height"), widths = Drawn(rows, "width");
    size_t erased = 0;
    for (size_t i = 0; i < kTries; ++i) {
      std::vector<uint8_t> expected = image.pixels;
      for (size_t y = 0; y < 40; ++y) {
        for (size_t x = 0; x < 60; ++x) {
          const auto row = static_cast<double>(y), column = static_cast<double>(x);
          if (row < tops[i] || row >= tops[i] + heights[i] || column < lefts[i] ||
              column >= lefts[i] + widths[i]) {
            continue;
          }
          for (size_t c = 0; c < 3; ++c) expected[(y * 60 + x) * 3 + c] = 7;
        }
      }
      CHECK(rows.rows[i] == expected);
      erased += heights[i] > 0;
    }
    if (call.find("erasing") != std::string::npos) {
      CHECK(erased > 240 - 48);
      CHECK(erased < 240 + 48);
    } else {
      CHECK(erased == kTries);
    }
  }
}

TEST_CASE("What is erased has the area, and the ratio of height to width, that were asked for") {
  const TestImage image(40, 60);
  constexpr size_t kTries = 400;
  const DrawnRows rows = DrawLogged(
      "random_erasing(image, 1.0, scale=[0.1, 0.15], ratio=[2, 4], seed=1)", kTries, image);
  const auto heights = Drawn(rows, "height"), widths = Drawn(rows, "width");
  REQUIRE(heights.size() == kTries);
  REQUIRE(widths.size() == kTries);
  for (size_t i = 0; i < kTries; ++i) {
    CAPTURE(heights[i], widths[i]);
    // Sides are rounded to pixels.
    CHECK(heights[i] + 0.5 >= 2 * (widths[i] - 0.5));
    CHECK(heights[i] - 0.5 <= 4 * (widths[i] + 0.5));
    CHECK((heights[i] + 0.5) * (widths[i] + 0.5) >= 0.1 * 40 * 60);
    CHECK((heights[i] - 0.5) * (widths[i] - 0.5) <= 0.15 * 40 * 60);
  }
}

TEST_CASE("Images are moved by what was drawn, within the limits") {
  const TestImage image(20, 30);
  constexpr size_t kTries = 2'000;
  const DrawnRows rows = DrawLogged(
      "random_affine(image, [-20, 40], [0.1, 0.3], [0.5, 2], [-5, 15], \"bilinear\", 9, seed=1)",
      kTries, image);
  const auto degrees = Drawn(rows, "degrees"), scales = Drawn(rows, "scale");
  const auto shears = Drawn(rows, "shear");
  const auto to_right = Drawn(rows, "translate_x"), down = Drawn(rows, "translate_y");
  // Where they are between two limits.
  const auto between = [](std::vector<double> values, double low, double high) {
    for (double& value : values) value = (value - low) / (high - low);
    return values;
  };
  CHECK(Distance(between(degrees, -20, 40), UniformBelow) < kFarthest);
  CHECK(Distance(between(scales, 0.5, 2), UniformBelow) < kFarthest);
  CHECK(Distance(between(shears, -5, 15), UniformBelow) < kFarthest);
  // Whole pixels: 3 of 30 and 6 of 20 to either side, of which the outermost have half a share.
  std::map<double, int> columns, lines;
  for (size_t i = 0; i < kTries; ++i) ++columns[to_right[i]], ++lines[down[i]];
  CHECK(columns.size() == 7);
  CHECK(lines.size() == 13);
  CHECK(columns.begin()->first == -3);
  CHECK(lines.rbegin()->first == 6);
  for (size_t i = 0; i < 20; ++i) {
    const expr::AffineMatrix m = expr::MovementMatrix(
        {degrees[i], to_right[i], down[i], scales[i], shears[i], 0}, image.height, image.width);
    std::string matrix;
    for (const double number : m) {
      char text[40];
      std::snprintf(text, sizeof(text), "%s%.17g", matrix.empty() ? "" : ", ", number);
      matrix += text;
    }
    CHECK(DrawLogged("affine(image, [" + matrix + "], \"bilinear\", 9)", 1, image).rows[0] ==
          rows.rows[i]);
  }
}

TEST_CASE(
    "All operations of RandAugment and TrivialAugment are equally likely, and both directions") {
  const TestImage image(9, 12);
  for (const std::string call :
       {"rand_augment(image, 3, 30, seed=1)", "trivial_augment_wide(image, seed=1)"}) {
    CAPTURE(call);
    const DrawnRows rows = DrawLogged(call, 6'000, image);
    const auto ops = Drawn(rows, "op"), magnitudes = Drawn(rows, "magnitude");
    CHECK(ops.size() == (call[0] == 'r' ? 18'000U : 6'000U));
    std::map<double, int> counts, directions;
    for (size_t i = 0; i < ops.size(); ++i) {
      ++counts[ops[i]];
      // Shears to sharpness.
      if (ops[i] >= 1 && ops[i] <= 9 && magnitudes[i] != 0) ++directions[magnitudes[i] < 0];
    }
    CheckEven(counts, 14, ops.size());
    CheckEven(directions, 2, static_cast<size_t>(directions[0] + directions[1]));
  }
}

TEST_CASE("Strengths of TrivialAugment are equally likely") {
  const DrawnRows rows = DrawLogged("trivial_augment_wide(image, 5, seed=2)", 30'000);
  const auto ops = Drawn(rows, "op"), magnitudes = Drawn(rows, "magnitude");
  std::map<double, int> solarized;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i] == 11) ++solarized[magnitudes[i]];
  }
  int total = 0;
  for (const auto& [strength, count] : solarized) total += count;
  CheckEven(solarized, 5, static_cast<size_t>(total));
  CHECK(solarized.begin()->first == 0);
  CHECK(solarized.rbegin()->first == 255);
}

TEST_CASE("AutoAugment does what torchvision's policies say, as often") {
  const auto document = nlohmann::json::parse(ReadGolden("image_augment.json"));
  const TestImage image(9, 12);
  constexpr size_t kTries = 20'000;
  REQUIRE(document["policies"].size() == 3);
  for (const auto& [policy, shares] : document["policies"].items()) {
    const DrawnRows rows =
        DrawLogged("auto_augment(image, \"" + policy + "\", seed=3)", kTries, image);
    const auto ops = Drawn(rows, "op"), magnitudes = Drawn(rows, "magnitude");
    std::map<std::pair<double, double>, double> drawn, expected;
    for (size_t i = 0; i < ops.size(); ++i) ++drawn[{ops[i], std::fabs(magnitudes[i])}];
    for (const auto& [name, share] : shares.items()) {
      const size_t space = name.find(' ');
      const auto op = static_cast<expr::AugmentOp>(
          std::find(std::begin(kOps), std::end(kOps), name.substr(0, space)) - std::begin(kOps));
      const double size =
          expr::MagnitudeOf(op, expr::AugmentSpace(), std::stoi(name.substr(space + 1)), 10, 9, 12);
      // Those that are never done are in the table, too.
      if (share > 0) expected[{static_cast<double>(op), size}] += share.get<double>();
    }
    CHECK(drawn.size() == expected.size());
    for (const auto& [step, share] : expected) {
      CAPTURE(policy, step.first, step.second);
      // A pair may do the same twice, whose variance is at most four times that of one draw.
      CHECK(std::fabs(drawn[step] - kTries * share) < 5 * 2 * std::sqrt(kTries * share));
    }
  }
}

}  // namespace
}  // namespace penstock::testing
