// The arithmetic of the pipeline "chess" by hand: bit planes to board and flags a record, scores by
// tanh a block.
//
// Threads:  functions without state.
// Owns:     nothing.
// Limits:   records need 64 readable bytes behind them; a block is kBlockRows.
// Cost:     bound by the stores: 6 KiB an example in float32, 12 KiB in float64.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::bench {

inline constexpr int kBoardBytes = 192;  // 64 squares of 24 bits
inline constexpr int kPlaneBytes = 194;
inline constexpr int kBoard = 1536;
inline constexpr int kFlags = 10;
inline constexpr int kBlockRows = 32;

// The bit of a square, counted from its first (the most significant of its first byte), and its
// sign, for each of its 24 values.
inline constexpr int kPlane[24] = {0, 4, 8,  12, 16, 20, 1, 5, 9,  13, 17, 21,
                                   2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23};
constexpr double PlaneSign(int channel) { return channel / 6 % 2 == 0 ? 1 : -1; }

// Where the bit lies in the little-endian word that begins with the square's first byte.
constexpr uint64_t PlaneMask(int channel) {
  return uint64_t{1} << (kPlane[channel] / 8 * 8 + 7 - kPlane[channel] % 8);
}
constexpr uint64_t FlagMask(int flag) { return uint64_t{1} << (flag / 8 * 8 + 7 - flag % 8); }
inline constexpr uint8_t kMateBit = 0x20;  // of the last byte

template <typename Word>
inline Word LoadAs(const uint8_t* p) {
  Word word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

struct ScoreConstants {
  double a = 0.9, k = 400, b = 50;
};

template <typename T>
struct alignas(64) PlaneTables {
  // As many bits as T has, one a value; twice over, so that a vector may begin at the middle of a
  // square.
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  Bits mask[48];
  T sign[48];
  Bits flag_mask[16];

  constexpr PlaneTables() : mask(), sign(), flag_mask() {
    for (int i = 0; i < 48; ++i) {
      mask[i] = static_cast<Bits>(PlaneMask(i % 24));
      sign[i] = static_cast<T>(PlaneSign(i % 24));
    }
    for (int i = 0; i < 16; ++i) flag_mask[i] = i < kFlags ? static_cast<Bits>(FlagMask(i)) : 0;
  }
};

template <typename T>
inline constexpr PlaneTables<T> kPlaneTables{};

// tanh(x) = e / (e + 2) with e = expm1(2 |x|), in steps that no vector branches on: 2 |x| = n ln 2
// + r, expm1(r) by its Taylor series, e = 2^n expm1(r) + (2^n - 1). Within 3 ulp of the true value.
inline constexpr double kLog2e = 1.4426950408889634;

#define PENSTOCK_AVX512 \
  __attribute__((target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512vl,avx512dq")))
#define PENSTOCK_AVX2 __attribute__((target("avx2,fma,bmi,bmi2")))

// The floating-point operations of one instruction set and type, so that tanh and the score are
// written once.
struct Avx512Float {
  using T = float;
  using V = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTerms = 8;
  static constexpr double kMax = 9.1, kLn2High = 0.693359375, kLn2Low = -2.12194440e-4;
  PENSTOCK_AVX512 static V Load(const T* p) { return _mm512_loadu_ps(p); }
  PENSTOCK_AVX512 static void Store(T* p, V v) { _mm512_storeu_ps(p, v); }
  PENSTOCK_AVX512 static V Set(double v) { return _mm512_set1_ps(static_cast<float>(v)); }
  PENSTOCK_AVX512 static V Add(V a, V b) { return _mm512_add_ps(a, b); }
  PENSTOCK_AVX512 static V Sub(V a, V b) { return _mm512_sub_ps(a, b); }
  PENSTOCK_AVX512 static V Mul(V a, V b) { return _mm512_mul_ps(a, b); }
  PENSTOCK_AVX512 static V Div(V a, V b) { return _mm512_div_ps(a, b); }
  PENSTOCK_AVX512 static V Fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  PENSTOCK_AVX512 static V Min(V a, V b) { return _mm512_min_ps(a, b); }
  PENSTOCK_AVX512 static V Max(V a, V b) { return _mm512_max_ps(a, b); }
  PENSTOCK_AVX512 static V Abs(V v) { return _mm512_abs_ps(v); }
  PENSTOCK_AVX512 static V Round(V v) { return _mm512_roundscale_ps(v, 0); }
  PENSTOCK_AVX512 static V PowerOf2(V n) { return _mm512_scalef_ps(Set(1), n); }
  PENSTOCK_AVX512 static V CopySign(V value, V sign) {
    return _mm512_or_ps(value, _mm512_and_ps(sign, Set(-0.0)));
  }
};

struct Avx512Double {
  using T = double;
  using V = __m512d;
  static constexpr int kLanes = 8;
  static constexpr int kTerms = 14;
  static constexpr double kMax = 19.1, kLn2High = 0x1.62e42fefap-1, kLn2Low = 0x1.cf79abc9e3b3ap-40;
  PENSTOCK_AVX512 static V Load(const T* p) { return _mm512_loadu_pd(p); }
  PENSTOCK_AVX512 static void Store(T* p, V v) { _mm512_storeu_pd(p, v); }
  PENSTOCK_AVX512 static V Set(double v) { return _mm512_set1_pd(v); }
  PENSTOCK_AVX512 static V Add(V a, V b) { return _mm512_add_pd(a, b); }
  PENSTOCK_AVX512 static V Sub(V a, V b) { return _mm512_sub_pd(a, b); }
  PENSTOCK_AVX512 static V Mul(V a, V b) { return _mm512_mul_pd(a, b); }
  PENSTOCK_AVX512 static V Div(V a, V b) { return _mm512_div_pd(a, b); }
  PENSTOCK_AVX512 static V Fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  PENSTOCK_AVX512 static V Min(V a, V b) { return _mm512_min_pd(a, b); }
  PENSTOCK_AVX512 static V Max(V a, V b) { return _mm512_max_pd(a, b); }
  PENSTOCK_AVX512 static V Abs(V v) { return _mm512_abs_pd(v); }
  PENSTOCK_AVX512 static V Round(V v) { return _mm512_roundscale_pd(v, 0); }
  PENSTOCK_AVX512 static V PowerOf2(V n) { return _mm512_scalef_pd(Set(1), n); }
  PENSTOCK_AVX512 static V CopySign(V value, V sign) {
    return _mm512_or_pd(value, _mm512_and_pd(sign, Set(-0.0)));
  }
};

struct Avx2Float {
  using T = float;
  using V = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTerms = 8;
  static constexpr double kMax = 9.1, kLn2High = 0.693359375, kLn2Low = -2.12194440e-4;
  PENSTOCK_AVX2 static V Load(const T* p) { return _mm256_loadu_ps(p); }
  PENSTOCK_AVX2 static void Store(T* p, V v) { _mm256_storeu_ps(p, v); }
  PENSTOCK_AVX2 static V Set(double v) { return _mm256_set1_ps(static_cast<float>(v)); }
  PENSTOCK_AVX2 static V Add(V a, V b) { return _mm256_add_ps(a, b); }
  PENSTOCK_AVX2 static V Sub(V a, V b) { return _mm256_sub_ps(a, b); }
  PENSTOCK_AVX2 static V Mul(V a, V b) { return _mm256_mul_ps(a, b); }
  PENSTOCK_AVX2 static V Div(V a, V b) { return _mm256_div_ps(a, b); }
  PENSTOCK_AVX2 static V Fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  PENSTOCK_AVX2 static V Min(V a, V b) { return _mm256_min_ps(a, b); }
  PENSTOCK_AVX2 static V Max(V a, V b) { return _mm256_max_ps(a, b); }
  PENSTOCK_AVX2 static V Abs(V v) { return _mm256_andnot_ps(Set(-0.0), v); }
  PENSTOCK_AVX2 static V Round(V v) {
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  PENSTOCK_AVX2 static V PowerOf2(V n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  PENSTOCK_AVX2 static V CopySign(V value, V sign) {
    return _mm256_or_ps(value, _mm256_and_ps(sign, Set(-0.0)));
  }
};

struct Avx2Double {
  using T = double;
  using V = __m256d;
  static constexpr int kLanes = 4;
  static constexpr int kTerms = 14;
  static constexpr double kMax = 19.1, kLn2High = 0x1.62e42fefap-1, kLn2Low = 0x1.cf79abc9e3b3ap-40;
  PENSTOCK_AVX2 static V Load(const T* p) { return _mm256_loadu_pd(p); }
  PENSTOCK_AVX2 static void Store(T* p, V v) { _mm256_storeu_pd(p, v); }
  PENSTOCK_AVX2 static V Set(double v) { return _mm256_set1_pd(v); }
  PENSTOCK_AVX2 static V Add(V a, V b) { return _mm256_add_pd(a, b); }
  PENSTOCK_AVX2 static V Sub(V a, V b) { return _mm256_sub_pd(a, b); }
  PENSTOCK_AVX2 static V Mul(V a, V b) { return _mm256_mul_pd(a, b); }
  PENSTOCK_AVX2 static V Div(V a, V b) { return _mm256_div_pd(a, b); }
  PENSTOCK_AVX2 static V Fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  PENSTOCK_AVX2 static V Min(V a, V b) { return _mm256_min_pd(a, b); }
  PENSTOCK_AVX2 static V Max(V a, V b) { return _mm256_max_pd(a, b); }
  PENSTOCK_AVX2 static V Abs(V v) { return _mm256_andnot_pd(Set(-0.0), v); }
  PENSTOCK_AVX2 static V Round(V v) {
    return _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  PENSTOCK_AVX2 static V PowerOf2(V n) {
    const __m256i exponent =
        _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n)), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(exponent, 52));
  }
  PENSTOCK_AVX2 static V CopySign(V value, V sign) {
    return _mm256_or_pd(value, _mm256_and_pd(sign, Set(-0.0)));
  }
};

// The body of the score for one vector of scores and mate flags (0 or 1); a macro, since g++
// inlines nothing across target attributes of templates.
#define PENSTOCK_SCORE(F, s, m, constants, result)                                          \
  do {                                                                                      \
    using V = typename F::V;                                                                \
    const V x = F::Div(s, F::Set(constants.k));                                             \
    const V z = F::Min(F::Abs(x), F::Set(F::kMax));                                         \
    const V y = F::Add(z, z);                                                               \
    const V n = F::Round(F::Mul(y, F::Set(kLog2e)));                                        \
    const V r = F::Fma(n, F::Set(-F::kLn2Low), F::Fma(n, F::Set(-F::kLn2High), y));         \
    V p = F::Set(1.0 / Factorial(F::kTerms));                                               \
    _Pragma("GCC unroll 16") for (int i = F::kTerms - 1; i > 0; --i) {                      \
      p = F::Fma(p, r, F::Set(1.0 / Factorial(i)));                                         \
    }                                                                                       \
    const V power = F::PowerOf2(n);                                                         \
    const V e = F::Fma(F::Mul(p, r), power, F::Sub(power, F::Set(1)));                      \
    const V t = F::CopySign(F::Div(e, F::Add(e, F::Set(2))), x);                            \
    const V slope = F::Set((1 - constants.a) / (constants.b - 1));                          \
    const V left = F::Max(F::Set(0), F::Sub(F::Set(constants.b), F::Abs(s)));               \
    /* sign(s), which is 0 for 0: every |s| of 1 and more is cut to 1. */                   \
    const V sign = F::CopySign(F::Min(F::Abs(s), F::Set(1)), s);                            \
    const V mate = F::Mul(sign, F::Fma(slope, left, F::Set(constants.a)));                  \
    result = F::Fma(F::Mul(F::Sub(F::Set(1), m), F::Set(constants.a)), t, F::Mul(m, mate)); \
  } while (false)

constexpr double Factorial(int n) { return n < 2 ? 1 : n * Factorial(n - 1); }

PENSTOCK_AVX512 inline void PlanesAvx512(const uint8_t* p, float* board, float* flags) {
  const PlaneTables<float>& tables = kPlaneTables<float>;
  // Two squares are three vectors: the first 16 values of one, its last 8 with the first 8 of the
  // next, the next's last 16.
  const __m512i mask0 = _mm512_load_si512(tables.mask), mask1 = _mm512_load_si512(tables.mask + 16),
                mask2 = _mm512_load_si512(tables.mask + 32);
  const __m512 sign0 = _mm512_load_ps(tables.sign), sign1 = _mm512_load_ps(tables.sign + 16),
               sign2 = _mm512_load_ps(tables.sign + 32);
  for (int pair = 0; pair < 32; ++pair, p += 6, board += 48) {
    const __m512i first = _mm512_set1_epi32(LoadAs<int>(p)),
                  second = _mm512_set1_epi32(LoadAs<int>(p + 3));
    const __m512i middle = _mm512_mask_mov_epi32(first, 0xff00, second);
    _mm512_storeu_ps(board, _mm512_maskz_mov_ps(_mm512_test_epi32_mask(first, mask0), sign0));
    _mm512_storeu_ps(board + 16, _mm512_maskz_mov_ps(_mm512_test_epi32_mask(middle, mask1), sign1));
    _mm512_storeu_ps(board + 32, _mm512_maskz_mov_ps(_mm512_test_epi32_mask(second, mask2), sign2));
  }
  const __mmask16 set = _mm512_test_epi32_mask(_mm512_set1_epi32(LoadAs<int>(p)),
                                               _mm512_load_si512(tables.flag_mask));
  _mm512_mask_storeu_ps(flags, (1 << kFlags) - 1, _mm512_maskz_mov_ps(set, _mm512_set1_ps(1)));
}

PENSTOCK_AVX512 inline void PlanesAvx512(const uint8_t* p, double* board, double* flags) {
  const PlaneTables<double>& tables = kPlaneTables<double>;
  const __m512i mask0 = _mm512_load_si512(tables.mask), mask1 = _mm512_load_si512(tables.mask + 8),
                mask2 = _mm512_load_si512(tables.mask + 16);
  const __m512d sign0 = _mm512_load_pd(tables.sign), sign1 = _mm512_load_pd(tables.sign + 8),
                sign2 = _mm512_load_pd(tables.sign + 16);
  for (int square = 0; square < 64; ++square, p += 3, board += 24) {
    const __m512i bits = _mm512_set1_epi64(LoadAs<int64_t>(p));
    _mm512_storeu_pd(board, _mm512_maskz_mov_pd(_mm512_test_epi64_mask(bits, mask0), sign0));
    _mm512_storeu_pd(board + 8, _mm512_maskz_mov_pd(_mm512_test_epi64_mask(bits, mask1), sign1));
    _mm512_storeu_pd(board + 16, _mm512_maskz_mov_pd(_mm512_test_epi64_mask(bits, mask2), sign2));
  }
  const __m512i bits = _mm512_set1_epi64(LoadAs<int64_t>(p));
  const __m512d one = _mm512_set1_pd(1);
  _mm512_storeu_pd(
      flags,
      _mm512_maskz_mov_pd(_mm512_test_epi64_mask(bits, _mm512_load_si512(tables.flag_mask)), one));
  _mm512_mask_storeu_pd(
      flags + 8, 3,
      _mm512_maskz_mov_pd(_mm512_test_epi64_mask(bits, _mm512_load_si512(tables.flag_mask + 8)),
                          one));
}

PENSTOCK_AVX2 inline void PlanesAvx2(const uint8_t* p, float* board, float* flags) {
  const PlaneTables<float>& tables = kPlaneTables<float>;
  const auto* const masks = reinterpret_cast<const __m256i*>(tables.mask);
  const __m256i mask[3] = {_mm256_load_si256(masks), _mm256_load_si256(masks + 1),
                           _mm256_load_si256(masks + 2)};
  const __m256 sign[3] = {_mm256_load_ps(tables.sign), _mm256_load_ps(tables.sign + 8),
                          _mm256_load_ps(tables.sign + 16)};
  for (int square = 0; square < 64; ++square, p += 3, board += 24) {
    const __m256i bits = _mm256_set1_epi32(LoadAs<int>(p));
    for (int j = 0; j < 3; ++j) {
      const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(bits, mask[j]), mask[j]);
      _mm256_storeu_ps(board + 8 * j, _mm256_and_ps(_mm256_castsi256_ps(set), sign[j]));
    }
  }
  for (int j = 0; j < kFlags; ++j) flags[j] = static_cast<float>(p[j / 8] >> (7 - j % 8) & 1);
}

PENSTOCK_AVX2 inline void PlanesAvx2(const uint8_t* p, double* board, double* flags) {
  const PlaneTables<double>& tables = kPlaneTables<double>;
  for (int square = 0; square < 64; ++square, p += 3, board += 24) {
    const __m256i bits = _mm256_set1_epi64x(LoadAs<int64_t>(p));
    for (int j = 0; j < 24; j += 4) {
      const __m256i mask = _mm256_load_si256(reinterpret_cast<const __m256i*>(tables.mask + j));
      const __m256i set = _mm256_cmpeq_epi64(_mm256_and_si256(bits, mask), mask);
      _mm256_storeu_pd(board + j,
                       _mm256_and_pd(_mm256_castsi256_pd(set), _mm256_load_pd(tables.sign + j)));
    }
  }
  for (int j = 0; j < kFlags; ++j) flags[j] = p[j / 8] >> (7 - j % 8) & 1;
}

// The scores of a block, from s and the mate flags (0 or 1).
#define PENSTOCK_DEFINE_SCORES(name, attributes, Isa)                                            \
  attributes inline void name(const Isa::T* s, const Isa::T* m, const ScoreConstants& constants, \
                              Isa::T* out) {                                                     \
    for (int i = 0; i < kBlockRows; i += Isa::kLanes) {                                          \
      const Isa::V sv = Isa::Load(s + i), mv = Isa::Load(m + i);                                 \
      Isa::V result;                                                                             \
      PENSTOCK_SCORE(Isa, sv, mv, constants, result);                                            \
      Isa::Store(out + i, result);                                                               \
    }                                                                                            \
  }

PENSTOCK_DEFINE_SCORES(ScoresAvx512, PENSTOCK_AVX512, Avx512Float)
PENSTOCK_DEFINE_SCORES(ScoresAvx512, PENSTOCK_AVX512, Avx512Double)
PENSTOCK_DEFINE_SCORES(ScoresAvx2, PENSTOCK_AVX2, Avx2Float)
PENSTOCK_DEFINE_SCORES(ScoresAvx2, PENSTOCK_AVX2, Avx2Double)

}  // namespace penstock::bench
