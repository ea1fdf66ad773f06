#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  void Apply(std::vector<std::string>* tokens) const override {
    for (const auto& part : parts_) part->Apply(tokens);
  }

 private:
  const std::vector<std::unique_ptr<Decoder>> parts_;
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "decoders"}); !status.ok()) return status;
  auto parts = MakeParts<Decoder>(json["decoders"]);
  if (!parts.ok()) return parts.status();
  return std::make_unique<Sequence>(*std::move(parts));
}

const PartRegistration<Decoder> kSequence("Sequence", Make);

}  // namespace
}  // namespace penstock::text
