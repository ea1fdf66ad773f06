// Changes the sampling rate of sounds by a filter: a sinc under a window, as
// torchaudio.functional.resample has it (https://ccrma.stanford.edu/~jos/resample/).
//
//   y[m] = sum over k of x[k] h((k / rate_in - m / rate_out) b),   b = rolloff min(rate_in, rate_out)
//   h(t) = b / rate_in sinc(t) window(t / zeros),                  |t| < zeros
//
// In front of and behind the sound there are zeros. Coefficients are computed in float64 and held
// in float32, one set for each of the places that a sample of the result may have between two of
// the sound. Bits are the same everywhere.
//
// Threads:  a ResampleFilter is constant after Make(), ResampleFilters own their synchronisation.
// Owns:     its coefficients, kResampleValuesMax at most. ResampleFilters keep the last eight.
// Cost:     a sample of the result some 2 * zeros / rolloff products, times rate_in / rate_out if
//           that is more than 1. A filter some 0.2 us for each coefficient, once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

inline constexpr int64_t kSampleRateMax = 1 << 20;
inline constexpr int64_t kResampleValuesMax = int64_t{1} << 22;
inline constexpr int64_t kResampleZerosMax = 1 << 10;
inline constexpr double kResampleBetaMax = 100;

struct ResampleOptions {
  int64_t zeros = 6;      // of the sinc on each side: 1 to kResampleZerosMax
  double rolloff = 0.99;  // above 0, up to 1
  // Kaiser's window, with beta from 0 to kResampleBetaMax; else Hann's.
  bool is_kaiser = false;
  double beta = 14.769656459379492;
};

class ResampleFilter {
 public:
  // REQUIRES: the options are in their ranges. An error tells of a rate that is out of [1,
  // kSampleRateMax], or of two that need more than kResampleValuesMax coefficients.
  static absl::StatusOr<std::shared_ptr<const ResampleFilter>> Make(int64_t rate_in,
                                                                    int64_t rate_out,
                                                                    const ResampleOptions& options);

  // How many samples a sound of `samples` has at the other rate: those that begin before its end.
  int64_t SamplesOut(int64_t samples) const;
  // How many of a sound the first `samples` of the result are made of, or less: it may have fewer.
  int64_t SamplesIn(int64_t samples) const;

  // The first `samples` of the result. Both sounds lie sample by sample, each of `channels` values.
  // `in`: samples_in of them, behind which the sound ends, or SamplesIn(samples) or more.
  // REQUIRES: samples <= SamplesOut(samples_in) where the sound ends there.
  void Run(const float* in, int64_t samples_in, int64_t channels, int64_t samples,
           float* out) const;

 private:
  ResampleFilter(int64_t rate_in, int64_t rate_out, const ResampleOptions& options);

  void RunChannel(const float* in, int64_t samples_in, int64_t channels, int64_t samples,
                  std::vector<float>& window, float* out) const;
  // The first of the sound's samples that sample m of the result is made of.
  int64_t First(int64_t m) const { return m / rate_out_ * rate_in_ + first_[m % rate_out_]; }

  const int64_t rate_in_;  // both divided by what divides both
  const int64_t rate_out_;
  int64_t taps_ = 0;  // of each set, a multiple of kLanes
  std::vector<int64_t> first_;
  std::vector<float> taps_of_;
};

// The filters to one rate, from those that sounds have.
class ResampleFilters {
 public:
  ResampleFilters(int64_t rate_out, const ResampleOptions& options)
      : rate_out_(rate_out), options_(options) {}

  absl::StatusOr<std::shared_ptr<const ResampleFilter>> From(int64_t rate_in) const;
  int64_t rate_out() const { return rate_out_; }

 private:
  static constexpr size_t kKept = 8;

  const int64_t rate_out_;
  const ResampleOptions options_;
  mutable std::mutex mutex_;
  // Under mutex_; the one that was asked for last is the last one.
  mutable std::vector<std::pair<int64_t, std::shared_ptr<const ResampleFilter>>> kept_;
};

}  // namespace penstock
