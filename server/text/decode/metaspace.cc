#include "base/stop_flag.h"
#include "server/text/decode/replaced_all.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class Metaspace final : public Decoder {
 public:
  Metaspace(std::string mark, bool prepends) : mark_(std::move(mark)), prepends_(prepends) {}
  void Apply(std::vector<std::string>* tokens) const override {
    bool is_first = true;
    StopLook look;
    for (std::string& token : *tokens) {
      look.Did(token.size() + kTokenWork);
      token = ReplacedAll(token, mark_, std::exchange(is_first, false) && prepends_ ? "" : " ");
    }
  }

 private:
  const std::string mark_;
  const bool prepends_;
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  std::string mark = "\u2581", scheme;
  bool adds_space = true;
  if (status.ok()) status = json["replacement"].Read(&mark);
  if (status.ok()) status = json["prepend_scheme"].Read(&scheme);
  if (status.ok()) status = json["add_prefix_space"].Read(&adds_space);
  if (!status.ok()) return status;
  if (mark.empty()) return json["replacement"].Refuse("one character");
  return std::make_unique<Metaspace>(std::move(mark),
                                     scheme.empty() ? adds_space : scheme != "never");
}

const PartRegistration<Decoder> kMetaspace("Metaspace", Make);

}  // namespace
}  // namespace penstock::text
