// mixup and cutmix: what is done to images is what is done to labels.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tests/functions/random/distance.h"
#include "tests/functions/random/drawn_rows.h"

namespace penstock::testing {
namespace {

constexpr size_t kBatch = 8;

// Eight images of 1 x 10 pixels, or four of 2 x 10, from the test's only image; and labels that are
// all different.
const char kImages[] = "float32(reshape(image, [8, 1, 10, 3]))";
const char kLabels[] = "one_hot([0, 1, 2, 3, 4, 5, 6, 7], 8)";

// Of one row of labels: how much is its own, whose the rest is.
struct Share {
  double own = 0;
  size_t partner = 0;
};

std::vector<Share> ReadShares(const std::vector<float>& labels) {
  std::vector<Share> shares;
  for (size_t r = 0; r < kBatch; ++r) {
    Share share{labels[r * kBatch + r], r};
    double sum = 0;
    for (size_t c = 0; c < kBatch; ++c) {
      sum += labels[r * kBatch + c];
      if (c != r && labels[r * kBatch + c] != 0) share.partner = c;
    }
    REQUIRE(sum == Approx(1).margin(1e-6));
    shares.push_back(share);
  }
  std::set<size_t> partners;
  for (const Share& share : shares) partners.insert(share.partner);
  // An order of the batch; who meets himself stays whole.
  REQUIRE(partners.size() == kBatch);
  return shares;
}

TEST_CASE("mixup mixes images as it mixes labels") {
  const TestImage image(8, 10);
  const std::vector<uint64_t> paths = Paths(40);
  const auto images =
      Draw("mixup(" + std::string(kImages) + ", alpha=1, seed=3)", paths, 7).As<float>();
  const auto labels =
      Draw("mixup(" + std::string(kLabels) + ", alpha=1, seed=3)", paths).As<float>();
  std::set<double> shares_seen;
  for (size_t batch = 0; batch < paths.size(); ++batch) {
    const std::vector<float> own(labels.begin() + static_cast<ptrdiff_t>(batch * 64),
                                 labels.begin() + static_cast<ptrdiff_t>(batch * 64 + 64));
    const std::vector<Share> shares = ReadShares(own);
    for (size_t r = 0; r < kBatch; ++r) {
      if (shares[r].partner != r) shares_seen.insert(shares[r].own);
      for (size_t i = 0; i < 30; ++i) {
        const double want = shares[r].own * image.pixels[r * 30 + i] +
                            (1 - shares[r].own) * image.pixels[shares[r].partner * 30 + i];
        REQUIRE(images[batch * 240 + r * 30 + i] == Approx(want).margin(1e-3));
      }
    }
  }
  // One lambda a batch.
  CHECK(shares_seen.size() == paths.size());
}

TEST_CASE("cutmix cuts a rectangle whose area is the partner's share") {
  const TestImage image(8, 10);
  const std::vector<uint64_t> paths = Paths(60);
  const auto images =
      Draw("cutmix(reshape(image, [2, 4, 10, 3]), [4, 10], seed=5)", paths, 3).As<uint8_t>();
  const auto labels = Draw("cutmix(one_hot([0, 1], 2), [4, 10], seed=5)", paths).As<float>();
  int cut = 0;
  for (size_t batch = 0; batch < paths.size(); ++batch) {
    for (size_t r = 0; r < 2; ++r) {
      const double own = labels[batch * 4 + r * 2 + r];
      size_t top = 4, bottom = 0, left = 10, right = 0, changed = 0;
      for (size_t p = 0; p < 40; ++p) {
        const uint8_t* const got = &images[(batch * 80 + r * 40 + p) * 3];
        const uint8_t* const mine = &image.pixels[(r * 40 + p) * 3];
        if (std::equal(got, got + 3, mine)) continue;
        REQUIRE(std::equal(got, got + 3, &image.pixels[((1 - r) * 40 + p) * 3]));
        ++changed;
        top = std::min(top, p / 10), bottom = std::max(bottom, p / 10 + 1);
        left = std::min(left, p % 10), right = std::max(right, p % 10 + 1);
      }
      if (changed > 0) {
        REQUIRE(changed == (bottom - top) * (right - left));
        REQUIRE(own == Approx(1 - static_cast<double>(changed) / 40).margin(1e-6));
        ++cut;
      }
    }
  }
  CHECK(cut > 20);
}

TEST_CASE("Lambda is drawn from a beta distribution") {
  const auto distance = [](const std::string& alpha, double (*cumulative)(double)) {
    const auto program = CompileDrawing({"y = mixup(one_hot([0, 1], 2), " + alpha + ", seed=9)"});
    REQUIRE(program.ok());
    const DrawnRows rows = RunDrawing(**program, Paths(20'000), 64, TestImage(8, 10), true);
    std::vector<double> values;
    for (const DrawLog::Draw& draw : rows.log.draws) values.push_back(draw.value);
    REQUIRE(values.size() == 20'000);
    return Distance(std::move(values), cumulative);
  };
  CHECK(distance("1", [](double x) { return x; }) < kFarthest);
  CHECK(distance("0.5", [](double x) { return std::asin(std::sqrt(x)) * 2 / 3.14159265358979; }) <
        kFarthest);
  CHECK(distance("2", [](double x) { return x * x * (3 - 2 * x); }) < kFarthest);
  CHECK(distance("3", [](double x) { return x * x * x * (10 - 15 * x + 6 * x * x); }) < kFarthest);
}

TEST_CASE("Mixing takes batches, and sizes that fit") {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"mixup(float32(image))", "x: expected a batch: floats of shape (batch, height"},
      {"mixup(reshape(image, [8, 1, 10, 3]))", "x: expected a batch: floats of shape"},
      {"mixup(one_hot([0, 1], 2), 0)", "alpha: expected a constant of 0.01 to 1000"},
      {"cutmix(reshape(image, [8, 1, 10, 3]), [10, 1])", "size: expected the images' own"},
      {"cutmix([0, 1], [1, 1])", "x: expected a batch: numbers of shape"},
      {"cutmix(one_hot([0, 1], 2), 3)", "size: expected a list of two positive constants"},
  };
  for (const Case& test : cases) {
    CAPTURE(test.text);
    const auto program = CompileDrawing({std::string("y = ") + test.text});
    CHECK_THAT(std::string(program.status().message()), Catch::Matchers::Contains(test.message));
  }
}

TEST_CASE("random_jpeg_quality draws a quality and gives what a file of it leaves") {
  const auto program = CompileDrawing({"y = random_jpeg_quality(image, 20, 23, seed=1)"});
  REQUIRE(program.ok());
  const DrawnRows rows = RunDrawing(**program, Paths(60), 16, TestImage(8, 10), true);
  REQUIRE(rows.log.draws.size() == 60);
  std::set<double> seen;
  for (size_t i = 0; i < 60; ++i) {
    const double quality = rows.log.draws[i].value;
    seen.insert(quality);
    const std::string text =
        "adjust_jpeg_quality(image, " + std::to_string(static_cast<int>(quality)) + ")";
    REQUIRE((Draw(text, {1}).rows[0] == rows.rows[i]));
  }
  CHECK(seen == std::set<double>{20, 21, 22});
}

}  // namespace
}  // namespace penstock::testing
