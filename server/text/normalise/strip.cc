#include "server/text/parts/parts.h"
#include "server/text/unicode/classes.h"

namespace penstock::text {
namespace {

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void Apply(std::string* text) const override {
    const CodePointTable& flags = Flags();
    const auto* const begin = reinterpret_cast<const uint8_t*>(text->data());
    const uint8_t* const end = begin + text->size();
    const uint8_t* first = nullptr;
    const uint8_t* behind = begin;
    for (const uint8_t* at = begin; at < end;) {
      uint32_t code_point;
      const uint8_t* const next = ReadCodePoint(at, &code_point);
      if ((flags[code_point] & kBlank) == 0) {
        if (first == nullptr) first = at;
        behind = next;
      }
      at = next;
    }
    if (first == nullptr) return text->clear();
    if (right_) text->resize(static_cast<size_t>(behind - begin));
    if (left_) text->erase(0, static_cast<size_t>(first - begin));
  }

 private:
  const bool left_, right_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "strip_left", "strip_right"});
  bool left = true, right = true;
  if (status.ok()) status = json["strip_left"].Read(&left);
  if (status.ok()) status = json["strip_right"].Read(&right);
  if (!status.ok()) return status;
  return std::make_unique<Strip>(left, right);
}

const PartRegistration<Normalizer> kStrip("Strip", Make);

}  // namespace
}  // namespace penstock::text
