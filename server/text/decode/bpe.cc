#include "base/stop_flag.h"
#include "server/text/decode/replaced_all.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void Apply(std::vector<std::string>* tokens) const override {
    StopLook look;
    for (std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      token = ReplacedAll(token, suffix_, &token == &tokens->back() ? "" : " ");
    }
  }

 private:
  const std::string suffix_;
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "suffix"});
  std::string suffix = "</w>";
  if (status.ok()) status = json["suffix"].Read(&suffix);
  if (!status.ok()) return status;
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

const PartRegistration<Decoder> kBpe("BPEDecoder", Make);

}  // namespace
}  // namespace penstock::text
