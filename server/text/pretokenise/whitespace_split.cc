#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// At white space, which goes.
class WhitespaceSplit final : public Pretokenizer {
 public:
  void Cut(PieceList& pieces) const override { CutByFlag(kBlank, Behaviour::kRemoved, pieces); }
};

const PartRegistration<Pretokenizer> kWhitespaceSplit("WhitespaceSplit",
                                                      MakePlain<Pretokenizer, WhitespaceSplit>);

}  // namespace
}  // namespace penstock::text
