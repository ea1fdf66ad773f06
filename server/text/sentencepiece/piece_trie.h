// Which of many texts a text begins with: a double array.
//
// Threads:  constant after it was made; safe from any thread.
// Limits:   texts of up to 2^30 bytes together.
// Cost:     two loads for each byte that is looked at; 12 bytes for each byte of the texts that no
//           other one begins with, and some more.
// Source:   Aoe, An Efficient Digital Search Algorithm by Using a Double-Array Structure (1989).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::text {

class PieceTrie {
 public:
  using Entry = std::pair<std::string_view, uint32_t>;
  static constexpr uint32_t kNothing = ~uint32_t{0};

  PieceTrie() : PieceTrie(std::vector<Entry>()) {}
  // REQUIRES: texts that differ and have a byte each; values below kNothing.
  explicit PieceTrie(std::vector<Entry> entries);

  // Calls `found(bytes, value)` for each text with which `text` begins, the shorter ones first;
  // returns how many bytes it looked at.
  template <typename Found>
  size_t ForEachPrefix(std::string_view text, Found found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t child = nodes_[node].base ^ static_cast<uint8_t>(text[i]);
      if (nodes_[child].parent != node) return i;
      node = child;
      if (nodes_[node].value != kNothing) found(i + 1, nodes_[node].value);
    }
    return text.size();
  }

  // The bytes of the longest text with which `text` begins, of the kNestedMost shortest ones: as
  // many as the library looks at. 0: there is none. `*looked`: how many bytes it looked at.
  static constexpr size_t kNestedMost = 64;
  size_t LongestPrefix(std::string_view text, size_t* looked) const {
    size_t longest = 0, found = 0;
    *looked = ForEachPrefix(text, [&](size_t bytes, uint32_t) {
      if (++found <= kNestedMost) longest = bytes;
    });
    return longest;
  }

  // Whether some text begins with this byte.
  bool begins(uint8_t byte) const { return nodes_[nodes_[0].base ^ byte].parent == 0; }

 private:
  // A child lies at its parent's base XOR its byte.
  struct Node {
    uint32_t base = 0, parent = kNothing, value = kNothing;
  };
  std::vector<Node> nodes_;
};

}  // namespace penstock::text
