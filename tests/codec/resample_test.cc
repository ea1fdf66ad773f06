// ResampleFilter beside torchaudio and libsoxr (tests/golden/make_resample_goldens.py).
#include "server/codec/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock::testing {
namespace {

using Catch::Matchers::Contains;

std::vector<float> Floats(const nlohmann::json& text) {
  std::string bytes;
  REQUIRE(absl::Base64Unescape(text.get<std::string>(), &bytes));
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

ResampleOptions OptionsOf(const nlohmann::json& json) {
  ResampleOptions options;
  options.zeros = json.value("lowpass_filter_width", options.zeros);
  options.rolloff = json.value("rolloff", options.rolloff);
  options.is_kaiser = json.value("resampling_method", "") == "sinc_interp_kaiser";
  options.beta = json.value("beta", options.beta);
  return options;
}

std::shared_ptr<const ResampleFilter> Filter(int64_t rate_in, int64_t rate_out,
                                             const ResampleOptions& options = {}) {
  auto filter = ResampleFilter::Make(rate_in, rate_out, options);
  REQUIRE(filter.ok());
  return *filter;
}

std::vector<float> Noise(int64_t count) {
  std::vector<float> values;
  uint32_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    values.push_back(static_cast<float>(static_cast<int32_t>(state)) / 2147483648.0F);
  }
  return values;
}

TEST_CASE("resample: the values of torchaudio and libsoxr") {
  std::ifstream file(InTree("tests/golden/resample.json"));
  const auto goldens = nlohmann::json::parse(file);
  REQUIRE(goldens["cases"].size() > 20);
  for (const auto& golden : goldens["cases"]) {
    INFO(golden["name"].get<std::string>());
    const auto filter = Filter(golden["rate_in"], golden["rate_out"], OptionsOf(golden["options"]));
    const int64_t channels = golden["channels"];
    const std::vector<float> sound = Floats(golden["sound"]), want = Floats(golden["want"]);
    const auto samples_in = static_cast<int64_t>(sound.size()) / channels;
    const int64_t samples = filter->SamplesOut(samples_in);
    REQUIRE(samples == golden["samples"].get<int64_t>());
    std::vector<float> found(static_cast<size_t>(samples * channels), 9);
    filter->Run(sound.data(), samples_in, channels, samples, found.data());
    const auto skip = static_cast<size_t>(golden["skip"].get<int64_t>() * channels);
    float peak = 0, farthest = 0;
    for (const float value : want) peak = std::max(peak, std::abs(value));
    for (size_t i = skip; i + skip < want.size(); ++i)
      farthest = std::max(farthest, std::abs(found[i] - want[i]));
    CHECK(farthest <= golden["tolerance"].get<float>() * peak);
  }
}

TEST_CASE("resample: a beginning is made of what it says, with the same bits") {
  const std::vector<float> sound = Noise(20'000);
  for (const auto& [rate_in, rate_out] :
       {std::pair{44100, 16000}, {16000, 44100}, {48000, 1000}, {3, 100}, {5, 5}}) {
    CAPTURE(rate_in, rate_out);
    const auto filter = Filter(rate_in, rate_out);
    const int64_t samples = filter->SamplesOut(10'000);
    std::vector<float> whole(static_cast<size_t>(samples) * 2);
    filter->Run(sound.data(), 10'000, 2, samples, whole.data());
    for (const int64_t count : {int64_t{1}, int64_t{2}, samples / 3, samples - 1}) {
      const int64_t needed = std::min<int64_t>(10'000, filter->SamplesIn(count));
      CAPTURE(count, needed);
      // Whatever follows is not looked at.
      std::vector<float> in(sound.begin(), sound.begin() + 2 * needed);
      std::vector<float> part(static_cast<size_t>(count) * 2);
      filter->Run(in.data(), needed, 2, count, part.data());
      CHECK(std::memcmp(part.data(), whole.data(), part.size() * sizeof(float)) == 0);
    }
    // A channel by itself.
    std::vector<float> left;
    for (size_t i = 0; i < sound.size(); i += 2) left.push_back(sound[i]);
    std::vector<float> alone(static_cast<size_t>(samples));
    filter->Run(left.data(), 10'000, 1, samples, alone.data());
    for (int64_t i = 0; i < samples; ++i) REQUIRE(alone[i] == whole[2 * i]);
  }
}

TEST_CASE("resample: nothing, and less than a sample") {
  const auto filter = Filter(48000, 1000);
  CHECK(filter->SamplesOut(0) == 0);
  CHECK(filter->SamplesIn(0) == 0);
  CHECK(filter->SamplesOut(1) == 1);
  CHECK(filter->SamplesOut(48) == 1);
  CHECK(filter->SamplesOut(49) == 2);
  const float in = 1;
  float out = 9;
  filter->Run(&in, 1, 1, 1, &out);
  CHECK(std::abs(out - 0.99 / 48) < 1e-6);
}

TEST_CASE("resample: rates that are refused") {
  const auto error = [](int64_t rate_in, int64_t rate_out) {
    const auto filter = ResampleFilter::Make(rate_in, rate_out, {});
    return filter.ok() ? std::string("none") : std::string(filter.status().message());
  };
  CHECK_THAT(error(0, 1), Contains("expected a rate of 1 to 1048576 samples a second, found 0"));
  CHECK_THAT(error(44100, kSampleRateMax + 1), Contains("found 1048577"));
  CHECK_THAT(error(1048573, 1048571),
             Contains("from 1048573 to 1048571 samples a second takes more than 4194304"));
  CHECK(error(kSampleRateMax, kSampleRateMax) == "none");
  CHECK(error(192000, 191999) == "none");
  // A filter is as large upwards as downwards.
  CHECK_THAT(error(7, 1048573), Contains("takes more than"));
  CHECK_THAT(error(1048573, 7), Contains("takes more than"));
}

TEST_CASE("resample: the last filters are kept") {
  const ResampleFilters filters(16000, {});
  const auto first = *filters.From(44100);
  for (int64_t i = 0; i < 7; ++i) {
    REQUIRE(filters.From(8000 + i).ok());
    CHECK(*filters.From(44100) == first);
  }
  for (int64_t i = 0; i < 8; ++i) REQUIRE(filters.From(9000 + i).ok());
  CHECK(*filters.From(44100) != first);
  CHECK_FALSE(filters.From(0).ok());
}

}  // namespace
}  // namespace penstock::testing
