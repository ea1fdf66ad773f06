#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// At white space, which goes, and around each punctuation mark.
class BertPreTokenizer final : public Pretokenizer {
 public:
  void Cut(PieceList& pieces) const override {
    CutByFlag(kBlank, Behaviour::kRemoved, pieces);
    CutByFlag(kPunctuation, Behaviour::kIsolated, pieces);
  }
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type"}); !status.ok()) return status;
  return std::make_unique<BertPreTokenizer>();
}

const PartRegistration<Pretokenizer> kBertPreTokenizer("BertPreTokenizer", Make);

}  // namespace
}  // namespace penstock::text
