#include "io/file/crc32c.h"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>
#endif

namespace penstock {
namespace {

// Any length, by ISA-L, whose start-up costs more than a short record's whole checksum.
uint32_t LongCrc32c(uint32_t before, const uint8_t* data, size_t size) {
  // ISA-L takes an int: longer data goes in pieces, each continuing the last.
  constexpr size_t kPiece = size_t{1} << 30;
  uint32_t crc = ~before;
  while (size > kPiece) {
    crc = crc32_iscsi(const_cast<uint8_t*>(data), kPiece, crc);
    data += kPiece;
    size -= kPiece;
  }
  return ~crc32_iscsi(const_cast<uint8_t*>(data), static_cast<int>(size), crc);
}

#if defined(__x86_64__)

// Short data is taken as the last bytes of a block of 256 whose first bytes are zero, which change
// no checksum that begins with zero, and folded into 16 bytes by carry-less multiplication (Gopal
// and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel
// 2009).
constexpr size_t kBlockBytes = 256;

// x^exponent modulo the Castagnoli polynomial, bits reflected.
constexpr uint32_t CastagnoliPower(int exponent) {
  uint32_t value = 0x80000000u;
  for (int i = 0; i < exponent; ++i) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
  return value;
}

// The factor that moves 64 bits by `bits` towards the end.
template <int bits>
constexpr int64_t kFoldFactor = static_cast<int64_t>(uint64_t{CastagnoliPower(bits - 1)} << 32);

// What a checksum's first value, all ones, has become behind n zero bytes.
constexpr std::array<uint32_t, kBlockBytes + 1> kOnesBehindZeros = [] {
  std::array<uint32_t, kBlockBytes + 1> table{};
  uint32_t crc = ~uint32_t{0};
  for (uint32_t& entry : table) {
    entry = crc;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return table;
}();

#define PENSTOCK_FOLDING \
  __attribute__((target("sse4.2,pclmul,avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq")))

// Moves each 16 bytes by `bits` towards the end.
template <int bits>
PENSTOCK_FOLDING inline __m512i Fold(__m512i value) {
  const __m512i factors =
      _mm512_broadcast_i32x4(_mm_set_epi64x(kFoldFactor<bits>, kFoldFactor<bits + 64>));
  return _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00),
                          _mm512_clmulepi64_epi128(value, factors, 0x11));
}

// The 64 bytes that end `behind` bytes before `end`; zero where the data does not reach.
PENSTOCK_FOLDING inline __m512i LoadEnd(const uint8_t* end, size_t size, size_t behind) {
  const size_t there = size <= behind ? 0 : size - behind;
  const __mmask64 mask = there >= 64 ? ~uint64_t{0} : there == 0 ? 0 : ~uint64_t{0} << (64 - there);
  // May lie before the data: a number, as no pointer may point there.
  const auto begin = reinterpret_cast<uintptr_t>(end) - behind - 64;
  return _mm512_maskz_loadu_epi8(mask, reinterpret_cast<const void*>(begin));
}

// REQUIRES: size <= kBlockBytes.
PENSTOCK_FOLDING uint32_t ShortCrc32c(const uint8_t* data, size_t size) {
  const uint8_t* const end = data + size;
  const __m512i sum = _mm512_ternarylogic_epi64(
      Fold<3 * 512>(LoadEnd(end, size, 192)), Fold<2 * 512>(LoadEnd(end, size, 128)),
      _mm512_xor_si512(Fold<512>(LoadEnd(end, size, 64)), LoadEnd(end, size, 0)), 0x96);
  // Each of the first three lanes has its own way to the last, which stays.
  const __m512i factors =
      _mm512_set_epi64(0, 0, kFoldFactor<128>, kFoldFactor<192>, kFoldFactor<256>, kFoldFactor<320>,
                       kFoldFactor<384>, kFoldFactor<448>);
  const __m512i lanes = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, factors, 0x00),
                                                  _mm512_clmulepi64_epi128(sum, factors, 0x11),
                                                  _mm512_maskz_mov_epi64(0xc0, sum), 0x96);
  const __m256i halves =
      _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  const __m128i last =
      _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  const uint64_t crc =
      _mm_crc32_u64(_mm_crc32_u64(0, _mm_cvtsi128_si64(last)), _mm_extract_epi64(last, 1));
  return ~(static_cast<uint32_t>(crc) ^ kOnesBehindZeros[size]);
}

const bool kHasFolding = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("vpclmulqdq");

// Where vectors of that size are missing: three streams of words side by side, since one crc32
// instruction takes three cycles and another one may begin in each; the first two are then moved
// behind the third by a carry-less multiplication (Gopal and others, "Fast CRC Computation for
// iSCSI Polynomial Using CRC32 Instruction", Intel 2011).
#define PENSTOCK_STREAMS __attribute__((target("sse4.2,pclmul")))

constexpr size_t kStreams = 3;
constexpr size_t kWordBytes = 8;
constexpr size_t kMaxWords = kBlockBytes / (kStreams * kWordBytes);

// By words of a stream: the factors that move a checksum over two streams, and over one. The crc32
// of the word that it is added to moves it by the 32 bits that are left, and a product of reflected
// numbers by one.
struct StreamShift {
  int64_t over_two = 0;
  int64_t over_one = 0;
};
constexpr std::array<StreamShift, kMaxWords + 1> kStreamShifts = [] {
  std::array<StreamShift, kMaxWords + 1> table{};
  for (int words = 1; words <= static_cast<int>(kMaxWords); ++words)
    table[words] = {CastagnoliPower(2 * 64 * words - 33), CastagnoliPower(64 * words - 33)};
  return table;
}();

inline uint64_t LoadWord(const uint8_t* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// REQUIRES: size <= kBlockBytes.
PENSTOCK_STREAMS uint32_t StreamedCrc32c(const uint8_t* data, size_t size) {
  const size_t words = size / (kStreams * kWordBytes);
  uint64_t crc = ~uint32_t{0};
  if (words > 0) {
    const size_t stream = words * kWordBytes;
    const size_t last = stream - kWordBytes;
    uint64_t a = crc, b = 0, c = 0;
    for (size_t at = 0; at < last; at += kWordBytes) {
      a = _mm_crc32_u64(a, LoadWord(data + at));
      b = _mm_crc32_u64(b, LoadWord(data + stream + at));
      c = _mm_crc32_u64(c, LoadWord(data + 2 * stream + at));
    }
    a = _mm_crc32_u64(a, LoadWord(data + last));
    b = _mm_crc32_u64(b, LoadWord(data + stream + last));
    const __m128i moved =
        _mm_xor_si128(_mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(a)),
                                           _mm_cvtsi64_si128(kStreamShifts[words].over_two), 0x00),
                      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(b)),
                                           _mm_cvtsi64_si128(kStreamShifts[words].over_one), 0x00));
    crc = _mm_crc32_u64(
        c, LoadWord(data + 2 * stream + last) ^ static_cast<uint64_t>(_mm_cvtsi128_si64(moved)));
    data += kStreams * stream;
    size -= kStreams * stream;
  }
  for (; size >= kWordBytes; data += kWordBytes, size -= kWordBytes)
    crc = _mm_crc32_u64(crc, LoadWord(data));
  for (; size > 0; ++data, --size) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *data);
  return ~static_cast<uint32_t>(crc);
}

const bool kHasStreams = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");

#endif

}  // namespace

uint32_t Crc32c(const uint8_t* data, size_t size) {
#if defined(__x86_64__)
  if (size <= kBlockBytes && kHasFolding) return ShortCrc32c(data, size);
  if (size <= kBlockBytes && kHasStreams) return StreamedCrc32c(data, size);
#endif
  return LongCrc32c(0, data, size);
}

uint32_t ExtendCrc32c(uint32_t crc, const uint8_t* data, size_t size) {
  return LongCrc32c(crc, data, size);
}

}  // namespace penstock
