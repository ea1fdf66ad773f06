// Which of many texts a text begins with.
//
// Threads:  constant after the last Add(); safe from any thread.
// Cost:     a look-up in one hash table for each byte.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace penstock::text {

class Trie {
 public:
  static constexpr uint32_t kNothing = ~uint32_t{0};

  // The value that came first counts, where a text comes twice.
  void Add(std::string_view text, uint32_t value) {
    uint32_t node = 0;
    for (const char& c : text) {
      const auto [found, is_new] = nodes_.try_emplace(KeyOf(node, c), Node{count_, kNothing});
      if (is_new) ++count_;
      if (&c == &text.back() && found->second.value == kNothing) found->second.value = value;
      node = found->second.number;
    }
    begins_[static_cast<uint8_t>(text[0])] = true;
  }

  // Calls `found(bytes, value)` for each text with which `text` begins, the shorter ones first.
  template <typename Found>
  void ForEachPrefix(std::string_view text, Found found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto next = nodes_.find(KeyOf(node, text[i]));
      if (next == nodes_.end()) return;
      if (next->second.value != kNothing) found(i + 1, next->second.value);
      node = next->second.number;
    }
  }

  bool empty() const { return nodes_.empty(); }
  // Whether some text begins with this byte.
  bool begins(char c) const { return begins_[static_cast<uint8_t>(c)]; }

 private:
  struct Node {
    uint32_t number, value;
  };
  static uint64_t KeyOf(uint32_t node, char c) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(c);
  }

  absl::flat_hash_map<uint64_t, Node> nodes_;
  uint32_t count_ = 1;
  bool begins_[256] = {};
};

}  // namespace penstock::text
