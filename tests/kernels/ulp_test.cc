// exp, log, log1p and tanh against the C library's long double, in units of the last place.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "hwy/targets.h"
#include "server/kernels/arithmetic.h"
#include "tests/support/catch.h"

namespace penstock::kernels {
namespace {

// Distance of `got` from the true value in units of the last place of the result's type.
template <typename T>
double Ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isinf(rounded) || std::isnan(got) || std::isinf(got)) {
    return (std::isnan(want) && std::isnan(got)) || got == rounded ? 0 : 1e9;
  }
  int exponent;
  std::frexp(rounded == 0 ? std::numeric_limits<T>::min() : rounded, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / unit);
}

template <typename T>
std::vector<T> Apply(Transcendental function, const std::vector<T>& in) {
  constexpr bool k64 = sizeof(T) == 8;
  const Lane lane = k64 ? Lane::kFloat64 : Lane::kFloat32;
  const DType dtype = k64 ? DType::kFloat64 : DType::kFloat32;
  const Form form{Span::kShort, k64};
  const size_t step = StepElements(form);
  const auto vector = static_cast<uint8_t>(VectorElements(form));
  Instruction code[4];
  code[0] = {Load(dtype, lane, form), 0, 0, 1, 0, vector, 0};
  code[1].run = FindTranscendental(static_cast<int>(function), lane, form);
  code[2] = {Store(dtype, lane, form), 1, 0, 1, 0, vector, 0};
  code[3].run = Finish();
  std::vector<T> padded = in;
  padded.resize((in.size() + step - 1) / step * step);
  std::vector<T> out(padded.size());
  uint8_t* base[] = {reinterpret_cast<uint8_t*>(padded.data()),
                     reinterpret_cast<uint8_t*>(out.data())};
  LaneState state;
  state.base = base;
  const uint32_t periods[] = {1, 1};
  FindStepLoop()(code, state, step, padded.size() / step, periods, 2);
  out.resize(in.size());
  return out;
}

template <typename T>
std::vector<T> Arguments() {
  std::mt19937_64 random(5);
  std::vector<T> values = {0,
                           T(-0.0),
                           1,
                           -1,
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::denorm_min(),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::lowest(),
                           std::numeric_limits<T>::epsilon(),
                           -std::numeric_limits<T>::epsilon() / 2,
                           T(88.7228),
                           T(-103.9),
                           T(709.78),
                           T(-745.1)};
  std::uniform_real_distribution<double> small(-1, 1);
  for (int i = 0; i < 200'000; ++i) {
    const int exponent =
        static_cast<int>(random() % (sizeof(T) == 8 ? 80 : 60)) - (sizeof(T) == 8 ? 70 : 50);
    values.push_back(static_cast<T>(std::ldexp(small(random), exponent)));
    values.push_back(static_cast<T>(small(random) * 100));
    values.push_back(static_cast<T>(1 + small(random) / 4));
  }
  return values;
}

template <typename T>
void CheckFunction(Transcendental function, long double (*truth)(long double)) {
  const std::vector<T> in = Arguments<T>();
  const std::vector<T> out = Apply(function, in);
  double worst = 0;
  T at = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double ulps = Ulps<T>(out[i], truth(in[i]));
    if (ulps > worst) {
      worst = ulps;
      at = in[i];
    }
  }
  CAPTURE(at, worst);
  CHECK(worst <= 3);
}

long double Exp(long double x) { return std::exp(x); }
long double Log(long double x) { return std::log(x); }
long double Log1p(long double x) { return std::log1p(x); }
long double Tanh(long double x) { return std::tanh(x); }

TEST_CASE("Transcendental functions are within 3 ulp") {
  // All instruction sets give the same bits (tests/expr/program_test.cc), so the best one stands
  // for all.
  SECTION("exp") {
    CheckFunction<float>(Transcendental::kExp, Exp);
    CheckFunction<double>(Transcendental::kExp, Exp);
  }
  SECTION("log") {
    CheckFunction<float>(Transcendental::kLog, Log);
    CheckFunction<double>(Transcendental::kLog, Log);
  }
  SECTION("log1p") {
    CheckFunction<float>(Transcendental::kLog1p, Log1p);
    CheckFunction<double>(Transcendental::kLog1p, Log1p);
  }
  SECTION("tanh") {
    CheckFunction<float>(Transcendental::kTanh, Tanh);
    CheckFunction<double>(Transcendental::kTanh, Tanh);
  }
}

TEST_CASE("A zero keeps its sign") {
  const std::vector<double> in = {0.0, -0.0};
  CHECK(std::signbit(Apply(Transcendental::kTanh, in)[1]));
  CHECK(std::signbit(Apply(Transcendental::kLog1p, in)[1]));
  CHECK_FALSE(std::signbit(Apply(Transcendental::kTanh, in)[0]));
}

}  // namespace
}  // namespace penstock::kernels
