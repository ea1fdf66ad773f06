#include "server/text/parts/parts.h"
#include "server/text/parts/pattern.h"

namespace penstock::text {
namespace {

class Replace final : public Normalizer {
 public:
  explicit Replace(Replacement replacement) : replacement_(std::move(replacement)) {}
  void Apply(std::string* text) const override { *text = replacement_.Apply(*text); }

 private:
  const Replacement replacement_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> Make(const JsonPart& json) {
  Replacement replacement;
  if (absl::Status status = replacement.Read(json); !status.ok()) return status;
  return std::make_unique<Replace>(std::move(replacement));
}

const PartRegistration<Normalizer> kReplace("Replace", Make);

}  // namespace
}  // namespace penstock::text
