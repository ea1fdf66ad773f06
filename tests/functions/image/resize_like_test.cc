// resize by Pillow's and OpenCV's conventions, against their results
// (tests/golden/make_resize_like_goldens.py).
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "server/expr/program.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

// The greatest distance: of bytes, or of floats (all below 1 here).
double Distance(DType dtype, const std::vector<uint8_t>& got, const std::vector<uint8_t>& want) {
  double worst = 0;
  const size_t size = DTypeSize(dtype);
  for (size_t i = 0; i < want.size(); i += size) {
    if (size == 1) {
      worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - want[i]));
    } else {
      float a, b;
      std::memcpy(&a, &got[i], size);
      std::memcpy(&b, &want[i], size);
      worst = std::max(worst, std::fabs(static_cast<double>(a) - static_cast<double>(b)));
    }
  }
  return worst;
}

TEST_CASE("resize gives what Pillow and OpenCV give") {
  const Json document = Json::parse(ReadGolden("resize_like.json"));
  REQUIRE(document["cases"].size() > 150);
  for (const auto& json : document["cases"]) {
    const Json& source = document["images"][json["image"].get<std::string>()];
    const TensorType type{*DTypeFromName(source["dtype"].get<std::string>()),
                          {source["shape"][0], source["shape"][1], source["shape"][2]}};
    std::vector<uint8_t> image = test::BytesFromHex(source["bytes"].get<std::string>());
    const size_t bytes = image.size();
    image.resize(bytes + 64);
    const std::string like = json["like"].get<std::string>();
    const std::string method = json["method"].get<std::string>();
    const std::vector<int64_t> size = json["size"].get<std::vector<int64_t>>();
    expr::MapSource map;
    map.stage = "map";
    map.outs = {"y = resize(x, [" + std::to_string(size[0]) + ", " + std::to_string(size[1]) +
                "], \"" + method + "\", like=\"" + like + "\")"};
    CAPTURE(map.outs[0], TypeToString(type));
    const Signature signature = {{"x", type}};
    const auto program = expr::Compile(signature, {&map, 1});
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    const std::vector<uint8_t> want = test::BytesFromHex(json["bytes"].get<std::string>());
    const TensorType& result = (*program)->output()[0].type;
    REQUIRE(result == TensorType{type.dtype, {size[0], size[1], type.shape[2]}});
    std::vector<uint8_t> got(want.size() + 64);
    const Column in[] = {{image.data(), bytes, nullptr}};
    uint8_t* const out[] = {got.data()};
    Arena arena;
    REQUIRE((*program)->Run(1, in, out, arena).ok());
    // Pillow's bytes are met exactly; OpenCV weighs bytes in 11 bits.
    const double most = type.dtype == DType::kFloat32 ? 1e-5 : like == "pil" ? 0 : 1;
    CHECK(Distance(type.dtype, got, want) <= most);
  }
}

TEST_CASE("resize: conventions and methods that there are not") {
  const auto message = [](const char* text, DType dtype) {
    const Signature signature = {{"x", {dtype, {4, 5, 3}}}};
    expr::MapSource map;
    map.stage = "map";
    map.outs = {text};
    return std::string(expr::Compile(signature, {&map, 1}).status().message());
  };
  CHECK_THAT(message("y = resize(x, [2, 2], like=\"torch\")", DType::kUint8),
             Catch::Contains("like: expected \"tf\", \"pil\" or \"cv2\""));
  CHECK_THAT(message("y = resize(x, [2, 2], \"gaussian\", like=\"pil\")", DType::kUint8),
             Catch::Contains("method: expected one that \"pil\" has"));
  CHECK_THAT(message("y = resize(x, [2, 2], \"lanczos3\", like=\"cv2\")", DType::kUint8),
             Catch::Contains("method: expected one that \"cv2\" has"));
  CHECK_THAT(message("y = resize(x, [2, 2], like=\"pil\")", DType::kInt16),
             Catch::Contains("image: expected uint8, float32"));
}

}  // namespace
}  // namespace penstock::testing
