#include "server/text/normalise/change_each.h"
#include "server/text/parts/parts.h"
#include "server/text/unicode/classes.h"
#include "server/text/unicode/normal_form.h"

namespace penstock::text {
namespace {

constexpr CodePointTable::Run kNonspacingRuns[] = {
#include "server/text/unicode/nonspacing.inc"
};

// The marks that BERT's normaliser removes.
void RemoveNonspacing(std::string* text) {
  static const auto& removed = *new CodePointTable(kNonspacingRuns);
  ChangeEach(text, [&](uint32_t c, std::string_view bytes, std::string* out) {
    if (removed[c] == 0) out->append(bytes);
  });
}

class Bert final : public Normalizer {
 public:
  Bert(bool cleans, bool parts_chinese, bool strips, bool lowers)
      : cleans_(cleans), parts_chinese_(parts_chinese), strips_(strips), lowers_(lowers) {}

  void Apply(std::string* text) const override {
    const CodePointTable& flags = Flags();
    if (cleans_) {
      ChangeEach(text, [&](uint32_t c, std::string_view bytes, std::string* out) {
        if (flags[c] & kBertBlank) {
          out->push_back(' ');
        } else if ((flags[c] & kBertRemoved) == 0) {
          out->append(bytes);
        }
      });
    }
    if (parts_chinese_) {
      ChangeEach(text, [&](uint32_t c, std::string_view bytes, std::string* out) {
        if (flags[c] & kChinese) {
          out->append(" ").append(bytes).append(" ");
        } else {
          out->append(bytes);
        }
      });
    }
    if (strips_) {
      *text = Normalized(*text, NormalForm::kNfd);
      RemoveNonspacing(text);
    }
    if (lowers_) *text = Lowercased(*text);
  }

 private:
  const bool cleans_, parts_chinese_, strips_, lowers_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers(
      {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  bool cleans = true, parts_chinese = true, lowers = true;
  if (status.ok()) status = json["clean_text"].Read(&cleans);
  if (status.ok()) status = json["handle_chinese_chars"].Read(&parts_chinese);
  if (status.ok()) status = json["lowercase"].Read(&lowers);
  bool strips = lowers;
  if (status.ok()) status = json["strip_accents"].Read(&strips);
  if (!status.ok()) return status;
  return std::make_unique<Bert>(cleans, parts_chinese, strips, lowers);
}

const PartRegistration<Normalizer> kBert("BertNormalizer", Make);

}  // namespace
}  // namespace penstock::text
