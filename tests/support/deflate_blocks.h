// Streams of deflate (RFC 1951) that no compressor would write: blocks of random codes, as long and
// as uneven as the format allows, and random symbols in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace penstock::test {

// Puts bits into bytes, the first one lowest.
class BitWriter {
 public:
  void Put(uint32_t bits, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      if (num_bits_ % 8 == 0) bytes_ += '\0';
      bytes_.back() =
          static_cast<char>(static_cast<uint8_t>(bytes_.back()) | (bits >> i & 1) << num_bits_ % 8);
      ++num_bits_;
    }
  }
  // A code has its first bit highest.
  void PutCode(uint32_t code, uint32_t length) {
    for (uint32_t i = length; i-- > 0;) Put(code >> i & 1, 1);
  }
  void Align() { num_bits_ = 8 * bytes_.size(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t num_bits_ = 0;
};

class DeflateBlocks {
 public:
  explicit DeflateBlocks(uint32_t seed) : random_(seed) {}

  // A stream of `num_blocks` blocks. Where `sound` is false, some of the matches refer to before
  // the beginning, and some codes have more symbols than there are, or none for the end of the
  // block.
  std::string Make(int num_blocks, bool sound) {
    sound_ = sound;
    writer_ = {};
    produced_ = 0;
    for (int i = 0; i < num_blocks; ++i) {
      writer_.Put(i + 1 == num_blocks, 1);
      const uint32_t type = Draw(8);
      if (type == 0) {
        PutStored();
      } else if (type == 1) {
        writer_.Put(1, 2);
        PutSymbols(FixedLiterals(), std::vector<uint8_t>(30, 5));
      } else {
        PutDynamic();
      }
    }
    return writer_.bytes();
  }

  // How many bytes the last one stands for.
  size_t produced() const { return produced_; }

 private:
  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  void PutStored() {
    writer_.Put(0, 2);
    writer_.Align();
    const uint32_t length = Draw(3) == 0 ? 0 : Draw(600);
    writer_.Put(length, 16);
    writer_.Put(length ^ 0xffff, 16);
    for (uint32_t i = 0; i < length; ++i) writer_.Put(Draw(256), 8);
    produced_ += length;
  }

  static std::vector<uint8_t> FixedLiterals() {
    std::vector<uint8_t> lengths(288, 8);
    std::fill(lengths.begin() + 144, lengths.begin() + 256, 9);
    std::fill(lengths.begin() + 256, lengths.begin() + 280, 7);
    return lengths;
  }

  // The lengths of a complete code of that many symbols: a leaf that may still be split becomes
  // two, until there are enough. Leaves that are deep already are preferred now and then, so that
  // all lengths occur.
  std::vector<uint8_t> CodeLengths(size_t num_symbols, uint8_t longest) {
    if (num_symbols == 1) return {1};
    std::vector<uint8_t> leaves = {1, 1};
    const bool is_deep = Draw(2) == 0;
    while (leaves.size() < num_symbols) {
      size_t leaf = Draw(static_cast<uint32_t>(leaves.size()));
      if (is_deep) leaf = std::max<size_t>(leaf, leaves.size() - 1 - Draw(2));
      while (leaves[leaf] == longest) leaf = Draw(static_cast<uint32_t>(leaves.size()));
      ++leaves[leaf];
      leaves.push_back(leaves[leaf]);
    }
    std::shuffle(leaves.begin(), leaves.end(), random_);
    return leaves;
  }

  // Gives `num_used` symbols of `num_symbols` a code; `always` is one of them.
  std::vector<uint8_t> SpreadCode(size_t num_symbols, size_t num_used, size_t always) {
    std::vector<size_t> symbols(num_symbols);
    for (size_t i = 0; i < num_symbols; ++i) symbols[i] = i;
    std::shuffle(symbols.begin(), symbols.end(), random_);
    std::swap(*std::find(symbols.begin(), symbols.end(), always), symbols[0]);
    const std::vector<uint8_t> code = CodeLengths(num_used, 15);
    std::vector<uint8_t> lengths(num_symbols, 0);
    for (size_t i = 0; i < num_used; ++i) lengths[symbols[i]] = code[i];
    return lengths;
  }

  void PutDynamic() {
    const size_t num_literals = 257 + Draw(sound_ ? 30 : 32);
    const size_t num_distances = 1 + Draw(sound_ ? 30 : 32);
    const size_t literals_used = Draw(4) == 0 ? 1 + Draw(3) : 1 + Draw(num_literals);
    const std::vector<uint8_t> literals =
        SpreadCode(num_literals, literals_used, sound_ || Draw(8) > 0 ? 256 : 255);
    std::vector<uint8_t> distances(num_distances, 0);
    if (Draw(8) != 0)
      distances = SpreadCode(num_distances, 1 + Draw(num_distances), Draw(num_distances));

    writer_.Put(2, 2);
    writer_.Put(static_cast<uint32_t>(num_literals - 257), 5);
    writer_.Put(static_cast<uint32_t>(num_distances - 1), 5);
    writer_.Put(19 - 4, 4);
    static constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                         11, 4,  12, 3, 13, 2, 14, 1, 15};
    const std::vector<uint8_t> lengths = CodeLengths(19, 7);
    for (const uint8_t symbol : kOrder) writer_.Put(lengths[symbol], 3);
    std::vector<uint8_t> all = literals;
    all.insert(all.end(), distances.begin(), distances.end());
    const std::vector<uint32_t> codes = Codes(lengths);
    const auto put = [&](size_t symbol) { writer_.PutCode(codes[symbol], lengths[symbol]); };
    for (size_t i = 0; i < all.size();) {
      size_t same = 1;
      while (i + same < all.size() && all[i + same] == all[i]) ++same;
      if (all[i] == 0 && same >= 3 && Draw(4) != 0) {
        same = std::min<size_t>(same, same > 10 ? 138 : 10);
        put(same > 10 ? 18 : 17);
        writer_.Put(static_cast<uint32_t>(same > 10 ? same - 11 : same - 3), same > 10 ? 7 : 3);
        i += same;
      } else if (i > 0 && all[i] == all[i - 1] && same >= 3 && Draw(4) != 0) {
        same = std::min<size_t>(same, 6);
        put(16);
        writer_.Put(static_cast<uint32_t>(same - 3), 2);
        i += same;
      } else {
        put(all[i++]);
      }
    }
    PutSymbols(literals, distances);
  }

  static std::vector<uint32_t> Codes(const std::vector<uint8_t>& lengths) {
    std::vector<uint32_t> codes(lengths.size());
    uint32_t code = 0;
    for (uint8_t length = 1; length <= 15; ++length, code <<= 1) {
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == length) codes[i] = code++;
      }
    }
    return codes;
  }

  void PutSymbols(const std::vector<uint8_t>& literals, const std::vector<uint8_t>& distances) {
    static constexpr uint8_t kLengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                              2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    const std::vector<uint32_t> literal_codes = Codes(literals);
    const std::vector<uint32_t> distance_codes = Codes(distances);
    std::vector<size_t> symbols, places;
    for (size_t i = 0; i < std::min<size_t>(literals.size(), 286); ++i) {
      if (literals[i] > 0 && i != 256) symbols.push_back(i);
    }
    for (size_t i = 0; i < std::min<size_t>(distances.size(), 30); ++i) {
      if (distances[i] > 0) places.push_back(i);
    }
    const uint32_t count = symbols.empty() ? 0 : Draw(Draw(4) == 0 ? 4000 : 300);
    for (uint32_t n = 0; n < count; ++n) {
      const size_t symbol = symbols[Draw(static_cast<uint32_t>(symbols.size()))];
      if (symbol < 256) {
        writer_.PutCode(literal_codes[symbol], literals[symbol]);
        ++produced_;
        continue;
      }
      if (places.empty()) continue;
      const size_t place = places[Draw(static_cast<uint32_t>(places.size()))];
      const uint32_t extra_bits = place < 2 ? 0 : static_cast<uint32_t>(place / 2 - 1);
      const uint32_t extra = Draw(uint32_t{1} << extra_bits);
      const size_t distance = place < 2 ? place + 1 : ((2 + place % 2) << extra_bits) + extra + 1;
      if (distance > produced_ && (sound_ || Draw(1000) != 0)) continue;
      const uint32_t length_bits = kLengthBits[symbol - 257];
      const uint32_t length_extra = Draw(uint32_t{1} << length_bits);
      writer_.PutCode(literal_codes[symbol], literals[symbol]);
      writer_.Put(length_extra, length_bits);
      writer_.PutCode(distance_codes[place], distances[place]);
      writer_.Put(extra, extra_bits);
      const size_t ordinal = symbol - 257;
      produced_ += symbol == 285 ? 258
                   : ordinal < 8 ? ordinal + 3
                                 : ((4 + ordinal % 4) << length_bits) + length_extra + 3;
    }
    writer_.PutCode(literal_codes[256], literals[256]);
  }

  std::mt19937 random_;
  BitWriter writer_;
  bool sound_ = true;
  size_t produced_ = 0;
};

}  // namespace penstock::test
