#include "server/text/parts/parts.h"
#include "server/text/unicode/normal_form.h"

namespace penstock::text {
namespace {

class Lowercase final : public Normalizer {
 public:
  void Apply(std::string* text) const override { *text = Lowercased(*text); }
};

const PartRegistration<Normalizer> kLowercase("Lowercase", MakePlain<Normalizer, Lowercase>);

}  // namespace
}  // namespace penstock::text
