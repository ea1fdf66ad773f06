#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  void Apply(std::string* text) const override {
    for (const auto& part : parts_) part->Apply(text);
  }
  void ApplyWithFirst(std::string* text, std::string* first) const override {
    for (const auto& part : parts_) part->ApplyWithFirst(text, first);
  }

 private:
  const std::vector<std::unique_ptr<Normalizer>> parts_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "normalizers"}); !status.ok()) return status;
  auto parts = MakeParts<Normalizer>(json["normalizers"]);
  if (!parts.ok()) return parts.status();
  return std::make_unique<Sequence>(*std::move(parts));
}

const PartRegistration<Normalizer> kSequence("Sequence", Make);

}  // namespace
}  // namespace penstock::text
