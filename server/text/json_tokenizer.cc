// The tokenizer.json of `tokenizers`.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "nlohmann/json.hpp"
#include "server/text/added_tokens.h"
#include "server/text/parts/parts.h"
#include "server/text/scan/published.h"
#include "server/text/scan/regex.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// As StopLook counts them.
constexpr uint64_t kTokenWork = 64;
constexpr uint64_t kByteWork = 16;  // that a model goes through

struct Truncation {
  int64_t max_length = 0;  // 0: none
  bool from_left = false;
};

struct Parts {
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<Pretokenizer> pretokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder;
  AddedTokens added;
  Frame frame;
  Truncation truncation;
};

// The parts of a sequence of pre-tokenisers, and of those in it, in order.
void Flatten(const Pretokenizer* part, std::vector<const Pretokenizer*>* parts) {
  if (part == nullptr) return;
  if (part->sequence() == nullptr) return parts->push_back(part);
  for (const auto& inner : *part->sequence()) Flatten(inner.get(), parts);
}

class JsonTokenizer final : public Tokenizer {
 public:
  explicit JsonTokenizer(Parts parts) : parts_(std::move(parts)) {
    std::vector<const Pretokenizer*> cuts;
    Flatten(parts_.pretokenizer.get(), &cuts);
    // Where bytes become letters last of all, the model takes the bytes themselves.
    const auto maps = [](const Pretokenizer* part) { return part->maps_bytes(); };
    raw_bytes_ = parts_.model->byte_bpe() != nullptr && !cuts.empty() &&
                 cuts.back()->maps_bytes() && std::count_if(cuts.begin(), cuts.end(), maps) == 1;
    if (!raw_bytes_) return;
    // A pattern alone, or in front of a ByteLevel that does no more than map.
    if (cuts.size() == 1) pattern_ = cuts[0]->pattern();
    if (cuts.size() == 2 && cuts[1]->only_maps_bytes()) pattern_ = cuts[0]->pattern();
  }

  absl::Status Encode(std::string_view text, const EncodeOptions& options,
                      Scratch& scratch) const override {
    IdBuffer& out = scratch.ids;
    out.Clear();
    if (options.add_special_tokens) out.Append(parts_.frame.before);
    const size_t before = out.size();
    const absl::Status status = WithinRegexSteps([&] { return EncodeText(text, scratch, out); });
    if (!status.ok()) return status;
    const int64_t max_length =
        options.max_length > 0 ? options.max_length : parts_.truncation.max_length;
    if (max_length > 0) {
      const int64_t framed = options.add_special_tokens ? static_cast<int64_t>(num_added()) : 0;
      const auto room = static_cast<size_t>(std::max<int64_t>(max_length - framed, 0));
      const size_t count = out.size() - before;
      if (count > room && parts_.truncation.from_left) {
        out.Erase(before, count - room);
      } else if (count > room) {
        out.Cut(before + room);
      }
    }
    if (options.add_special_tokens) out.Append(parts_.frame.behind);
    return absl::OkStatus();
  }

  size_t num_added() const override {
    return parts_.frame.before.size() + parts_.frame.behind.size();
  }

  absl::Status Decode(absl::Span<const uint32_t> ids, bool skip_special_tokens, bool,
                      std::string* text) const override {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    StopLook look;
    for (size_t i = 0; i < ids.size(); ++i) {
      look.Did(kTokenWork);
      const std::string* token = parts_.added.TokenOf(ids[i]);
      if (token == nullptr) token = parts_.model->TokenOf(ids[i]);
      if (token == nullptr)
        return absl::DataLossError(absl::StrCat("expected ids of the tokenizer, found ", ids[i],
                                                " at ", i, " of ", ids.size()));
      if (!skip_special_tokens || !parts_.added.IsSpecial(*token)) tokens.push_back(*token);
    }
    if (parts_.decoder != nullptr) {
      const absl::Status status = WithinRegexSteps([&] {
        parts_.decoder->Apply(&tokens);
        return absl::OkStatus();
      });
      if (!status.ok()) return status;
    }
    text->clear();
    for (size_t i = 0; i < tokens.size(); ++i) {
      look.Did(kTokenWork);
      if (i > 0 && parts_.decoder == nullptr) text->push_back(' ');
      text->append(tokens[i]);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status EncodeText(std::string_view text, Scratch& scratch, IdBuffer& out) const {
    return parts_.added.ForEachPiece(
        text, false, [&](size_t from, size_t to, std::optional<uint32_t> id) {
          if (id) {
            out.Append(*id);
            return absl::OkStatus();
          }
          std::string_view piece = text.substr(from, to - from);
          bool begins = from == 0;
          if (parts_.normalizer != nullptr) {
            // Where the first character goes, what is left begins elsewhere.
            std::string first(piece.substr(0, CodePointBytes(static_cast<uint8_t>(piece[0]))));
            scratch.text.assign(piece);
            parts_.normalizer->ApplyWithFirst(&scratch.text, &first);
            begins = begins && !first.empty();
            piece = scratch.text;
          }
          return parts_.added.ForEachPiece(
              piece, true, [&](size_t begin, size_t end, std::optional<uint32_t> token) {
                if (token) {
                  out.Append(*token);
                  return absl::OkStatus();
                }
                return EncodePiece({piece.substr(begin, end - begin), begins && begin == 0},
                                   scratch, out);
              });
        });
  }

  absl::Status EncodePiece(const Piece& piece, Scratch& scratch, IdBuffer& out) const {
    if (pattern_ != nullptr) {
      pattern_->encode(*parts_.model->byte_bpe(), piece.text, scratch.cache, out);
      return absl::OkStatus();
    }
    PieceList pieces(piece, raw_bytes_);
    if (parts_.pretokenizer != nullptr) parts_.pretokenizer->Cut(pieces);
    StopLook look;
    for (const Piece& word : pieces.pieces()) {
      look.Did(kTokenWork + word.text.size() * kByteWork);
      if (raw_bytes_) {
        const auto* const bytes = reinterpret_cast<const uint8_t*>(word.text.data());
        parts_.model->byte_bpe()->Encode(bytes, word.text.size(), bytes + word.text.size(),
                                         scratch.cache, out);
        continue;
      }
      absl::Status status = parts_.model->Encode(word.text, scratch.cache, out);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const Parts parts_;
  bool raw_bytes_ = false;
  const PublishedPattern* pattern_ = nullptr;  // not null: all that cuts
};

absl::Status ReadTruncation(const JsonPart& json, Truncation* truncation) {
  if (json.is_null()) return absl::OkStatus();
  absl::Status status = json.OnlyMembers({"direction", "max_length", "strategy", "stride"});
  uint32_t max_length = 0;
  std::string direction = "Right", strategy = "LongestFirst";
  if (status.ok()) status = json["max_length"].ReadId(&max_length);
  if (status.ok()) status = json["direction"].Read(&direction);
  if (status.ok()) status = json["strategy"].Read(&strategy);
  if (!status.ok()) return status;
  if (max_length == 0) return json["max_length"].Refuse("an integer from 1 on");
  if (direction != "Right" && direction != "Left")
    return json["direction"].Refuse("one of Right, Left");
  if (strategy != "LongestFirst" && strategy != "OnlyFirst")
    return json["strategy"].Refuse("one of LongestFirst, OnlyFirst, as there is one text");
  *truncation = {max_length, direction == "Left"};
  return absl::OkStatus();
}

// Old files do not say which model they have.
std::string ModelType(const JsonPart& json) {
  if (!json["merges"].is_null()) return "BPE";
  if (json["vocab"].value().is_array()) return "Unigram";
  return json["continuing_subword_prefix"].is_null() ? "WordLevel" : "WordPiece";
}

template <typename Part>
absl::Status ReadPart(const JsonPart& json, std::unique_ptr<Part>* part) {
  if (json.is_null()) return absl::OkStatus();
  auto made = MakePart<Part>(json);
  if (!made.ok()) return made.status();
  *part = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Make(const JsonPart& json) {
  absl::Status status =
      json.OnlyMembers({"version", "truncation", "padding", "added_tokens", "normalizer",
                        "pre_tokenizer", "post_processor", "decoder", "model"});
  std::string version = "1.0";
  if (status.ok()) status = json["version"].Read(&version);
  if (status.ok() && version != "1.0") status = json["version"].Refuse("\"1.0\"");
  Parts parts;
  std::unique_ptr<Processor> processor;
  if (status.ok()) status = ReadTruncation(json["truncation"], &parts.truncation);
  // Padding to the longest text of a batch leaves a text by itself alone.
  if (status.ok() && !json["padding"].is_null() &&
      json["padding"]["strategy"].value() != "BatchLongest")
    status = json["padding"]["strategy"].NotSupported("padding to a length");
  if (status.ok()) status = ReadPart(json["normalizer"], &parts.normalizer);
  if (status.ok()) status = ReadPart(json["pre_tokenizer"], &parts.pretokenizer);
  if (status.ok()) status = ReadPart(json["post_processor"], &processor);
  if (status.ok()) status = ReadPart(json["decoder"], &parts.decoder);
  if (!status.ok()) return status;
  const JsonPart model = json["model"];
  if (status = model.MustBeObject(); !status.ok()) return status;
  auto made = model["type"].is_null() ? MakePartOfType<Model>(ModelType(model), model)
                                      : MakePart<Model>(model);
  if (!made.ok()) return made.status();
  parts.model = *std::move(made);
  // Tokens that are looked for in normalised text are normalised here.
  status = WithinRegexSteps(
      [&] { return parts.added.Read(json["added_tokens"], *parts.model, parts.normalizer.get()); });
  if (!status.ok()) return status;
  if (processor != nullptr) processor->AddTo(&parts.frame);
  return std::make_unique<JsonTokenizer>(std::move(parts));
}

// A number with a fraction or an exponent as `tokenizers` reads it, which may be another double
// than the nearest one: its digits are an integer of 64 bits (what does not fit is left out), which
// is rounded to a double and then multiplied or divided by a power of ten. A Unigram's ways through
// a word that are equally good but for rounding are told apart by that.
double AsTheLibraryReadsIt(std::string_view number) {
  constexpr int kMostExponent = 308;
  const bool is_negative = number[0] == '-';
  uint64_t digits = 0;
  int exponent = 0;
  bool is_fraction = false, is_full = false;
  size_t at = is_negative ? 1 : 0;
  for (; at < number.size() && number[at] != 'e' && number[at] != 'E'; ++at) {
    if (number[at] == '.') {
      is_fraction = true;
      is_full = false;
      continue;
    }
    const auto digit = static_cast<uint64_t>(number[at] - '0');
    is_full = is_full || digits > (std::numeric_limits<uint64_t>::max() - digit) / 10;
    if (!is_full) digits = digits * 10 + digit;
    exponent += is_fraction == is_full ? 0 : is_full ? 1 : -1;
  }
  if (at < number.size()) {
    at += number[at + 1] == '+' ? 2 : 1;
    int more = 0;
    const auto [end, error] =
        std::from_chars(number.data() + at, number.data() + number.size(), more);
    if (error != std::errc()) more = number[at] == '-' ? -(1 << 20) : 1 << 20;
    exponent += more;
  }
  auto value = static_cast<double>(digits);
  for (; exponent < -kMostExponent && value != 0; exponent += kMostExponent) value /= 1e308;
  if (value != 0) {
    double power = 1;
    const std::string text = absl::StrCat("1e", std::abs(exponent));
    std::from_chars(text.data(), text.data() + text.size(), power);
    value = exponent < 0 ? value / power : value * power;
  }
  return is_negative ? -value : value;
}

// nlohmann's own reader, but for what a number is.
class Reader : public nlohmann::detail::json_sax_dom_parser<nlohmann::json> {
 public:
  using json_sax_dom_parser::json_sax_dom_parser;

  // NOLINTNEXTLINE(readability-identifier-naming): the library calls it so.
  bool number_float(double nearest, const std::string& text) {
    const double value = AsTheLibraryReadsIt(text);
    return json_sax_dom_parser::number_float(std::isfinite(value) ? value : nearest, text);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeJsonTokenizer(std::string_view file) {
  nlohmann::json document;
  try {
    Reader reader(document);
    nlohmann::json::sax_parse(file, &reader);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("expected a JSON document: ", error.what()));
  }
  return Make(JsonPart(document, ""));
}

}  // namespace penstock::text
