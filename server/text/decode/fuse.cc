#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class Fuse final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::string all;
    for (const std::string& token : *tokens) all += token;
    tokens->assign(1, std::move(all));
  }
};

const PartRegistration<Decoder> kFuse("Fuse", MakePlain<Decoder, Fuse>);

}  // namespace
}  // namespace penstock::text
