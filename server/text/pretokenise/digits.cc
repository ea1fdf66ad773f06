#include "server/text/pretokenise/behaviour.h"

namespace penstock::text {
namespace {

// Around numbers, or around each digit.
class Digits final : public Pretokenizer {
 public:
  explicit Digits(Behaviour behaviour) : behaviour_(behaviour) {}
  void Cut(PieceList& pieces) const override { CutByFlag(kNumeric, behaviour_, pieces); }

 private:
  const Behaviour behaviour_;
};

absl::StatusOr<std::unique_ptr<Pretokenizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "individual_digits"});
  bool each = false;
  if (status.ok()) status = json["individual_digits"].Read(&each);
  if (!status.ok()) return status;
  return std::make_unique<Digits>(each ? Behaviour::kIsolated : Behaviour::kContiguous);
}

const PartRegistration<Pretokenizer> kDigits("Digits", Make);

}  // namespace
}  // namespace penstock::text
