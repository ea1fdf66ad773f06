#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// At white space, which goes.
class WhitespaceSplit final : public Pretokenizer {
 public:
  void Cut(PieceList& pieces) const override { CutByFlag(kBlank, Behaviour::kRemoved, pieces); }
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type"}); !status.ok()) return status;
  return std::make_unique<WhitespaceSplit>();
}

const PartRegistration<Pretokenizer> kWhitespaceSplit("WhitespaceSplit", Make);

}  // namespace
}  // namespace penstock::text
