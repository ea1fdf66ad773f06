#include "base/stop_flag.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class Fuse final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::string all;
    StopLook look;
    for (const std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      all += token;
    }
    tokens->assign(1, std::move(all));
  }
};

const PartRegistration<Decoder> kFuse("Fuse", MakePlain<Decoder, Fuse>);

}  // namespace
}  // namespace penstock::text
