#include "base/stop_flag.h"
#include "server/text/decode/replaced_all.h"
#include "server/text/parts/parts.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;
constexpr uint64_t kTidiedWork = 512;

class WordPiece final : public Decoder {
 public:
  WordPiece(std::string prefix, bool tidies) : prefix_(std::move(prefix)), tidies_(tidies) {}
  void Apply(std::vector<std::string>* tokens) const override {
    bool is_first = true;
    StopLook look;
    for (std::string& token : *tokens) {
      look.Did(tidies_ ? kTidiedWork : kTokenWork);
      if (!std::exchange(is_first, false)) {
        if (token.compare(0, prefix_.size(), prefix_) == 0) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, 1, ' ');
        }
      }
      if (!tidies_) continue;
      static constexpr std::pair<std::string_view, std::string_view> kTidied[] = {
          {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
          {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
          {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
      for (const auto& [from, to] : kTidied) token = ReplacedAll(token, from, to);
    }
  }

 private:
  const std::string prefix_;
  const bool tidies_;
};

absl::StatusOr<std::unique_ptr<Decoder>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "prefix", "cleanup"});
  std::string prefix = "##";
  bool tidies = true;
  if (status.ok()) status = json["prefix"].Read(&prefix);
  if (status.ok()) status = json["cleanup"].Read(&tidies);
  if (!status.ok()) return status;
  return std::make_unique<WordPiece>(std::move(prefix), tidies);
}

const PartRegistration<Decoder> kWordPiece("WordPiece", Make);

}  // namespace
}  // namespace penstock::text
