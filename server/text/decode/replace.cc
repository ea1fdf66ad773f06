#include "base/stop_flag.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/pattern.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class Replace final : public Decoder {
 public:
  explicit Replace(Replacement replacement) : replacement_(std::move(replacement)) {}
  void Apply(std::vector<std::string>* tokens) const override {
    StopLook look;
    for (std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      token = replacement_.Apply(token);
    }
  }

 private:
  const Replacement replacement_;
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  Replacement replacement;
  if (absl::Status status = replacement.Read(json); !status.ok()) return status;
  return std::make_unique<Replace>(std::move(replacement));
}

const PartRegistration<Decoder> kReplace("Replace", Make);

}  // namespace
}  // namespace penstock::text
