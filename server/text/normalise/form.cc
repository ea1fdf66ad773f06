#include "server/text/parts/parts.h"
#include "server/text/unicode/normal_form.h"

namespace penstock::text {
namespace {

template <NormalForm form>
class Form final : public Normalizer {
 public:
  void Apply(std::string* text) const override { *text = Normalized(*text, form); }
};

const PartRegistration<Normalizer> kNfd("NFD", MakePlain<Normalizer, Form<NormalForm::kNfd>>);
const PartRegistration<Normalizer> kNfkd("NFKD", MakePlain<Normalizer, Form<NormalForm::kNfkd>>);
const PartRegistration<Normalizer> kNfc("NFC", MakePlain<Normalizer, Form<NormalForm::kNfc>>);
const PartRegistration<Normalizer> kNfkc("NFKC", MakePlain<Normalizer, Form<NormalForm::kNfkc>>);

}  // namespace
}  // namespace penstock::text
