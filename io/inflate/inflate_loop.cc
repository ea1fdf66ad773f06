#include "io/inflate/inflate_loop.h"

#include <cstring>

#include "io/inflate/deflate_format.h"

#if defined(__x86_64__)
#include <tmmintrin.h>
#endif

namespace penstock {
namespace {

constexpr uint32_t kCopyBytes = InflateTable::kCopyBytes;

uint64_t LowBits(uint64_t value, uint64_t count) {
  return value & ((uint64_t{1} << (count & 63)) - 1);
}

template <size_t kBytes>
[[gnu::always_inline]] inline void Copy(uint8_t* to, const uint8_t* from) {
  typedef uint8_t Vector [[gnu::vector_size(kBytes), gnu::aligned(1), gnu::may_alias]];
  *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Vector*>(from);
}

#if defined(__x86_64__)

// By the distance: 16 bytes of a pattern that long, and how many of them are whole patterns.
struct Patterns {
  alignas(16) uint8_t places[16][16];
  uint8_t whole_bytes[16];
};

constexpr Patterns kPatterns = [] {
  Patterns patterns{};
  for (int distance = 1; distance < 16; ++distance) {
    patterns.whole_bytes[distance] = static_cast<uint8_t>(16 - 16 % distance);
    for (int i = 0; i < 16; ++i) patterns.places[distance][i] = static_cast<uint8_t>(i % distance);
  }
  return patterns;
}();

// Up to 16 bytes too many.
[[gnu::always_inline]] inline void Repeat(uint8_t* out, uint32_t distance, uint32_t length) {
  const __m128i before = _mm_loadu_si128(reinterpret_cast<const __m128i*>(out - distance));
  const __m128i pattern = _mm_shuffle_epi8(
      before, _mm_load_si128(reinterpret_cast<const __m128i*>(kPatterns.places[distance])));
  const size_t whole_bytes = kPatterns.whole_bytes[distance];
  for (const uint8_t* const end = out + length; out < end; out += whole_bytes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), pattern);
}

#else

void Repeat(uint8_t* out, uint32_t distance, uint32_t length) {
  for (uint32_t i = 0; i < length; ++i) out[i] = *(out + i - distance);
}

#endif

// A match that may overlap itself, or be longer than one copy. Up to kCopyBytes too many.
[[gnu::always_inline]] inline void CopyMatch(uint8_t* out, uint32_t distance, uint32_t length) {
  const uint8_t* const end = out + length;
  if (distance >= kCopyBytes) {
    for (; out < end; out += kCopyBytes) Copy<kCopyBytes>(out, out - distance);
  } else if (distance >= 16) {
    for (; out < end; out += 16) Copy<16>(out, out - distance);
  } else {
    Repeat(out, distance, length);
  }
}

// The bits at hand and where more come from. (The way of keeping them is Fabian Giesen's, "Reading
// bits in far too many ways", part 2.) After Refill() at least 56 of the 64 bits are counted, and
// the others are right, too. Two entries take at most 48, the index of the third one 11 more; what
// no entry tells takes at most 48 behind a Refill() of its own.
struct BitReader {
  const uint8_t* in;
  uint64_t bits;
  uint64_t num_bits;  // in its six low bits; those above are anything

  [[gnu::always_inline]] void Refill() {
    uint64_t next;
    std::memcpy(&next, in, sizeof(next));
    bits |= next << (num_bits & 63);
    in += 7 - (num_bits >> 3 & 7);
    num_bits |= 56;
  }
  // `count`: in its six low bits.
  [[gnu::always_inline]] void Use(uint64_t count) {
    bits >>= count & 63;
    num_bits -= count;
  }
  [[gnu::always_inline]] uint64_t Entry(const uint64_t* entries) const {
    return entries[bits & (InflateTable::kNumEntries - 1)];
  }
};

// The distance that `entry` tells, which `bits` begin with.
template <bool kHasBmi>
[[gnu::always_inline]] inline uint32_t Distance(uint64_t entry, uint64_t bits) {
  uint64_t extra;
  if constexpr (kHasBmi) {
    // The intrinsic can only be named where the whole function may use it.
    asm("bextr %2, %1, %0"
        : "=r"(extra)
        : "r"(bits), "r"(entry >> InflateTable::kExtraShift)
        : "cc");
  } else {
    extra = LowBits(bits >> (entry >> InflateTable::kExtraShift & 63),
                    entry >> (InflateTable::kExtraShift + 8));
  }
  return static_cast<uint16_t>(entry >> InflateTable::kDistanceShift) +
         static_cast<uint32_t>(extra);
}

// One of the two, without a branch, which would be guessed wrong at every other literal.
[[gnu::always_inline]] inline const uint8_t* LiteralsOrMatch(uint64_t entry,
                                                             const uint8_t* literals,
                                                             const uint8_t* match) {
  static_assert(InflateTable::kLiteral == uint64_t{1} << 62);
#if defined(__x86_64__)
  asm("bt $62, %1\n\tcmovc %2, %0" : "+r"(match) : "r"(entry), "r"(literals) : "cc");
  return match;
#else
  return (entry & InflateTable::kLiteral) != 0 ? literals : match;
#endif
}

// Where the history is shorter than some distances are, each is compared with it.
template <bool kHasBmi, bool kIsHistoryShort>
[[gnu::always_inline]] inline void Loop(const InflateTable& table, const uint8_t* in_end,
                                        const uint8_t* history, const uint8_t* out_end,
                                        InflateCursor* cursor) {
  const uint64_t* const entries = table.entries();
  uint8_t* out = cursor->out;
  BitReader reader{cursor->in, cursor->bits, cursor->num_bits};
  reader.Refill();
  uint64_t entry = reader.Entry(entries);

  // Writes what `entry` says, which `before` begins with. False where it reaches back too far.
  const auto write = [&](uint64_t entry, uint64_t before) __attribute__((always_inline)) {
    const uint32_t distance = Distance<kHasBmi>(entry, before);
    const uint32_t length = entry >> InflateTable::kLengthShift & InflateTable::kLengthMask;
    if (kIsHistoryShort && distance > static_cast<size_t>(out - history)) return false;
    if (__builtin_expect(distance < length, 0)) {
      CopyMatch(out, distance, length);
    } else {
      const uint64_t* const here = &entries[before & (InflateTable::kNumEntries - 1)];
      Copy<kCopyBytes>(
          out, LiteralsOrMatch(
                   entry, reinterpret_cast<const uint8_t*>(here) + InflateTable::kLiteralsShift / 8,
                   out - distance));
    }
    out += length;
    return true;
  };

  // Goes on to the next entry and writes what this one says. False, and in front of it, where it
  // reaches back too far.
  const auto take = [&]() __attribute__((always_inline)) {
    const uint64_t taken = entry;
    const uint64_t before = reader.bits;
    reader.Use(taken);
    entry = reader.Entry(entries);
    if (write(taken, before)) return true;
    reader.bits = before;
    reader.num_bits += taken & 0xff;
    return false;
  };
  const auto is_whole = [&]() __attribute__((always_inline)) {
    return __builtin_expect(static_cast<int64_t>(entry) >= 0, 1);
  };

  while (reader.in < in_end && out < out_end) {
    if (is_whole() && !take()) break;
    if (is_whole()) {
      if (!take()) break;
      reader.Refill();
      continue;
    }
    // What no entry tells whole. A length whose distance is in the next table:
    reader.Refill();
    if (__builtin_expect((entry & InflateTable::kHasLength) != 0, 1)) {
      BitReader ahead = reader;
      ahead.Use(entry);
      const uint64_t behind = table.DistanceEntry(ahead.bits);
      const uint32_t distance = Distance<kHasBmi>(behind, ahead.bits);
      if (__builtin_expect(static_cast<int64_t>(behind) >= 0, 1)) {
        const auto length = static_cast<uint32_t>(entry >> InflateTable::kLongLengthShift & 0x1ff);
        if (kIsHistoryShort && distance > static_cast<size_t>(out - history)) break;
        ahead.Use(behind);
        reader = ahead;
        reader.Refill();
        entry = reader.Entry(entries);
        CopyMatch(out, distance, length);
        out += length;
        continue;
      }
    }
    BitReader ahead = reader;
    const HuffmanCode::Found literal = table.literals().Find(ahead.bits);
    ahead.Use(literal.bits);
    if (literal.bits != 0 && literal.symbol < deflate::kEndOfBlock) {
      *out++ = static_cast<uint8_t>(literal.symbol);
      reader = ahead;
      reader.Refill();
      entry = reader.Entry(entries);
      continue;
    }
    const uint32_t ordinal = literal.symbol - deflate::kFirstLength;
    if (literal.bits == 0 || ordinal >= deflate::kNumLengths) break;
    const uint32_t length = deflate::kLengths[ordinal].At(ahead.bits);
    ahead.Use(deflate::kLengths[ordinal].extra_bits);
    const HuffmanCode::Found place = table.distances().Find(ahead.bits);
    ahead.Use(place.bits);
    if (place.bits == 0 || place.symbol >= deflate::kNumDistances) break;
    const uint32_t distance = deflate::kDistances[place.symbol].At(ahead.bits);
    ahead.Use(deflate::kDistances[place.symbol].extra_bits);
    if (kIsHistoryShort && distance > static_cast<size_t>(out - history)) break;
    CopyMatch(out, distance, length);
    out += length;
    reader = ahead;
    reader.Refill();
    entry = reader.Entry(entries);
  }

  // Whole bytes that are not used go back.
  const uint64_t num_bits = reader.num_bits & 63;
  cursor->in = reader.in - num_bits / 8;
  cursor->num_bits = static_cast<uint32_t>(num_bits % 8);
  cursor->bits = LowBits(reader.bits, num_bits % 8);
  cursor->out = out;
}

template <bool kHasBmi>
[[gnu::always_inline]] inline void Inflate(const InflateTable& table, const uint8_t* in_end,
                                           const uint8_t* history, const uint8_t* out_end,
                                           InflateCursor* cursor) {
  if (static_cast<size_t>(in_end - cursor->in) <= kInflateInputMargin) return;
  if (static_cast<size_t>(out_end - cursor->out) <= kInflateOutputMargin) return;
  in_end -= kInflateInputMargin;
  out_end -= kInflateOutputMargin;
  if (static_cast<size_t>(cursor->out - history) >= deflate::kDistanceMax) {
    Loop<kHasBmi, false>(table, in_end, history, out_end, cursor);
  } else {
    Loop<kHasBmi, true>(table, in_end, history, out_end, cursor);
  }
}

void InflateByAny(const InflateTable& table, const uint8_t* in_end, const uint8_t* history,
                  const uint8_t* out_end, InflateCursor* cursor) {
  Inflate</*kHasBmi=*/false>(table, in_end, history, out_end, cursor);
}

#if defined(__x86_64__)

[[gnu::target("avx2,bmi,bmi2")]] void InflateByBmi(const InflateTable& table, const uint8_t* in_end,
                                                   const uint8_t* history, const uint8_t* out_end,
                                                   InflateCursor* cursor) {
  Inflate</*kHasBmi=*/true>(table, in_end, history, out_end, cursor);
}

bool HasBmi() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}

constexpr InflateSymbols kVariants[] = {InflateByBmi, InflateByAny};

#else

bool HasBmi() { return false; }

constexpr InflateSymbols kVariants[] = {nullptr, InflateByAny};

#endif

}  // namespace

absl::Span<const InflateSymbols> InflateSymbolsVariants() {
  static const bool has_bmi = HasBmi();
  return absl::MakeConstSpan(kVariants).subspan(has_bmi ? 0 : 1);
}

}  // namespace penstock
