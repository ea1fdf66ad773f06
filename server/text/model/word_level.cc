#include "absl/strings/str_cat.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/vocabulary.h"

namespace penstock::text {
namespace {

// A word is a token, or unknown.
class WordLevel final : public Model {
 public:
  WordLevel(TokenTable tokens, std::string unknown)
      : tokens_(std::move(tokens)), unknown_(std::move(unknown)) {}

  absl::Status Encode(std::string_view word, WordCache&, IdBuffer& out) const override {
    auto id = tokens_.IdOf(word);
    if (!id) id = tokens_.IdOf(unknown_);
    if (!id)
      return absl::DataLossError(
          absl::StrCat("the vocabulary has no token for unknown words, \"", unknown_, "\""));
    out.Append(*id);
    return absl::OkStatus();
  }
  std::optional<uint32_t> IdOf(std::string_view token) const override {
    return tokens_.IdOf(token);
  }
  const std::string* TokenOf(uint32_t id) const override { return tokens_.TokenOf(id); }

 private:
  const TokenTable tokens_;
  const std::string unknown_;
};

absl::StatusOr<std::unique_ptr<Model>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "unk_token", "vocab"});
  std::string unknown = "<unk>";
  if (status.ok()) status = json["unk_token"].Read(&unknown);
  TokenTable tokens;
  if (status.ok()) status = tokens.Read(json["vocab"]);
  if (!status.ok()) return status;
  return std::make_unique<WordLevel>(std::move(tokens), std::move(unknown));
}

const PartRegistration<Model> kWordLevel("WordLevel", Make);

}  // namespace
}  // namespace penstock::text
