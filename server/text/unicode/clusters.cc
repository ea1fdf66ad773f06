#include "server/text/unicode/clusters.h"

#include "base/stop_flag.h"
#include "server/text/unicode/classes.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

enum ClusterClass : uint8_t {
  kNoCluster,
  kControl,
  kPrepend,
  kExtend,      // marks, the next two among them, and what else is joined to all but controls
  kInConjunct,  // between two consonants of a conjunct
  kLinker,      // which makes it one
  kJoiner,      // U+200D, which is kInConjunct, too
  kSpacing,
  kLeading,  // Hangul
  kVowel,
  kTrailing,
  kSyllable,  // whole, with or without a trailing letter
  kRegional,
  kPictograph,
  kConsonant,
};

constexpr CodePointTable::Run kRuns[] = {
#include "server/text/unicode/clusters.inc"
};

const CodePointTable& Table() {
  static const auto& table = *new CodePointTable(kRuns);
  return table;
}

constexpr uint32_t kFirstSyllable = 0xac00, kTrailingLetters = 28;
bool EndsInVowel(uint32_t code_point, uint8_t kind) {
  return kind == kVowel ||
         (kind == kSyllable && (code_point - kFirstSyllable) % kTrailingLetters == 0);
}

bool IsMark(uint8_t kind) { return kind >= kExtend && kind <= kSpacing; }

// What of a cluster decides whether it goes on.
class Cluster {
 public:
  explicit Cluster(uint32_t code_point) { Take(code_point, Table()[code_point]); }

  // Adds a code point, or says that it begins the next cluster.
  bool GoOn(uint32_t code_point) {
    const uint8_t kind = Table()[code_point];
    if (!Joins(code_point, kind)) return false;
    Take(code_point, kind);
    return true;
  }

 private:
  bool Joins(uint32_t next, uint8_t kind) const {
    if (last_kind_ == kControl || kind == kControl) return last_ == '\r' && next == '\n';
    if (IsMark(kind) || last_kind_ == kPrepend) return true;
    switch (kind) {
      case kLeading:
      case kSyllable:
        return last_kind_ == kLeading;
      case kVowel:
        return last_kind_ == kLeading || EndsInVowel(last_, last_kind_);
      case kTrailing:
        return last_kind_ == kVowel || last_kind_ == kTrailing || last_kind_ == kSyllable;
      case kRegional:
        return regionals_ % 2 == 1;
      case kPictograph:
        return is_picture_ && last_kind_ == kJoiner;
      case kConsonant:
        return is_linked_;
      default:
        return false;
    }
  }

  void Take(uint32_t code_point, uint8_t kind) {
    // A picture with its marks, and a joiner behind them.
    is_picture_ = kind == kPictograph ||
                  (is_picture_ && last_kind_ != kJoiner && IsMark(kind) && kind != kSpacing);
    const bool is_inside = kind == kInConjunct || kind == kLinker || kind == kJoiner;
    is_consonant_ = kind == kConsonant || (is_consonant_ && is_inside);
    is_linked_ = is_consonant_ && kind != kConsonant && (is_linked_ || kind == kLinker);
    regionals_ = kind == kRegional ? regionals_ + 1 : 0;
    last_ = code_point;
    last_kind_ = kind;
  }

  uint32_t last_ = 0;
  uint8_t last_kind_ = kNoCluster;
  bool is_picture_ = false, is_consonant_ = false, is_linked_ = false;
  uint32_t regionals_ = 0;  // at the end
};

}  // namespace

size_t ClusterBytes(const uint8_t* at, const uint8_t* end) {
  const uint8_t* const begin = at;
  uint32_t code_point;
  at = ReadCodePoint(at, &code_point);
  Cluster cluster(code_point);
  StopLook look;
  while (at < end) {
    const uint8_t* const next = ReadCodePoint(at, &code_point);
    if (!cluster.GoOn(code_point)) break;
    look.Did(16);
    at = next;
  }
  return static_cast<size_t>(at - begin);
}

}  // namespace penstock::text
