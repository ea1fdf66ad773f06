// The steps of RandAugment, TrivialAugment and AutoAugment against torchvision's
// (tests/golden/make_augment_goldens.py): each operation in each strength and direction.
#include "server/image/augment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/arena.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;
using expr::AugmentOp;

const std::map<std::string, AugmentOp> kOps = {{"Identity", AugmentOp::kIdentity},
                                               {"ShearX", AugmentOp::kShearX},
                                               {"ShearY", AugmentOp::kShearY},
                                               {"TranslateX", AugmentOp::kTranslateX},
                                               {"TranslateY", AugmentOp::kTranslateY},
                                               {"Rotate", AugmentOp::kRotate},
                                               {"Brightness", AugmentOp::kBrightness},
                                               {"Color", AugmentOp::kColor},
                                               {"Contrast", AugmentOp::kContrast},
                                               {"Sharpness", AugmentOp::kSharpness},
                                               {"Posterize", AugmentOp::kPosterize},
                                               {"Solarize", AugmentOp::kSolarize},
                                               {"AutoContrast", AugmentOp::kAutoContrast},
                                               {"Equalize", AugmentOp::kEqualize},
                                               {"Invert", AugmentOp::kInvert}};

TEST_CASE("Each step in each strength and direction gives torchvision's bytes") {
  const Json document = Json::parse(ReadGolden("image_augment.json"));
  REQUIRE(document["steps"].size() > 100);
  for (const auto& json : document["steps"]) {
    const Json& stored = document["step_images"][json["image"].get<std::string>()];
    const std::vector<uint8_t> pixels = test::BytesFromHex(stored["bytes"].get<std::string>());
    const expr::ImageView image = {pixels.data(), stored["shape"][0].get<int64_t>(),
                                   stored["shape"][1].get<int64_t>(),
                                   stored["shape"][2].get<int64_t>()};
    const AugmentOp op = kOps.at(json["op"].get<std::string>());
    const expr::AugmentSpace space =
        json["space"] == "trivial" ? expr::kTrivialSpace : expr::AugmentSpace();
    expr::AffineOptions options;
    if (json["method"] == "bilinear") options.interpolation = expr::Interpolation::kBilinear;
    const int64_t bins = json["bins"].get<int64_t>();
    int64_t index = 0;
    for (const auto& hash : json["hashes"]) {
      const int64_t bin = expr::HasSign(op) ? index / 2 : index;
      const bool negative = expr::HasSign(op) && index % 2 == 1;
      const double size = expr::MagnitudeOf(op, space, bin, bins, image.height, image.width);
      CAPTURE(json["op"].get<std::string>(), json["image"].get<std::string>(),
              json["method"].get<std::string>(), bins, bin, negative, size);
      Arena scratch;
      std::vector<uint8_t> out(pixels.size() + 64);
      expr::StartStep({op, negative ? -size : size}, options, image, scratch)(image.height,
                                                                              out.data());
      CHECK(Fnv1a(out.data(), pixels.size()) == std::stoull(hash.get<std::string>(), nullptr, 16));
      // Row by row they are the same.
      std::vector<uint8_t> rows(pixels.size() + 64);
      const expr::NextRows next =
          expr::StartStep({op, negative ? -size : size}, options, image, scratch);
      for (int64_t y = 0; y < image.height; ++y) next(1, rows.data() + y * image.row_bytes());
      CHECK(std::equal(rows.begin(), rows.end() - 64, out.begin()));
      ++index;
    }
    CHECK(index > 0);
  }
}

TEST_CASE("What is done to an image is torchvision's matrix") {
  const Json document = Json::parse(ReadGolden("image_augment.json"));
  REQUIRE(document["movements"].size() > 10);
  for (const auto& json : document["movements"]) {
    const auto n = json["movement"].get<std::vector<double>>();
    const auto want = json["matrix"].get<std::vector<double>>();
    const expr::AffineMatrix got =
        expr::MovementMatrix({n[0], n[1], n[2], n[3], n[4], n[5]}, static_cast<int64_t>(n[6]),
                             static_cast<int64_t>(n[7]));
    for (size_t i = 0; i < got.size(); ++i) {
      CAPTURE(json.dump(), i);
      CHECK(std::fabs(got[i] - want[i]) <= 1e-13 * std::max(1.0, std::fabs(want[i])));
    }
  }
}

}  // namespace
}  // namespace penstock::testing
