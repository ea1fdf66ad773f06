#include "server/codec/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/kernels/sine.h"

namespace penstock {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kLanes = 8;
// Of the sound, gathered at a time: they stay in a core's first cache.
constexpr int64_t kWindowSamples = 4096;
constexpr int64_t kCoefficientsBetweenLooks = 4096;

// How far the coefficients of a sample reach, in samples of the sound.
double Reach(int64_t rate_in, int64_t rate_out, const ResampleOptions& options) {
  return static_cast<double>(options.zeros * rate_in) /
         (options.rolloff * static_cast<double>(std::min(rate_in, rate_out)));
}

// Coefficients that are not 0, whole lanes of them. At most 2^40.
int64_t Taps(double reach) { return (static_cast<int64_t>(2 * reach) + kLanes) / kLanes * kLanes; }

// The modified Bessel function of the first kind and order 0 (Abramowitz and Stegun, 9.6.12).
double BesselI0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

double Window(double t, const ResampleOptions& options) {
  const double place = t / static_cast<double>(options.zeros);
  if (options.is_kaiser)
    return BesselI0(options.beta * std::sqrt(1 - place * place)) / BesselI0(options.beta);
  const double cosine = kernels::CosineByX87(place * kPi / 2);
  return cosine * cosine;
}

double Sinc(double t) { return t == 0 ? 1 : kernels::SineByX87(t * kPi) / (t * kPi); }

float Dot(const float* values, const float* weights, int64_t count) {
  typedef float Lanes
      [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float)), gnu::may_alias]];
  Lanes sums = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    sums +=
        *reinterpret_cast<const Lanes*>(values + i) * *reinterpret_cast<const Lanes*>(weights + i);
  }
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ResampleFilter>> ResampleFilter::Make(
    int64_t rate_in, int64_t rate_out, const ResampleOptions& options) {
  for (const int64_t rate : {rate_in, rate_out}) {
    if (rate < 1 || rate > kSampleRateMax) {
      return absl::DataLossError(absl::StrCat("expected a rate of 1 to ", kSampleRateMax,
                                              " samples a second, found ", rate));
    }
  }
  const int64_t common = std::gcd(rate_in, rate_out);
  const int64_t in = rate_in / common, out = rate_out / common;
  if (in != out && Taps(Reach(in, out, options)) > kResampleValuesMax / out) {
    return absl::DataLossError(absl::StrCat("from ", rate_in, " to ", rate_out,
                                            " samples a second takes more than ",
                                            kResampleValuesMax, " coefficients"));
  }
  return std::shared_ptr<const ResampleFilter>(new ResampleFilter(in, out, options));
}

ResampleFilter::ResampleFilter(int64_t rate_in, int64_t rate_out, const ResampleOptions& options)
    : rate_in_(rate_in), rate_out_(rate_out) {
  if (rate_in == rate_out) return;
  const double reach = Reach(rate_in, rate_out, options);
  taps_ = Taps(reach);
  const double band = options.rolloff * static_cast<double>(std::min(rate_in, rate_out));
  const double scale = band / static_cast<double>(rate_in);
  first_.reserve(static_cast<size_t>(rate_out));
  taps_of_.reserve(static_cast<size_t>(rate_out * taps_));
  for (int64_t place = 0; place < rate_out; ++place) {
    const double middle = static_cast<double>(place * rate_in) / static_cast<double>(rate_out);
    const auto first = static_cast<int64_t>(std::ceil(middle - reach));
    first_.push_back(first);
    for (int64_t i = 0; i < taps_; ++i) {
      if (taps_of_.size() % kCoefficientsBetweenLooks == 0) CheckStop();
      // In samples of the sound, times rate_out: exact.
      const int64_t way = (first + i) * rate_out - place * rate_in;
      const double t = band * static_cast<double>(way) / static_cast<double>(rate_in * rate_out);
      const bool is_near = std::abs(t) < static_cast<double>(options.zeros);
      taps_of_.push_back(is_near ? static_cast<float>(scale * Sinc(t) * Window(t, options)) : 0.0F);
    }
  }
}

int64_t ResampleFilter::SamplesOut(int64_t samples) const {
  return (samples * rate_out_ + rate_in_ - 1) / rate_in_;
}

int64_t ResampleFilter::SamplesIn(int64_t samples) const {
  if (taps_ == 0 || samples == 0) return samples;
  return std::max<int64_t>(0, First(samples - 1) + taps_);
}

void ResampleFilter::Run(const float* in, int64_t samples_in, int64_t channels, int64_t samples,
                         float* out) const {
  if (taps_ == 0) {
    std::copy_n(in, samples * channels, out);
    return;
  }
  std::vector<float> window;
  for (int64_t channel = 0; channel < channels; ++channel)
    RunChannel(in + channel, samples_in, channels, samples, window, out + channel);
}

void ResampleFilter::RunChannel(const float* in, int64_t samples_in, int64_t channels,
                                int64_t samples, std::vector<float>& window, float* out) const {
  const int64_t block =
      std::clamp<int64_t>(kWindowSamples * rate_out_ / rate_in_, 1, kWindowSamples);
  int64_t m = 0, place = 0, base = 0;
  while (m < samples) {
    CheckStop();
    const int64_t end = std::min(samples, m + block);
    const int64_t begin = First(m);
    const int64_t length = First(end - 1) + taps_ - begin;
    window.assign(static_cast<size_t>(length), 0.0F);
    const int64_t from = std::max<int64_t>(begin, 0), to = std::min(begin + length, samples_in);
    for (int64_t i = from; i < to; ++i) window[i - begin] = in[i * channels];
    for (; m < end; ++m) {
      const float* const values = window.data() + (base + first_[place] - begin);
      out[m * channels] = Dot(values, taps_of_.data() + place * taps_, taps_);
      if (++place < rate_out_) continue;
      place = 0;
      base += rate_in_;
    }
  }
}

absl::StatusOr<std::shared_ptr<const ResampleFilter>> ResampleFilters::From(int64_t rate_in) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const auto& one) { return one.first == rate_in; });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().second;
  }
  // Others wait meanwhile: they mostly want the same one.
  auto made = ResampleFilter::Make(rate_in, rate_out_, options_);
  if (!made.ok()) return made.status();
  if (kept_.size() == kKept) kept_.erase(kept_.begin());
  kept_.emplace_back(rate_in, *made);
  return *std::move(made);
}

}  // namespace penstock
