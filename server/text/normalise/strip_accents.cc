#include "server/text/normalise/change_each.h"
#include "server/text/parts/parts.h"
#include "server/text/unicode/classes.h"

namespace penstock::text {
namespace {

class StripAccents final : public Normalizer {
 public:
  void Apply(std::string* text) const override {
    const CodePointTable& flags = Flags();
    ChangeEach(text, [&](uint32_t c, std::string_view bytes, std::string* out) {
      if ((flags[c] & kAccent) == 0) out->append(bytes);
    });
  }
};

const PartRegistration<Normalizer> kStripAccents("StripAccents",
                                                 MakePlain<Normalizer, StripAccents>);

}  // namespace
}  // namespace penstock::text
