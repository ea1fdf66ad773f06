#include "io/inflate/inflater.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <zlib.h>

#include "io/inflate/compressed_input.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/deflate_blocks.h"
#include "tests/support/memory_file.h"

namespace penstock {
namespace {

struct Outcome {
  std::string plain;
  std::string damage;
  size_t taken = 0;  // bytes of the input
};

// With all memory that may be referred to in front of each piece, and bytes that nobody may read
// around it.
Outcome ByPenstock(const std::string& bytes, InflateSymbols variant, size_t piece_bytes,
                   size_t read_bytes) {
  CompressedInput input(test::InMemory(bytes), piece_bytes, /*may_borrow=*/false);
  Inflater inflater(&input, variant);
  inflater.Start();
  Outcome outcome;
  std::vector<uint8_t> memory;
  while (!inflater.ended()) {
    const size_t history = std::min(outcome.plain.size(), Inflater::kHistoryBytes);
    memory.assign(outcome.plain.end() - history, outcome.plain.end());
    memory.resize(history + read_bytes);
    const size_t count = inflater.Inflate(absl::MakeSpan(memory).subspan(history));
    outcome.plain.append(memory.begin() + history, memory.begin() + history + count);
    REQUIRE(inflater.error().ok());
    if (inflater.damage() != nullptr) {
      outcome.damage = inflater.damage();
      break;
    }
    REQUIRE((count > 0 || inflater.ended()));
  }
  outcome.taken = input.offset() - inflater.unused_bytes();
  return outcome;
}

Outcome ByZlib(const std::string& bytes) {
  z_stream stream = {};
  REQUIRE(inflateInit2(&stream, -15) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  Outcome outcome;
  int result = Z_OK;
  while (result == Z_OK) {
    char out[4096];
    stream.next_out = reinterpret_cast<Bytef*>(out);
    stream.avail_out = sizeof(out);
    result = inflate(&stream, Z_NO_FLUSH);
    outcome.plain.append(out, sizeof(out) - stream.avail_out);
  }
  if (result != Z_STREAM_END) outcome.damage = stream.msg != nullptr ? stream.msg : "cut";
  outcome.taken = stream.total_in;
  inflateEnd(&stream);
  return outcome;
}

// Of damaged bytes, too, what stands in front of the damage comes out.
void CheckAsZlib(const std::string& bytes, size_t piece_bytes, size_t read_bytes) {
  const Outcome expected = ByZlib(bytes);
  for (const InflateSymbols variant : InflateSymbolsVariants()) {
    const Outcome found = ByPenstock(bytes, variant, piece_bytes, read_bytes);
    INFO("zlib: " << expected.damage << "; found: " << found.damage);
    REQUIRE(found.damage.empty() == expected.damage.empty());
    REQUIRE((found.plain == expected.plain));
    if (found.damage.empty()) REQUIRE(found.taken == expected.taken);
  }
}

// Bytes with patterns of all lengths up to 40 that go on for a while, words that come again from
// afar, and noise.
std::string Sample(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string plain;
  while (plain.size() < bytes) {
    switch (random() % 3) {
      case 0: {
        const size_t period = std::min<size_t>(1 + random() % 40, plain.size());
        for (size_t left = period > 0 ? random() % 300 : 0; left > 0; --left)
          plain += plain[plain.size() - period];
        break;
      }
      case 1:
        if (plain.size() > 300)
          plain += plain.substr(random() % (plain.size() - 260), 3 + random() % 30);
        break;
      default:
        for (size_t left = random() % 20; left > 0; --left)
          plain += static_cast<char>(random() % (random() % 2 == 0 ? 4 : 256));
    }
  }
  plain.resize(bytes);
  return plain;
}

TEST_CASE("What zlib has packed comes out, by every variant, however it is cut into pieces") {
  REQUIRE(!InflateSymbolsVariants().empty());
  for (const size_t bytes : {0, 1, 383, 5000, 200000}) {
    const std::string plain = Sample(bytes, static_cast<uint32_t>(bytes));
    for (const int level : {0, 1, 6, 9}) {
      for (const int strategy : {Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
        for (const int window_bits : {9, 15}) {
          const std::string packed = test::Deflate(plain, -window_bits, level, strategy) + "behind";
          for (const size_t piece_bytes : {16, 100, 1 << 20}) {
            for (const size_t read_bytes : {1000, 1 << 20}) {
              INFO(bytes << " bytes, level " << level << ", strategy " << strategy << ", window "
                         << window_bits << ", pieces " << piece_bytes << ", " << read_bytes);
              for (const InflateSymbols variant : InflateSymbolsVariants()) {
                const Outcome found = ByPenstock(packed, variant, piece_bytes, read_bytes);
                REQUIRE(found.damage == "");
                REQUIRE((found.plain == plain));
                REQUIRE(found.taken == packed.size() - 6);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("Blocks of any codes and symbols come out as by zlib") {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    INFO("seed " << seed);
    test::DeflateBlocks blocks(seed);
    const std::string packed = blocks.Make(1 + static_cast<int>(seed % 9), /*sound=*/true);
    REQUIRE(ByZlib(packed).plain.size() == blocks.produced());
    CheckAsZlib(packed + "behind", seed % 3 == 0 ? 16 + seed % 50 : 1 << 16,
                seed % 2 == 0 ? 1 + seed % 500 : 1 << 16);
  }
}

TEST_CASE("fault 8: what zlib refuses is refused, and nothing else") {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    test::DeflateBlocks blocks(seed);
    const std::string sound = blocks.Make(1 + static_cast<int>(seed % 3), /*sound=*/seed % 4 != 0);
    std::mt19937 random(seed);
    for (int i = 0; i < 12; ++i) {
      std::string bad = sound;
      // The codes stand at the beginning, where a bit changes most.
      const size_t span = random() % 2 == 0 ? bad.size() : std::min<size_t>(bad.size(), 100);
      if (i > 0) bad[random() % span] ^= static_cast<char>(1 << random() % 8);
      if (i % 4 == 3) bad.resize(random() % bad.size());
      INFO("seed " << seed << ", change " << i);
      CheckAsZlib(bad, seed % 2 == 0 ? 16 + seed % 50 : 1 << 16,
                  seed % 3 == 0 ? 1 + seed % 500 : 1 << 16);
    }
  }
}

}  // namespace
}  // namespace penstock
