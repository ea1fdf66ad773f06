#include "base/stop_flag.h"
#include "server/text/parts/pattern.h"
#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// Of a match beside its bytes, as StopLook counts it.
constexpr uint64_t kMatchWork = 64;

// At the matches of a text or a regular expression.
class Split final : public Pretokenizer {
 public:
  Split(Pattern pattern, Behaviour behaviour, bool invert)
      : pattern_(std::move(pattern)), behaviour_(behaviour), invert_(invert) {}

  void Cut(PieceList& pieces) const override {
    std::vector<Stretch> stretches;
    StopLook look;
    pieces.ForEach([&](const Piece& piece, PieceList& list) {
      stretches.clear();
      size_t open = 0;
      pattern_.ForEachMatch(piece.text, [&](size_t from, size_t to) {
        look.Did(to - open + kMatchWork);
        if (open < from) stretches.push_back({open, from, invert_});
        stretches.push_back({from, to, !invert_});
        open = to;
      });
      if (open < piece.text.size()) stretches.push_back({open, piece.text.size(), invert_});
      CutBy(piece, stretches, behaviour_, list);
    });
  }

  const PublishedPattern* pattern() const override {
    // Its matches lie side by side, so that nothing stands between them.
    const bool keeps =
        behaviour_ == Behaviour::kIsolated || (behaviour_ == Behaviour::kRemoved && invert_);
    return keeps ? pattern_.published() : nullptr;
  }

 private:
  const Pattern pattern_;
  const Behaviour behaviour_;
  const bool invert_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "pattern", "behavior", "invert"});
  Behaviour behaviour;
  bool invert = false;
  Pattern pattern;
  if (status.ok()) status = ReadBehaviour(json["behavior"], &behaviour);
  if (status.ok()) status = json["invert"].Read(&invert);
  if (status.ok()) status = pattern.Read(json["pattern"]);
  if (!status.ok()) return status;
  return std::make_unique<Split>(std::move(pattern), behaviour, invert);
}

const PartRegistration<Pretokenizer> kSplit("Split", Make);

}  // namespace
}  // namespace penstock::text
