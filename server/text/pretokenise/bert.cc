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

const PartRegistration<Pretokenizer> kBertPreTokenizer("BertPreTokenizer",
                                                       MakePlain<Pretokenizer, BertPreTokenizer>);

}  // namespace
}  // namespace penstock::text
