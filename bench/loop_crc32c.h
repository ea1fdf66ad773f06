// CRC-32C for the bare loops: as fast as this machine can do it on short records.
//
// Threads:  functions without state.
// Owns:     nothing.
// Limits:   needs SSE4.2 and PCLMUL, which every machine with AVX2 has.
// Cost:     about 12 ns for 230 bytes.
#pragma once

#include <immintrin.h>
#include <isa-l/crc.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::bench {

// x^exponent modulo the Castagnoli polynomial, bits reflected.
constexpr uint32_t CastagnoliPower(int exponent) {
  uint32_t value = 0x80000000;
  for (int i = 0; i < exponent; ++i) value = (value >> 1) ^ (value & 1 ? 0x82f63b78 : 0);
  return value;
}

inline uint64_t LoadWord(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// What 0xffffffff becomes behind so many zero bytes.
constexpr std::array<uint32_t, 257> kStartBehindZeros = [] {
  std::array<uint32_t, 257> table{};
  uint32_t crc = ~uint32_t{0};
  for (uint32_t& entry : table) {
    entry = crc;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return table;
}();

// The factor that moves 64 bits, of which the last is `bits` before the end, to that end.
consteval int64_t FoldFactor(int bits) {
  return static_cast<int64_t>(uint64_t{CastagnoliPower(bits - 1)} << 32);
}

// Moves each 16 bytes, which lie `bits` before the end, to that end.
template <int bits>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq"))) inline __m512i Fold(
    __m512i value) {
  const __m512i factors =
      _mm512_broadcast_i32x4(_mm_set_epi64x(FoldFactor(bits), FoldFactor(bits + 64)));
  return _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00),
                          _mm512_clmulepi64_epi128(value, factors, 0x11));
}

// Without a branch on the size: 256 bytes that end with the record, zero in front of it, are folded
// into 16.
__attribute__((
    target("sse4.2,pclmul,avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq"))) inline uint32_t
Crc32cOfRecordAvx512(const uint8_t* p, size_t size) {
  if (size - 193 > 63) [[unlikely]] {
    return ~crc32_iscsi(const_cast<uint8_t*>(p), static_cast<int>(size), ~uint32_t{0});
  }
  const uint8_t* const start = p + size - 256;
  const __m512i first = _mm512_maskz_loadu_epi8(~uint64_t{0} << (256 - size), start);
  const __m512i sum = _mm512_ternarylogic_epi64(
      Fold<3 * 512>(first), Fold<2 * 512>(_mm512_loadu_si512(start + 64)),
      _mm512_xor_si512(Fold<512>(_mm512_loadu_si512(start + 128)), _mm512_loadu_si512(start + 192)),
      0x96);
  // The same for the four lanes, each by its own distance. The last one stays.
  const __m512i factors = _mm512_set_epi64(0, 0, FoldFactor(128), FoldFactor(192), FoldFactor(256),
                                           FoldFactor(320), FoldFactor(384), FoldFactor(448));
  const __m512i lanes = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, factors, 0x00),
                                                  _mm512_clmulepi64_epi128(sum, factors, 0x11),
                                                  _mm512_maskz_mov_epi64(0xc0, sum), 0x96);
  const __m256i halves =
      _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  const __m128i last =
      _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  const uint64_t crc =
      _mm_crc32_u64(_mm_crc32_u64(0, _mm_cvtsi128_si64(last)), _mm_extract_epi64(last, 1));
  return ~(static_cast<uint32_t>(crc) ^ kStartBehindZeros[size]);
}

// Three streams of kStream bytes side by side, since one crc32 takes three cycles but one can begin
// in each; then the first two are moved behind the third by a carry-less multiplication with x^(8
// n - 33).
__attribute__((target("sse4.2,pclmul"))) inline uint32_t Crc32cOfRecord(const uint8_t* p,
                                                                        size_t size) {
  constexpr int kStream = 72;
  if (size < 3 * kStream || size >= 3 * kStream + 64) {
    return ~crc32_iscsi(const_cast<uint8_t*>(p), static_cast<int>(size), ~uint32_t{0});
  }
  uint64_t a = ~uint32_t{0}, b = 0, c = 0;
  for (int i = 0; i < kStream - 8; i += 8) {
    a = _mm_crc32_u64(a, LoadWord(p + i));
    b = _mm_crc32_u64(b, LoadWord(p + kStream + i));
    c = _mm_crc32_u64(c, LoadWord(p + 2 * kStream + i));
  }
  a = _mm_crc32_u64(a, LoadWord(p + kStream - 8));
  b = _mm_crc32_u64(b, LoadWord(p + 2 * kStream - 8));
  constexpr int64_t kShift = CastagnoliPower(8 * kStream - 33),
                    kShiftTwice = CastagnoliPower(16 * kStream - 33);
  const __m128i shifts = _mm_set_epi64x(kShift, kShiftTwice);
  const __m128i moved_a = _mm_clmulepi64_si128(_mm_cvtsi64_si128(a), shifts, 0x00);
  const __m128i moved_b = _mm_clmulepi64_si128(_mm_cvtsi64_si128(b), shifts, 0x10);
  c = _mm_crc32_u64(
      c, LoadWord(p + 3 * kStream - 8) ^ _mm_cvtsi128_si64(_mm_xor_si128(moved_a, moved_b)));
  p += 3 * kStream;
  size -= 3 * kStream;
  for (; size >= 8; p += 8, size -= 8) c = _mm_crc32_u64(c, LoadWord(p));
  uint32_t crc = static_cast<uint32_t>(c);
  if (size & 4) {
    uint32_t word;
    std::memcpy(&word, p, sizeof(word));
    crc = _mm_crc32_u32(crc, word);
    p += 4;
  }
  if (size & 2) {
    uint16_t word;
    std::memcpy(&word, p, sizeof(word));
    crc = _mm_crc32_u16(crc, word);
    p += 2;
  }
  if (size & 1) crc = _mm_crc32_u8(crc, *p);
  return ~crc;
}

__attribute__((target("sse4.2"))) inline uint32_t Crc32cOfLength(uint64_t length) {
  return ~static_cast<uint32_t>(_mm_crc32_u64(~uint32_t{0}, length));
}

inline uint32_t MaskCrc(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; }

}  // namespace penstock::bench
