// The model files of SentencePiece.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "base/utf8.h"
#include "server/text/sentencepiece/model_file.h"
#include "server/text/sentencepiece/pieces.h"
#include "server/text/sentencepiece/rules.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

// U+FFFD for each byte that belongs to no character.
std::string Mended(std::string_view bytes) {
  std::string text;
  StopLook look;
  while (!bytes.empty()) {
    size_t size = 1;
    if (DecodeUtf8(absl::string_view(bytes.data(), bytes.size()), &size) < 0) {
      text += "\ufffd";
      size = 1;
    } else {
      text += bytes.substr(0, size);
    }
    bytes.remove_prefix(size);
    look.Did(size);
  }
  return text;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  struct Parts {
    std::unique_ptr<Pieces> pieces;
    std::unique_ptr<TextRules> rules, rules_back;  // the latter may be null
    std::unique_ptr<PieceModel> model;
    std::string unknown_surface;
    // How many signs of spaces go at the beginning of a text that is made of pieces.
    bool strips_first = false, strips_all = false;
  };

  explicit SentencePieceTokenizer(Parts parts) : parts_(std::move(parts)) {}

  // The library adds nothing around a text, so that there is nothing for add_special_tokens.
  absl::Status Encode(std::string_view text, const EncodeOptions& options,
                      Scratch& scratch) const override {
    scratch.ids.Clear();
    if (absl::Status status = parts_.rules->Apply(text, &scratch.text); !status.ok()) return status;
    parts_.model->Encode(scratch.text, scratch.cache, scratch.ids);
    if (options.max_length > 0) scratch.ids.Cut(static_cast<size_t>(options.max_length));
    return absl::OkStatus();
  }

  absl::Status Decode(absl::Span<const uint32_t> ids, bool skip_special_tokens, bool keep_bytes,
                      std::string* text) const override {
    text->clear();
    std::string bytes;
    const auto end_bytes = [&] {
      *text += keep_bytes ? bytes : Mended(bytes);
      bytes.clear();
    };
    bool begins = true, has_begun = false;
    StopLook look;
    for (size_t i = 0; i < ids.size(); ++i) {
      look.Did(kTokenWork);
      if (ids[i] >= parts_.pieces->size())
        return absl::DataLossError(absl::StrCat("expected ids of the tokenizer, found ", ids[i],
                                                " at ", i, " of ", ids.size()));
      if (text->size() > TextRules::kTextBytesMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat("text longer than the limit: ", TextRules::kTextBytesMax, " bytes, of ",
                         ids.size(), " ids"));
      }
      const Pieces::Piece& found = (*parts_.pieces)[ids[i]];
      std::string_view piece = found.text;
      if (found.kind == PieceKind::kByte) {
        int byte = 0;
        for (const char digit : piece.substr(3, 2))
          byte = byte * 16 + (digit <= '9' ? digit - '0' : digit - 'A' + 10);
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      end_bytes();
      if (has_begun || !text->empty()) begins = false;
      has_begun = false;
      if (found.kind == PieceKind::kControl) {
        if (!skip_special_tokens) *text += piece;
        continue;
      }
      if (found.kind == PieceKind::kUnknown) {
        *text += parts_.unknown_surface;
        continue;
      }
      if (begins && parts_.strips_first && piece.compare(0, kSpaceSign.size(), kSpaceSign) == 0) {
        piece.remove_prefix(kSpaceSign.size());
        has_begun = !parts_.strips_all;
      }
      for (size_t at = 0; at < piece.size();) {
        const size_t sign = std::min(piece.find(kSpaceSign, at), piece.size());
        *text += piece.substr(at, sign - at);
        if (sign < piece.size()) *text += ' ';
        at = sign + kSpaceSign.size();
      }
    }
    end_bytes();
    if (parts_.rules_back != nullptr) {
      std::string made;
      if (absl::Status status = parts_.rules_back->Apply(*text, &made); !status.ok()) return status;
      *text = std::move(made);
    }
    if (!keep_bytes && FindInvalidUtf8(*text) != std::string_view::npos)
      *text = ReplaceNoUtf8(*text);
    return absl::OkStatus();
  }

 private:
  const Parts parts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(std::string_view bytes) {
  auto file = ReadSentencePieceFile(bytes);
  if (!file.ok()) return file.status();
  SentencePieceTokenizer::Parts parts;
  parts.unknown_surface = std::move(file->unknown_surface);
  parts.strips_first = file->rules.adds_space || file->rules.removes_extra_spaces;
  parts.strips_all = file->rules.removes_extra_spaces;
  auto pieces = Pieces::Make(std::move(file->pieces), file->falls_back_to_bytes);
  if (!pieces.ok()) return pieces.status();
  parts.pieces = *std::move(pieces);
  auto rules = TextRules::Make(file->rules, file->space_behind, "normalizer_spec",
                               &parts.pieces->user_defined());
  if (!rules.ok()) return rules.status();
  parts.rules = *std::move(rules);
  // Without a map the library leaves a text alone, whatever else these rules say.
  if (file->rules_back && !file->rules_back->charsmap.empty()) {
    auto back = TextRules::Make(*file->rules_back, false, "denormalizer_spec", nullptr);
    if (!back.ok()) return back.status();
    parts.rules_back = *std::move(back);
  }
  absl::StatusOr<std::unique_ptr<PieceModel>> model;
  switch (file->kind) {
    case PieceModelKind::kUnigram:
      model = MakeUnigramPieces(*parts.pieces);
      break;
    case PieceModelKind::kBpe:
      model = MakeBpePieces(*parts.pieces, parts.rules->space());
      break;
    case PieceModelKind::kWords:
      model = MakeWordPieces(*parts.pieces);
      break;
    case PieceModelKind::kCharacters:
      model = MakeCharacterPieces(*parts.pieces);
      break;
  }
  if (!model.ok()) return model.status();
  parts.model = *std::move(model);
  return std::make_unique<SentencePieceTokenizer>(std::move(parts));
}

}  // namespace penstock::text
