#include "server/text/sentencepiece/rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "base/utf8.h"

namespace penstock::text {
namespace {

constexpr std::string_view kNoCharacter = "\ufffd";

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
    auto map = CharacterMap::Read(rules.charsmap,
                                  absl::StrCat(std::string(name), ".precompiled_charsmap"));
    if (!map.ok()) return map.status();
    made->map_ = *std::move(map);
  }
  made->FindPlainBytes();
  return made;
}

void TextRules::FindPlainBytes() {
  for (int byte = 0; byte < 0x80; ++byte) {
    const auto value = static_cast<uint8_t>(byte);
    is_plain_[byte] =
        value != ' ' && (kept_ == nullptr || !kept_->begins(value)) && map_.is_left(value);
  }
}

CharacterMap::Change TextRules::ChangeAt(std::string_view text) const {
  size_t looked = 0;
  if (kept_ != nullptr)
    if (const size_t bytes = kept_->LongestPrefix(text, &looked); bytes > 0)
      return {text.substr(0, bytes), bytes, looked};
  CharacterMap::Change change;
  const bool is_found = map_.Find(text, &change);
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
    const CharacterMap::Change change = ChangeAt(text.substr(at));
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
    const CharacterMap::Change change = ChangeAt(text.substr(at));
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
