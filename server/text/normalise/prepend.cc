#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string what) : what_(std::move(what)) {}
  void Apply(std::string* text) const override {
    if (!text->empty()) text->insert(0, what_);
  }

 private:
  const std::string what_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "prepend"});
  std::string what;
  if (status.ok()) status = json["prepend"].Read(&what);
  if (!status.ok()) return status;
  return std::make_unique<Prepend>(std::move(what));
}

const PartRegistration<Normalizer> kPrepend("Prepend", Make);

}  // namespace
}  // namespace penstock::text
