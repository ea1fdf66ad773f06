// color_jitter: torchvision's bytes for what is drawn (tests/golden/make_augment_goldens.py), in
// each of the orders.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/functions/random/drawn_rows.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

// Of three channels: those of a grey image are alike.
TestImage ImageOf(const Json& json) {
  TestImage image(json["shape"][0].get<int64_t>(), json["shape"][1].get<int64_t>());
  const std::vector<uint8_t> pixels = test::BytesFromHex(json["bytes"].get<std::string>());
  const size_t repeats = image.pixels.size() / pixels.size();
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = pixels[i / repeats];
  return image;
}

// Every second value of red, every third of green, every fifth of blue.
TestImage Colours() {
  TestImage image(128, 86 * 52);
  image.pixels.clear();
  for (int red = 0; red < 256; red += 2) {
    for (int green = 0; green < 256; green += 3) {
      for (int blue = 0; blue < 256; blue += 5) {
        for (const int value : {red, green, blue})
          image.pixels.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return image;
}

DrawnRows Jitter(const std::string& call, size_t num_rows, const TestImage& image,
                 bool known_sizes = true) {
  const auto program =
      CompileDrawing({"y = " + call}, "map", image, expr::Lanes::kVector, known_sizes);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return RunDrawing(**program, Paths(num_rows), 7, image, true);
}

// One operation by one number.
std::string Call(const std::string& image, const std::string& op, double value) {
  char text[200];
  std::snprintf(text, sizeof(text), "color_jitter(%s, %s=[%.17g, %.17g], seed=1)", image.c_str(),
                op.c_str(), value, value);
  return text;
}

TEST_CASE("Each operation of color_jitter gives torchvision's bytes") {
  const Json document = Json::parse(ReadGolden("image_augment.json"));
  REQUIRE(document["jitters"].size() > 50);
  for (const auto& json : document["jitters"]) {
    const std::string name = json["image"], op = json["op"], hash = json["hash"];
    const double value = json["value"];
    CAPTURE(name, op, value);
    const TestImage image = name == "colours" ? Colours() : ImageOf(document["images"][name]);
    const std::string call = Call(name == "grey" ? "image[..., :1]" : "image", op, value);
    for (const bool known_sizes : {true, false}) {
      const DrawnRows rows = Jitter(call, 1, image, known_sizes);
      CHECK(Fnv1a(rows.rows[0].data(), rows.rows[0].size()) == std::stoull(hash, nullptr, 16));
    }
  }
}

TEST_CASE("What color_jitter draws it does, one behind the other, in every order") {
  const TestImage image(7, 9);
  constexpr size_t kRows = 400;
  const DrawnRows rows =
      Jitter("color_jitter(image, 0.4, [0.5, 3], 0.8, hue=0.2, seed=5)", kRows, image);
  const std::map<std::string, std::pair<double, double>> limits = {{"brightness", {0.6, 1.4}},
                                                                   {"contrast", {0.5, 3}},
                                                                   {"saturation", {0.2, 1.8}},
                                                                   {"hue", {-0.2, 0.2}}};
  REQUIRE(rows.log.draws.size() == 4 * kRows);
  std::set<std::vector<std::string>> orders;
  std::map<std::string, std::pair<double, double>> found;
  for (size_t row = 0; row < kRows; ++row) {
    TestImage jittered = image;
    std::vector<std::string> order;
    for (size_t i = 4 * row; i < 4 * row + 4; ++i) {
      const DrawLog::Draw& draw = rows.log.draws[i];
      order.push_back(draw.name);
      auto& [least, greatest] = found.try_emplace(draw.name, draw.value, draw.value).first->second;
      least = std::min(least, draw.value);
      greatest = std::max(greatest, draw.value);
      jittered.pixels = Jitter(Call("image", draw.name, draw.value), 1, jittered).rows[0];
    }
    orders.insert(order);
    CHECK(rows.rows[row] == jittered.pixels);
  }
  CHECK(orders.size() == 24);
  for (const auto& [name, range] : limits) {
    CAPTURE(name);
    const double width = range.second - range.first;
    CHECK(found[name].first >= range.first);
    CHECK(found[name].first < range.first + width / 20);
    CHECK(found[name].second <= range.second);
    CHECK(found[name].second > range.second - width / 20);
  }
}

TEST_CASE("What is left out of color_jitter changes nothing, and moves no other draw") {
  const TestImage image(5, 6);
  for (const auto& row : Jitter("color_jitter(image, seed=5)", 5, image).rows)
    CHECK(row == image.pixels);
  const DrawnRows alone = Jitter("color_jitter(image, hue=0.3, seed=5)", 20, image);
  const DrawnRows beside = Jitter("color_jitter(image, 0.3, hue=0.3, seed=5)", 20, image);
  const auto hues = [](const DrawnRows& rows) {
    std::vector<double> values;
    for (const DrawLog::Draw& draw : rows.log.draws)
      if (draw.name == "hue") values.push_back(draw.value);
    return values;
  };
  CHECK(hues(alone).size() == 20);
  CHECK(hues(alone) == hues(beside));
}

}  // namespace
}  // namespace penstock::testing
