#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// At punctuation marks.
class Punctuation final : public Pretokenizer {
 public:
  explicit Punctuation(Behaviour behaviour) : behaviour_(behaviour) {}
  void Cut(PieceList& pieces) const override { CutByFlag(kPunctuation, behaviour_, pieces); }

 private:
  const Behaviour behaviour_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "behavior"});
  Behaviour behaviour = Behaviour::kIsolated;
  if (status.ok() && !json["behavior"].is_null())
    status = ReadBehaviour(json["behavior"], &behaviour);
  if (!status.ok()) return status;
  return std::make_unique<Punctuation>(behaviour);
}

const PartRegistration<Pretokenizer> kPunctuation("Punctuation", Make);

}  // namespace
}  // namespace penstock::text
