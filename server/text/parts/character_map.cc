#include "server/text/parts/character_map.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock::text {
namespace {

// A unit of the double array: bits 0 to 7 a label, bit 8 whether a value belongs to the node, bits
// 9 to 30 where its children lie; or, with bit 31, a value.
constexpr uint32_t kIsValue = uint32_t{1} << 31;
bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & ~kIsValue; }
uint32_t LabelOf(uint32_t unit) { return unit & (kIsValue | 0xff); }
uint32_t OffsetOf(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

}  // namespace

absl::StatusOr<CharacterMap> CharacterMap::Read(std::string_view bytes, std::string_view place) {
  const auto damaged = [&](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(place), ": expected ", what...));
  };
  uint32_t trie_bytes = 0;
  if (bytes.size() > sizeof(trie_bytes)) std::memcpy(&trie_bytes, bytes.data(), sizeof(trie_bytes));
  const size_t behind = bytes.size() > sizeof(trie_bytes) ? bytes.size() - sizeof(trie_bytes) : 0;
  if (trie_bytes < sizeof(uint32_t) || trie_bytes >= behind || trie_bytes % sizeof(uint32_t) != 0)
    return damaged("units of four bytes and replacements behind them, found ", trie_bytes,
                   " bytes of units in ", bytes.size());
  CharacterMap map;
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data() + sizeof(trie_bytes), trie_bytes);
  map.replacements_ = bytes.substr(sizeof(trie_bytes) + trie_bytes);
  if (map.replacements_.back() != '\0') return damaged("a zero byte at the end, found another one");
  // Each node that a text may lead to is one of these.
  const std::vector<uint32_t>& units = map.units_;
  for (size_t i = 0; i < units.size(); ++i) {
    if ((units[i] & kIsValue) != 0 || !HasValue(units[i])) continue;
    const size_t at = i ^ OffsetOf(units[i]);
    if (at >= units.size() || ValueOf(units[at]) >= map.replacements_.size())
      return damaged("places in the replacements, found another one at unit ", i, " of ",
                     units.size());
  }
  map.FindBytesLeft();
  return map;
}

void CharacterMap::FindBytesLeft() {
  for (int byte = 0; byte < 0x80; ++byte) {
    const char c = static_cast<char>(byte);
    Change change;
    bool is_left = !Find({&c, 1}, &change);
    // What is longer than two bytes begins with a node that has no value; so it is the node that
    // counts.
    for (int next = 0; next < 0x80 && is_left; ++next)
      is_left = !Begins(static_cast<uint8_t>(byte), static_cast<uint8_t>(next));
    is_left_[byte] = is_left;
  }
}

bool CharacterMap::Begins(uint8_t first, uint8_t second) const {
  if (units_.empty()) return false;
  size_t at = OffsetOf(units_[0]) ^ first;
  if (at >= units_.size() || LabelOf(units_[at]) != first) return false;
  at ^= OffsetOf(units_[at]) ^ second;
  return at < units_.size() && LabelOf(units_[at]) == second;
}

bool CharacterMap::Find(std::string_view text, Change* change) const {
  *change = {};
  if (units_.empty()) return false;
  size_t at = OffsetOf(units_[0]);
  size_t found = 0, bytes = 0, i = 0;
  // No way without a circle is longer than there are units.
  for (; i < text.size() && i < units_.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || LabelOf(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= OffsetOf(unit);
    if (!HasValue(unit)) continue;
    found = ValueOf(units_[at]);
    bytes = i + 1;
  }
  change->looked = i;
  if (bytes == 0) return false;
  change->text = replacements_.data() + found;
  change->bytes = bytes;
  return true;
}

bool CharacterMap::FindShortest(std::string_view text, std::string_view* replacement) const {
  if (units_.empty()) return false;
  size_t at = OffsetOf(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || LabelOf(units_[at]) != byte) return false;
    const uint32_t unit = units_[at];
    at ^= OffsetOf(unit);
    if (!HasValue(unit)) continue;
    *replacement = replacements_.data() + ValueOf(units_[at]);
    return true;
  }
  return false;
}

void CharacterMap::ForEachReplacement(absl::FunctionRef<void(std::string_view)> visit) const {
  for (size_t i = 0; i < units_.size(); ++i) {
    if ((units_[i] & kIsValue) != 0 || !HasValue(units_[i])) continue;
    visit(replacements_.data() + ValueOf(units_[i ^ OffsetOf(units_[i])]));
  }
}

}  // namespace penstock::text
