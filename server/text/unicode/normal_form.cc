#include "server/text/unicode/normal_form.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/stop_flag.h"
#include "server/text/unicode/classes.h"

namespace penstock::text {
namespace {

struct Mapping {
  uint32_t from;
  std::string_view to;
};
constexpr Mapping kCanonical[] = {
#include "server/text/unicode/canonical.inc"
};
constexpr Mapping kCompatible[] = {
#include "server/text/unicode/compatible.inc"
};
constexpr Mapping kLowercase[] = {
#include "server/text/unicode/lowercase.inc"
};
constexpr CodePointTable::Run kCombining[] = {
#include "server/text/unicode/combining.inc"
};
constexpr struct {
  uint32_t first, second, both;
} kComposed[] = {
#include "server/text/unicode/composed.inc"
};

// Hangul is computed (chapter 3.12 of the standard).
constexpr uint32_t kHangul = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11a7;
constexpr uint32_t kLeads = 19, kVowels = 21, kTails = 28, kHanguls = kLeads * kVowels * kTails;

enum Flag : uint8_t {
  kChangesNfd = 1 << 0,
  kChangesNfkd = 1 << 1,
  kChangesNfc = 1 << 2,
  kChangesNfkc = 1 << 3,
  kLowers = 1 << 4,
};

struct Tables {
  Tables() : combining(kCombining), flags(kCombining) {
    std::vector<uint8_t> bits(0x110000);
    for (const Mapping& mapping : kCanonical) {
      canonical[mapping.from] = mapping.to;
      bits[mapping.from] |= kChangesNfd | kChangesNfkd | kChangesNfc | kChangesNfkc;
    }
    // A composed one stays, unless something behind it joins.
    for (const auto& pair : kComposed) {
      composed[uint64_t{pair.first} << 32 | pair.second] = pair.both;
      bits[pair.both] &= static_cast<uint8_t>(~(kChangesNfc | kChangesNfkc));
    }
    for (const auto& pair : kComposed) bits[pair.second] |= kChangesNfc | kChangesNfkc;
    for (const Mapping& mapping : kCompatible) {
      compatible[mapping.from] = mapping.to;
      bits[mapping.from] |= kChangesNfkd | kChangesNfkc;
    }
    for (uint32_t c = 0; c < 0x110000; ++c)
      if (combining[c] != 0) bits[c] |= kChangesNfd | kChangesNfkd | kChangesNfc | kChangesNfkc;
    for (uint32_t c = kHangul; c < kHangul + kHanguls; ++c) bits[c] |= kChangesNfd | kChangesNfkd;
    for (uint32_t c = kVowel; c < kTail + kTails; ++c) bits[c] |= kChangesNfc | kChangesNfkc;
    for (const Mapping& mapping : kLowercase) {
      lowercase[mapping.from] = mapping.to;
      bits[mapping.from] |= kLowers;
    }
    flags = CodePointTable(bits);
  }

  CodePointTable combining, flags;
  absl::flat_hash_map<uint32_t, std::string_view> canonical, compatible, lowercase;
  absl::flat_hash_map<uint64_t, uint32_t> composed;
};

const Tables& AllTables() {
  static const auto& tables = *new Tables;
  return tables;
}

template <typename Visit>
void ForEachCodePoint(std::string_view text, Visit visit) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    uint32_t code_point;
    at = ReadCodePoint(at, &code_point);
    visit(code_point);
  }
}

bool HasAny(std::string_view text, const Tables& tables, uint8_t flags) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    uint32_t code_point;
    at = ReadCodePoint(at, &code_point);
    if (tables.flags[code_point] & flags) return true;
  }
  return false;
}

struct Character {
  uint32_t code_point;
  uint8_t combining;
};

std::vector<Character> Decomposed(std::string_view text, const Tables& tables, bool compatible) {
  std::vector<Character> result;
  result.reserve(text.size());
  const auto put = [&](uint32_t c) { result.push_back({c, tables.combining[c]}); };
  StopLook look;
  ForEachCodePoint(text, [&](uint32_t c) {
    look.Did(16);
    if (c < 0x80) return put(c);
    if (c >= kHangul && c < kHangul + kHanguls) {
      const uint32_t number = c - kHangul;
      put(kLead + number / (kVowels * kTails));
      put(kVowel + number % (kVowels * kTails) / kTails);
      if (number % kTails != 0) put(kTail + number % kTails);
      return;
    }
    if (compatible) {
      const auto found = tables.compatible.find(c);
      if (found != tables.compatible.end()) return ForEachCodePoint(found->second, put);
    }
    const auto found = tables.canonical.find(c);
    if (found != tables.canonical.end()) return ForEachCodePoint(found->second, put);
    put(c);
  });
  // Marks in the order of their classes.
  for (size_t i = 0; i < result.size();) {
    if (result[i].combining == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < result.size() && result[end].combining != 0) ++end;
    std::stable_sort(
        result.begin() + static_cast<ptrdiff_t>(i), result.begin() + static_cast<ptrdiff_t>(end),
        [](const Character& a, const Character& b) { return a.combining < b.combining; });
    i = end;
  }
  return result;
}

// 0 where two make no one.
uint32_t Join(const Tables& tables, uint32_t first, uint32_t second) {
  if (first - kLead < kLeads && second - kVowel < kVowels)
    return kHangul + ((first - kLead) * kVowels + second - kVowel) * kTails;
  if (first - kHangul < kHanguls && (first - kHangul) % kTails == 0 &&
      second - kTail - 1 < kTails - 1)
    return first + second - kTail;
  const auto found = tables.composed.find(uint64_t{first} << 32 | second);
  return found == tables.composed.end() ? 0 : found->second;
}

void Compose(const Tables& tables, std::vector<Character>* characters) {
  size_t kept = 0, starter = ~size_t{0};
  // Of the last one that was kept behind the starter; 0: none.
  int last = -1;
  for (const Character& character : *characters) {
    if (starter != ~size_t{0} && last < character.combining) {
      const uint32_t both = Join(tables, (*characters)[starter].code_point, character.code_point);
      if (both != 0) {
        (*characters)[starter].code_point = both;
        continue;
      }
    }
    (*characters)[kept] = character;
    if (character.combining == 0) {
      starter = kept;
      last = -1;
    } else {
      last = character.combining;
    }
    ++kept;
  }
  characters->resize(kept);
}

}  // namespace

std::string Normalized(std::string_view text, NormalForm form) {
  const Tables& tables = AllTables();
  if (!HasAny(text, tables, static_cast<uint8_t>(1 << static_cast<int>(form))))
    return std::string(text);
  const bool compatible = form == NormalForm::kNfkd || form == NormalForm::kNfkc;
  std::vector<Character> characters = Decomposed(text, tables, compatible);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) Compose(tables, &characters);
  std::string result;
  result.reserve(text.size() + 16);
  for (const Character& character : characters) AppendCodePoint(character.code_point, &result);
  return result;
}

std::string Lowercased(std::string_view text) {
  const Tables& tables = AllTables();
  std::string result;
  result.reserve(text.size());
  ForEachCodePoint(text, [&](uint32_t c) {
    if (c < 0x80) {
      result.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
    } else if (tables.flags[c] & kLowers) {
      result += tables.lowercase.at(c);
    } else {
      AppendCodePoint(c, &result);
    }
  });
  return result;
}

}  // namespace penstock::text
