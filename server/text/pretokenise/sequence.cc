#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class Sequence final : public Pretokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Pretokenizer>> parts) : parts_(std::move(parts)) {}

  void Cut(PieceList& pieces) const override {
    for (const auto& part : parts_) part->Cut(pieces);
  }
  const std::vector<std::unique_ptr<Pretokenizer>>* sequence() const override { return &parts_; }

 private:
  const std::vector<std::unique_ptr<Pretokenizer>> parts_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "pretokenizers"}); !status.ok())
    return status;
  auto parts = MakeParts<Pretokenizer>(json["pretokenizers"]);
  if (!parts.ok()) return parts.status();
  return std::make_unique<Sequence>(*std::move(parts));
}

const PartRegistration<Pretokenizer> kSequence("Sequence", Make);

}  // namespace
}  // namespace penstock::text
