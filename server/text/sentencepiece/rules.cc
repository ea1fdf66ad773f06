#include "server/text/sentencepiece/rules.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "base/utf8.h"

namespace penstock::text {
namespace {

constexpr std::string_view kNoCharacter = "\ufffd";

// A unit of the double array: bits 0 to 7 a label, bit 8 whether a value belongs to the node, bits
// 9 to 30 where its children lie; or, with bit 31, a value.
constexpr uint32_t kIsValue = uint32_t{1} << 31;
bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & ~kIsValue; }
uint32_t LabelOf(uint32_t unit) { return unit & (kIsValue | 0xff); }
uint32_t OffsetOf(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

absl::Status TooLong(size_t bytes, size_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("text longer than the limit when the tokenizer's rules have changed it: ", limit,
                   " bytes, of a text of ", bytes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextRules>> TextRules::Make(const SentencePieceFile::Rules& rules,
                                                           bool space_behind, std::string_view name,
                                                           const PieceTrie* kept) {
  std::unique_ptr<TextRules> made(new TextRules);
  made->adds_space_ = rules.adds_space;
  made->removes_extra_spaces_ = rules.removes_extra_spaces;
  made->space_behind_ = space_behind;
  made->space_ = rules.escapes_spaces ? kSpaceSign : " ";
  made->kept_ = kept;
  if (!rules.charsmap.empty()) {
    absl::Status status = made->ReadMap(rules.charsmap, name);
    if (!status.ok()) return status;
  }
  made->FindPlainBytes();
  return made;
}

absl::Status TextRules::ReadMap(std::string_view map, std::string_view name) {
  const auto damaged = [&](auto... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ".precompiled_charsmap: expected ", what...));
  };
  uint32_t trie_bytes = 0;
  if (map.size() > sizeof(trie_bytes)) std::memcpy(&trie_bytes, map.data(), sizeof(trie_bytes));
  const size_t behind = map.size() > sizeof(trie_bytes) ? map.size() - sizeof(trie_bytes) : 0;
  if (trie_bytes < sizeof(uint32_t) || trie_bytes >= behind || trie_bytes % sizeof(uint32_t) != 0)
    return damaged("units of four bytes and replacements behind them, found ", trie_bytes,
                   " bytes of units in ", map.size());
  units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), map.data() + sizeof(trie_bytes), trie_bytes);
  replacements_ = map.substr(sizeof(trie_bytes) + trie_bytes);
  if (replacements_.back() != '\0') return damaged("a zero byte at the end, found another one");
  // Each node that a text may lead to is one of these.
  for (size_t i = 0; i < units_.size(); ++i) {
    if ((units_[i] & kIsValue) != 0 || !HasValue(units_[i])) continue;
    const size_t at = i ^ OffsetOf(units_[i]);
    if (at >= units_.size() || ValueOf(units_[at]) >= replacements_.size())
      return damaged("places in the replacements, found another one at unit ", i, " of ",
                     units_.size());
  }
  return absl::OkStatus();
}

void TextRules::FindPlainBytes() {
  for (int byte = 0; byte < 0x80; ++byte) {
    const char c = static_cast<char>(byte);
    bool is_plain = c != ' ' && (kept_ == nullptr || !kept_->begins(static_cast<uint8_t>(byte)));
    Change change{};
    is_plain &= !FindInMap({&c, 1}, &change);
    for (int next = 0; next < 0x80 && is_plain; ++next) {
      const char two[] = {c, static_cast<char>(next)};
      // What is longer than two bytes begins with a node that has no value; so it is the node that
      // counts.
      if (units_.empty()) break;
      size_t at = OffsetOf(units_[0]) ^ static_cast<uint8_t>(two[0]);
      if (at >= units_.size() || LabelOf(units_[at]) != static_cast<uint8_t>(two[0])) break;
      at ^= OffsetOf(units_[at]) ^ static_cast<uint8_t>(two[1]);
      is_plain = at >= units_.size() || LabelOf(units_[at]) != static_cast<uint8_t>(two[1]);
    }
    is_plain_[byte] = is_plain;
  }
}

bool TextRules::FindInMap(std::string_view text, Change* change) const {
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

TextRules::Change TextRules::ChangeAt(std::string_view text) const {
  size_t looked = 0;
  if (kept_ != nullptr)
    if (const size_t bytes = kept_->LongestPrefix(text, &looked); bytes > 0)
      return {text.substr(0, bytes), bytes, looked};
  Change change{};
  const bool is_found = FindInMap(text, &change);
  change.looked += looked;
  if (is_found) return change;
  size_t bytes = 1;
  // Bytes that are no character can only be what a rule left of one.
  if (DecodeUtf8(absl::string_view(text.data(), text.size()), &bytes) < 0)
    return {kNoCharacter, 1, change.looked};
  return {text.substr(0, bytes), bytes, change.looked};
}

absl::Status TextRules::Apply(std::string_view text, std::string* to) const {
  to->clear();
  if (text.size() > kTextBytesMax) return TooLong(text.size(), kTextBytesMax);
  const size_t most = std::min(kTextBytesMax, kFewBytes + kGrowth * text.size());
  size_t at = 0;
  StopLook look;
  while (removes_extra_spaces_ && at < text.size()) {
    const Change change = ChangeAt(text.substr(at));
    if (change.text != " ") break;
    at += change.bytes;
    look.Did(16 + change.looked);
  }
  if (at == text.size()) return absl::OkStatus();
  to->reserve(text.size() - at + (text.size() - at) / 2);
  if (adds_space_ && !space_behind_) *to += space_;
  bool was_space = removes_extra_spaces_;
  while (at < text.size()) {
    size_t end = at;
    while (end < text.size() && is_plain_[static_cast<uint8_t>(text[end])] &&
           (end + 1 == text.size() || static_cast<uint8_t>(text[end + 1]) < 0x80))
      ++end;
    if (end > at) {
      to->append(text.substr(at, end - at));
      look.Did(end - at);
      at = end;
      was_space = false;
      continue;
    }
    const Change change = ChangeAt(text.substr(at));
    std::string_view changed = change.text;
    while (was_space && !changed.empty() && changed[0] == ' ') changed.remove_prefix(1);
    if (space_.size() * changed.size() > most - std::min(most, to->size()))
      return TooLong(text.size(), most);
    for (const char c : changed) {
      if (c == ' ') {
        *to += space_;
      } else {
        *to += c;
      }
    }
    if (!changed.empty()) was_space = removes_extra_spaces_ && changed.back() == ' ';
    at += change.bytes;
    look.Did(16 + change.looked + change.text.size());
  }
  while (removes_extra_spaces_ && to->size() >= space_.size() &&
         to->compare(to->size() - space_.size(), space_.size(), space_) == 0)
    to->resize(to->size() - space_.size());
  if (adds_space_ && space_behind_) *to += space_;
  return absl::OkStatus();
}

}  // namespace penstock::text
