#include "base/stop_flag.h"
#include "base/utf8.h"
#include "server/text/parts/byte_letters.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class ByteLevel final : public Decoder {
 public:
  void Apply(std::vector<std::string>* tokens) const override {
    std::string bytes;
    StopLook look;
    for (const std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      if (!AppendBytesOf(token, &bytes)) bytes += token;
    }
    tokens->assign(1, ReplaceNoUtf8(bytes));
  }
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (!status.ok()) return status;
  return std::make_unique<ByteLevel>();
}

const PartRegistration<Decoder> kByteLevel("ByteLevel", Make);

}  // namespace
}  // namespace penstock::text
