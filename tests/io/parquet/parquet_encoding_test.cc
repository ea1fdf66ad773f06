// The encodings of numbers, each beside a slow one by hand, in memory that ends where they do; and
// blocks of pyarrow's compressors (tests/golden/make_parquet_goldens.py).
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/in_pieces.h"
#include "io/parquet/delta_packed.h"
#include "io/parquet/parquet_codec.h"
#include "io/parquet/rle_hybrid.h"
#include "io/parquet/snappy_block.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/stops_soon.h"
#include "tests/support/wire_bytes.h"

namespace penstock {
namespace {

using testing::GuardedMemory;

std::string Zigzag(int64_t value) {
  return testing::Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

// Numbers of some bits side by side, the lowest first.
std::string Packed(const std::vector<uint64_t>& numbers, uint32_t bits) {
  std::string bytes((numbers.size() * bits + 7) / 8, '\0');
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (uint32_t bit = 0; bit < bits; ++bit) {
      const size_t at = i * bits + bit;
      if ((numbers[i] >> bit & 1) != 0) bytes[at / 8] |= static_cast<char>(1 << at % 8);
    }
  }
  return bytes;
}

class Dice {
 public:
  uint64_t Next() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return state_ >> 16 ^ state_ << 40;
  }

 private:
  uint64_t state_ = 5;
};

uint64_t Mask(uint32_t bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

TEST_CASE("parquet: runs and packed numbers of all widths, read in any steps") {
  Dice dice;
  for (uint32_t bits = 0; bits <= kMaxHybridBits; ++bits) {
    INFO(bits << " bits");
    std::string bytes;
    std::vector<uint32_t> numbers;
    for (int part = 0; part < 12; ++part) {
      if (part % 3 == 1) {
        const size_t count = dice.Next() % 40;
        const auto number = static_cast<uint32_t>(dice.Next() & Mask(bits));
        bytes += testing::Varint(count << 1);
        bytes.append(reinterpret_cast<const char*>(&number), (bits + 7) / 8);
        numbers.insert(numbers.end(), count, number);
        continue;
      }
      const size_t groups = dice.Next() % 9;
      std::vector<uint64_t> packed(groups * 8);
      for (uint64_t& number : packed) number = dice.Next() & Mask(bits);
      bytes += testing::Varint(groups << 1 | 1) + Packed(packed, bits);
      numbers.insert(numbers.end(), packed.begin(), packed.end());
    }
    const GuardedMemory memory(bytes.size());
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    for (const size_t step : {size_t{1}, size_t{7}, size_t{8}, size_t{100}, numbers.size()}) {
      RleHybrid runs({memory.data(), bytes.size()}, bits);
      std::vector<uint32_t> read;
      bool skips = false;
      for (size_t done = 0; done < numbers.size(); skips = !skips) {
        const size_t some = std::min(step, numbers.size() - done);
        std::vector<uint32_t> out(some);
        if (skips && step > 1) {
          REQUIRE(runs.Skip(some));
          std::copy_n(numbers.begin() + static_cast<ptrdiff_t>(done), some, out.begin());
        } else {
          REQUIRE(runs.Read(out.data(), some));
        }
        read.insert(read.end(), out.begin(), out.end());
        done += some;
      }
      CHECK(read == numbers);
      uint32_t more = 0;
      CHECK_FALSE(runs.Read(&more, 1));
    }
    // A cut: what is there is sound.
    for (size_t size = 0; size < bytes.size(); ++size) {
      RleHybrid runs({memory.data() + bytes.size() - size, size}, bits);
      std::vector<uint32_t> out(numbers.size() * 2);
      (void)runs.Read(out.data(), out.size());
    }
  }
}

TEST_CASE("parquet: the example of the format's bit packing") {
  // 0 to 7 in three bits.
  const std::string bytes("\x03\x88\xc6\xfa", 4);
  RleHybrid runs({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 3);
  std::vector<uint32_t> out(8);
  REQUIRE(runs.Read(out.data(), out.size()));
  CHECK(out == std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  // A last group that ends with its numbers.
  const std::string cut("\x03\x88\xc6", 3);
  RleHybrid few({reinterpret_cast<const uint8_t*>(cut.data()), cut.size()}, 3);
  REQUIRE(few.Read(out.data(), 5));
  CHECK_FALSE(few.Read(out.data(), 1));
}

TEST_CASE("parquet: what are no runs is refused") {
  const struct {
    const char* name;
    std::string bytes;
    uint32_t bits;
  } cases[] = {
      {"nothing", "", 4},
      {"a head of six bytes", "\x80\x80\x80\x80\x80\x01", 1},
      {"a head of more than 32 bits", "\xfe\xff\xff\xff\x7f\x01", 1},
      {"a run without its number", "\x08", 9},
      {"a number of more bits", "\x08\x02", 1},
      {"half a head", "\x80", 1},
      {"packed numbers that are not there", "\x03", 4},
  };
  for (const auto& one : cases) {
    INFO(one.name);
    RleHybrid runs({reinterpret_cast<const uint8_t*>(one.bytes.data()), one.bytes.size()},
                   one.bits);
    uint32_t out = 0;
    CHECK_FALSE(runs.Read(&out, 1));
    CHECK_FALSE(runs.Skip(1));
  }
}

// Numbers as DELTA_BINARY_PACKED, in blocks of 128 with four miniblocks.
std::string Deltas(const std::vector<int64_t>& numbers) {
  std::string bytes = testing::Varint(128) + testing::Varint(4) + testing::Varint(numbers.size()) +
                      Zigzag(numbers.empty() ? 0 : numbers[0]);
  for (size_t begin = 1; begin < numbers.size(); begin += 128) {
    const size_t end = std::min(begin + 128, numbers.size());
    int64_t least = INT64_MAX;
    std::vector<uint64_t> differences;
    for (size_t i = begin; i < end; ++i) {
      const auto difference = static_cast<int64_t>(static_cast<uint64_t>(numbers[i]) -
                                                   static_cast<uint64_t>(numbers[i - 1]));
      least = std::min(least, difference);
      differences.push_back(static_cast<uint64_t>(difference));
    }
    for (uint64_t& difference : differences) difference -= static_cast<uint64_t>(least);
    std::string widths, miniblocks;
    for (size_t first = 0; first < 128; first += 32) {
      if (first >= differences.size()) {
        widths += '\x07';  // means nothing
        continue;
      }
      std::vector<uint64_t> mini(32);
      uint64_t all = 0;
      for (size_t i = first; i < std::min(first + 32, differences.size()); ++i)
        all |= mini[i - first] = differences[i];
      uint32_t bits = 0;
      while (bits < 64 && all >> bits != 0) ++bits;
      widths += static_cast<char>(bits);
      miniblocks += Packed(mini, bits);
    }
    bytes += Zigzag(least) + widths + miniblocks;
  }
  return bytes;
}

TEST_CASE("parquet: packed differences of all widths, read in any steps") {
  Dice dice;
  for (uint32_t bits = 0; bits <= 64; ++bits) {
    for (const size_t count : {0, 1, 2, 33, 129, 300}) {
      INFO(bits << " bits, " << count << " numbers");
      std::vector<int64_t> numbers(count);
      for (int64_t& number : numbers) number = static_cast<int64_t>(dice.Next() & Mask(bits));
      const std::string bytes = Deltas(numbers);
      const GuardedMemory memory(bytes.size());
      std::memcpy(memory.data(), bytes.data(), bytes.size());
      for (const size_t step : {1, 31, 64, 1000}) {
        DeltaPacked deltas({memory.data(), bytes.size()});
        REQUIRE(deltas.Begin());
        REQUIRE(deltas.num_values() == count);
        std::vector<int64_t> read(count);
        for (size_t done = 0; done < count; done += step)
          REQUIRE(deltas.Read(read.data() + done, std::min(step, count - done)));
        CHECK(read == numbers);
        CHECK(deltas.end() == memory.data() + bytes.size());
        int64_t more = 0;
        CHECK_FALSE(deltas.Read(&more, 1));
      }
      if (count > 40) {
        DeltaPacked deltas({memory.data(), bytes.size()});
        int64_t number = 0;
        REQUIRE(deltas.Begin());
        REQUIRE(deltas.Skip(37));
        REQUIRE(deltas.Read(&number, 1));
        CHECK(number == numbers[37]);
      }
      for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 64) {
        DeltaPacked deltas({memory.data() + bytes.size() - size, size});
        std::vector<int64_t> read(count);
        if (deltas.Begin() && deltas.num_values() >= count) (void)deltas.Read(read.data(), count);
      }
    }
  }
}

TEST_CASE("parquet: what are no packed differences is refused") {
  const struct {
    const char* name;
    std::string bytes;
  } cases[] = {
      {"nothing", ""},
      {"no miniblocks", testing::Varint(128) + testing::Varint(0) + testing::Varint(1) + Zigzag(1)},
      {"a block that they do not divide",
       testing::Varint(128) + testing::Varint(3) + testing::Varint(1) + Zigzag(1)},
      {"miniblocks of four",
       testing::Varint(16) + testing::Varint(4) + testing::Varint(1) + Zigzag(1)},
      {"a block of no numbers",
       testing::Varint(0) + testing::Varint(4) + testing::Varint(1) + Zigzag(1)},
      {"huge miniblocks",
       testing::Varint(uint64_t{1} << 40) + testing::Varint(4) + testing::Varint(1) + Zigzag(1)},
      {"many miniblocks",
       testing::Varint(8 << 10) + testing::Varint(1 << 10) + testing::Varint(1) + Zigzag(1)},
  };
  for (const auto& one : cases) {
    INFO(one.name);
    DeltaPacked deltas({reinterpret_cast<const uint8_t*>(one.bytes.data()), one.bytes.size()});
    CHECK_FALSE(deltas.Begin());
  }
  // Miniblocks of 65 bits.
  const std::string wide = testing::Varint(32) + testing::Varint(1) + testing::Varint(9) +
                           Zigzag(1) + Zigzag(0) + '\x41' + std::string(300, 'x');
  DeltaPacked deltas({reinterpret_cast<const uint8_t*>(wide.data()), wide.size()});
  REQUIRE(deltas.Begin());
  int64_t out[2];
  CHECK_FALSE(deltas.Read(out, 2));
}

struct Block {
  std::string name, packed, plain;
  ParquetCodec codec = ParquetCodec::kUncompressed;
};

std::string FromBase64(const std::string& text) {
  std::string bytes;
  REQUIRE(absl::Base64Unescape(text, &bytes));
  return bytes;
}

const std::vector<Block>& Blocks() {
  static const auto* const blocks = [] {
    auto* const read = new std::vector<Block>;
    const auto goldens = nlohmann::json::parse(testing::ReadGolden("parquet.json"));
    for (const auto& one : goldens["blocks"]) {
      Block block;
      const std::string codec = one["codec"];
      block.name = codec + ": " + one["name"].get<std::string>();
      block.codec = codec == "snappy" ? ParquetCodec::kSnappy
                    : codec == "gzip" ? ParquetCodec::kGzip
                    : codec == "zstd" ? ParquetCodec::kZstd
                                      : ParquetCodec::kLz4Raw;
      block.packed = FromBase64(one["packed"]);
      for (const auto& piece : one["plain"]) {
        const std::string text = FromBase64(piece[0]);
        for (int i = 0; i < piece[1].get<int>(); ++i) block.plain += text;
      }
      read->push_back(std::move(block));
    }
    REQUIRE(read->size() > 20);
    return read;
  }();
  return *blocks;
}

// Into memory of that size, with the byte behind it that may be written.
absl::StatusOr<std::string> Unpack(ParquetCodec codec, const std::string& packed, size_t bytes) {
  const std::vector<uint8_t> exact(packed.begin(), packed.end());
  absl::Status status = CheckParquetSize(codec, exact, bytes);
  std::vector<uint8_t> plain(status.ok() ? bytes + 1 : 0);
  if (status.ok()) status = UnpackParquetBody(codec, exact, absl::MakeSpan(plain).first(bytes));
  if (!status.ok()) {
    CHECK(absl::IsDataLoss(status));
    return status;
  }
  return std::string(plain.begin(), plain.begin() + static_cast<ptrdiff_t>(bytes));
}

TEST_CASE("parquet: blocks of each codec are what they were made of") {
  for (const Block& block : Blocks()) {
    INFO(block.name);
    const auto plain = Unpack(block.codec, block.packed, block.plain.size());
    INFO(plain.status());
    REQUIRE(plain.ok());
    CHECK(*plain == block.plain);
    CHECK_FALSE(Unpack(block.codec, block.packed, block.plain.size() + 1).ok());
    if (!block.plain.empty())
      CHECK_FALSE(Unpack(block.codec, block.packed, block.plain.size() - 1).ok());
  }
}

TEST_CASE("parquet: blocks that are cut are refused, changed ones never read beyond") {
  Dice dice;
  for (const Block& block : Blocks()) {
    INFO(block.name);
    const size_t size = block.packed.size();
    for (size_t cut = 0; cut < size; cut += 1 + size / 100) {
      // An empty stream of gzip is one of no members.
      if (block.plain.empty()) continue;
      CHECK_FALSE(Unpack(block.codec, block.packed.substr(0, cut), block.plain.size()).ok());
    }
    for (int i = 0; i < 200 && size > 0; ++i) {
      std::string changed = block.packed;
      changed[dice.Next() % size] ^= static_cast<char>(1 << dice.Next() % 8);
      (void)Unpack(block.codec, changed, block.plain.size());
    }
  }
}

TEST_CASE("parquet: a Snappy block by hand, with each kind of element") {
  const std::string noise(70'000, 'n');
  std::string block = testing::Varint(70'000 + 4 + 11 + 64 + 5);
  block += std::string("\xf8\x6f\x11\x01", 4) + noise;  // a literal whose length has three bytes
  block += std::string("\x0c") + "abcd";                // one of four
  block += std::string("\x1d\x04", 2);                  // 11 bytes, 4 back
  block += std::string("\xfe\x0f\x00", 3);              // 64 bytes, 15 back
  block += std::string("\x13\x7f\x11\x01\x00", 5);      // 5 bytes, 70,015 back
  std::string plain = noise + "abcd" + "abcdabcdabc";
  for (int i = 0; i < 64; ++i) plain += plain[plain.size() - 15];
  for (int i = 0; i < 5; ++i) plain += plain[plain.size() - 70'015];
  const GuardedMemory memory(plain.size());
  const std::vector<uint8_t> packed(block.begin(), block.end());
  const absl::Status status = UnpackSnappyBlock(packed, {memory.data(), plain.size()});
  INFO(status);
  REQUIRE(status.ok());
  CHECK(std::memcmp(memory.data(), plain.data(), plain.size()) == 0);
  // What lies in front of the beginning.
  const uint8_t before[] = {5, 0, 'a', 1, 2};
  CHECK(absl::IsDataLoss(UnpackSnappyBlock(before, {memory.data(), 5})));
}

// A block of plain bytes alone, in elements of a piece each.
std::string PlainBlock(ParquetCodec codec, size_t bytes) {
  std::string block;
  if (codec == ParquetCodec::kSnappy) {
    block = testing::Varint(bytes);
    constexpr size_t kElement = 50'000;
    for (size_t done = 0; done < bytes; done += kElement) {
      const size_t length = std::min(kElement, bytes - done) - 1;
      block += '\xf4';
      block += static_cast<char>(length);
      block += static_cast<char>(length >> 8);
      block.append(length + 1, 'x');
    }
    return block;
  }
  block = '\xf0';
  size_t left = bytes - 15;
  for (; left >= 255; left -= 255) block += '\xff';
  block += static_cast<char>(left);
  return block.append(bytes, 'x');
}

TEST_CASE("parquet: a large block looks for a stop all over it") {
  for (const ParquetCodec codec : {ParquetCodec::kSnappy, ParquetCodec::kLz4Raw}) {
    DYNAMIC_SECTION(ParquetCodecName(codec)) {
      constexpr size_t kBytes = size_t{96} << 20;
      const std::string block = PlainBlock(codec, kBytes);
      const absl::Span<const uint8_t> packed(reinterpret_cast<const uint8_t*>(block.data()),
                                             block.size());
      std::vector<uint8_t> plain(kBytes + 1);
      test::CheckStopsSoon([&] {
        const bool is_sound =
            UnpackParquetBody(codec, packed, absl::MakeSpan(plain).first(kBytes)).ok();
        CHECK(is_sound);
      });
    }
  }
}

}  // namespace
}  // namespace penstock
