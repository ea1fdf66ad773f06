#include "base/stop_flag.h"
#include "server/text/parts/parts.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class Strip final : public Decoder {
 public:
  Strip(std::string content, uint32_t start, uint32_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void Apply(std::vector<std::string>* tokens) const override {
    StopLook look;
    for (std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      for (uint32_t i = 0; i < start_ && token.compare(0, content_.size(), content_) == 0; ++i)
        token.erase(0, content_.size());
      for (uint32_t i = 0;
           i < stop_ && token.size() >= content_.size() &&
           token.compare(token.size() - content_.size(), content_.size(), content_) == 0;
           ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  const std::string content_;
  const uint32_t start_, stop_;
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "content", "start", "stop"});
  std::string content;
  uint32_t start = 0, stop = 0;
  if (status.ok()) status = json["content"].Read(&content);
  if (status.ok()) status = json["start"].ReadId(&start);
  if (status.ok()) status = json["stop"].ReadId(&stop);
  if (!status.ok()) return status;
  uint32_t code_point;
  if (!IsOneCodePoint(content, &code_point)) return json["content"].Refuse("one character");
  return std::make_unique<Strip>(std::move(content), start, stop);
}

const PartRegistration<Decoder> kStrip("Strip", Make);

}  // namespace
}  // namespace penstock::text
