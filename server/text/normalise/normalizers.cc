#include "server/text/parts/byte_letters.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/pattern.h"
#include "server/text/unicode/classes.h"
#include "server/text/unicode/normal_form.h"

namespace penstock::text {
namespace {

template <NormalForm form>
class Form final : public Normalizer {
 public:
  void Apply(std::string* text) const override { *text = Normalized(*text, form); }
};

class Lowercase final : public Normalizer {
 public:
  void Apply(std::string* text) const override { *text = Lowercased(*text); }
};

class ByteLevel final : public Normalizer {
 public:
  void Apply(std::string* text) const override { *text = ToByteLetters(*text); }
};

// The code points of a text that `put` appends, for each of them.
template <typename Put>
void ChangeEach(std::string* text, Put put) {
  std::string result;
  result.reserve(text->size());
  const auto* at = reinterpret_cast<const uint8_t*>(text->data());
  const uint8_t* const end = at + text->size();
  while (at < end) {
    uint32_t code_point;
    const uint8_t* const next = ReadCodePoint(at, &code_point);
    put(code_point,
        std::string_view(reinterpret_cast<const char*>(at), static_cast<size_t>(next - at)),
        &result);
    at = next;
  }
  *text = std::move(result);
}

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

void RemoveFlagged(CharFlag flag, std::string* text) {
  const CodePointTable& flags = Flags();
  ChangeEach(text, [&](uint32_t c, std::string_view bytes, std::string* out) {
    if ((flags[c] & flag) == 0) out->append(bytes);
  });
}

class StripAccents final : public Normalizer {
 public:
  void Apply(std::string* text) const override { RemoveFlagged(kAccent, text); }
};

template <typename Part>
absl::StatusOr<std::unique_ptr<Normalizer>> MakePlain(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type"}); !status.ok()) return status;
  return std::make_unique<Part>();
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

absl::StatusOr<std::unique_ptr<Normalizer>> MakeBert(const JsonPart& json) {
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

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string with)
      : pattern_(std::move(pattern)), with_(std::move(with)) {}
  void Apply(std::string* text) const override { *text = pattern_.Replaced(*text, with_); }

 private:
  const Pattern pattern_;
  const std::string with_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> MakeReplace(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "pattern", "content"});
  Pattern pattern;
  std::string with;
  if (status.ok()) status = pattern.Read(json["pattern"]);
  if (status.ok()) status = json["content"].Read(&with);
  if (!status.ok()) return status;
  return std::make_unique<Replace>(std::move(pattern), std::move(with));
}

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string what) : what_(std::move(what)) {}
  void Apply(std::string* text) const override {
    if (!text->empty()) text->insert(0, what_);
  }

 private:
  const std::string what_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> MakePrepend(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "prepend"});
  std::string what;
  if (status.ok()) status = json["prepend"].Read(&what);
  if (!status.ok()) return status;
  return std::make_unique<Prepend>(std::move(what));
}

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

absl::StatusOr<std::unique_ptr<Normalizer>> MakeStrip(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "strip_left", "strip_right"});
  bool left = true, right = true;
  if (status.ok()) status = json["strip_left"].Read(&left);
  if (status.ok()) status = json["strip_right"].Read(&right);
  if (!status.ok()) return status;
  return std::make_unique<Strip>(left, right);
}

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  void Apply(std::string* text) const override {
    for (const auto& part : parts_) part->Apply(text);
  }

 private:
  const std::vector<std::unique_ptr<Normalizer>> parts_;
};

absl::StatusOr<std::unique_ptr<Normalizer>> MakeSequence(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type", "normalizers"}); !status.ok()) return status;
  auto parts = MakeParts<Normalizer>(json["normalizers"]);
  if (!parts.ok()) return parts.status();
  return std::make_unique<Sequence>(*std::move(parts));
}

const PartRegistration<Normalizer> kNfd("NFD", MakePlain<Form<NormalForm::kNfd>>);
const PartRegistration<Normalizer> kNfkd("NFKD", MakePlain<Form<NormalForm::kNfkd>>);
const PartRegistration<Normalizer> kNfc("NFC", MakePlain<Form<NormalForm::kNfc>>);
const PartRegistration<Normalizer> kNfkc("NFKC", MakePlain<Form<NormalForm::kNfkc>>);
const PartRegistration<Normalizer> kLowercase("Lowercase", MakePlain<Lowercase>);
const PartRegistration<Normalizer> kStripAccents("StripAccents", MakePlain<StripAccents>);
const PartRegistration<Normalizer> kByteLevel("ByteLevel", MakePlain<ByteLevel>);
const PartRegistration<Normalizer> kBert("BertNormalizer", MakeBert);
const PartRegistration<Normalizer> kReplace("Replace", MakeReplace);
const PartRegistration<Normalizer> kPrepend("Prepend", MakePrepend);
const PartRegistration<Normalizer> kStrip("Strip", MakeStrip);
const PartRegistration<Normalizer> kSequence("Sequence", MakeSequence);

}  // namespace
}  // namespace penstock::text
