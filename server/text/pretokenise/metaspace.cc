#include "base/stop_flag.h"
#include "server/text/pretokenise/behaviour.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

enum class Prepend : uint8_t { kAlways, kFirst, kNever };

// As StopLook counts them.
constexpr uint64_t kPieceWork = 64;
constexpr uint64_t kLetterWork = 4;

// Writes spaces as another character, puts one in front, and cuts in front of each: as
// SentencePiece does.
class Metaspace final : public Pretokenizer {
 public:
  Metaspace(std::string mark, Prepend prepend, bool cuts)
      : mark_(std::move(mark)), prepend_(prepend), cuts_(cuts) {}

  void Cut(PieceList& pieces) const override {
    StopLook look;
    pieces.ForEach([&](const Piece& piece, PieceList& list) {
      look.Did(kPieceWork + piece.text.size() * kLetterWork);
      std::string text;
      for (const char c : piece.text) {
        if (c == ' ') {
          text += mark_;
        } else {
          text.push_back(c);
        }
      }
      const bool may =
          prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && piece.begins);
      if (may && text.compare(0, mark_.size(), mark_) != 0) text.insert(0, mark_);
      const Piece whole = {list.Keep(std::move(text)), piece.begins};
      if (!cuts_) return list.Add(whole);
      size_t open = 0;
      while (open < whole.text.size()) {
        look.Did(kPieceWork);
        const size_t next = std::min(whole.text.find(mark_, open + 1), whole.text.size());
        list.Add({whole.text.substr(open, next - open), whole.begins && open == 0});
        open = next;
      }
    });
  }

 private:
  const std::string mark_;
  const Prepend prepend_;
  const bool cuts_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  std::string mark = "\u2581", scheme;
  bool cuts = true, adds_space = true;
  if (status.ok()) status = json["replacement"].Read(&mark);
  if (status.ok()) status = json["prepend_scheme"].Read(&scheme);
  if (status.ok()) status = json["split"].Read(&cuts);
  if (status.ok()) status = json["add_prefix_space"].Read(&adds_space);
  if (!status.ok()) return status;
  uint32_t code_point;
  if (!IsOneCodePoint(mark, &code_point)) return json["replacement"].Refuse("one character");
  Prepend prepend = adds_space ? Prepend::kAlways : Prepend::kNever;
  if (scheme == "always") {
    prepend = Prepend::kAlways;
  } else if (scheme == "first") {
    prepend = Prepend::kFirst;
  } else if (scheme == "never") {
    prepend = Prepend::kNever;
  } else if (!scheme.empty()) {
    return json["prepend_scheme"].Refuse("one of always, first, never");
  }
  return std::make_unique<Metaspace>(std::move(mark), prepend, cuts);
}

const PartRegistration<Pretokenizer> kMetaspace("Metaspace", Make);

}  // namespace
}  // namespace penstock::text
