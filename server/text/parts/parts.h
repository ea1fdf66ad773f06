// The kinds of parts of which a tokenizer.json puts a tokenizer together. One file in the folder of
// its kind registers one part, by the name that the file has in "type".
//
// Threads:  registration before main(); parts are constant after they were made, and safe from any
//           thread.
// Errors:   what makes a part refuses what it does not know or cannot do: InvalidArgument with the
//           place in the file.
// Source:   the formats and results are those of the library `tokenizers` (Hugging Face), 0.23.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/text/bpe/byte_bpe.h"
#include "server/text/bpe/id_buffer.h"
#include "server/text/parts/json_part.h"

namespace penstock::text {

struct PublishedPattern;

// Changes a text before it is cut.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void Apply(std::string* text) const = 0;
  // The same of `first` as well, which is what has become of the text's first character: where
  // nothing is left of it, the text begins with what stood behind it.
  virtual void ApplyWithFirst(std::string* text, std::string* first) const {
    Apply(first);
    Apply(text);
  }
};

// A stretch of a text that is cut further, until it is a word.
struct Piece {
  std::string_view text;
  bool begins;  // it begins where the whole text does
};

class PieceList {
 public:
  // `raw_bytes`: the model takes bytes as they are, so that nobody need write them as letters.
  PieceList(Piece first, bool raw_bytes) : raw_bytes_(raw_bytes) { pieces_.push_back(first); }

  // Calls `cut(piece, list)`, which adds the pieces that take its place.
  template <typename Cut>
  void ForEach(Cut cut) {
    std::vector<Piece> before;
    before.swap(pieces_);
    for (const Piece& piece : before) cut(piece, *this);
  }
  // Empty pieces are none.
  void Add(Piece piece) {
    if (!piece.text.empty()) pieces_.push_back(piece);
  }
  // Keeps a text as long as the list.
  std::string_view Keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  const std::vector<Piece>& pieces() const { return pieces_; }
  bool raw_bytes() const { return raw_bytes_; }

 private:
  std::vector<Piece> pieces_;
  std::deque<std::string> kept_;
  const bool raw_bytes_;
};

// Cuts a text into words.
class Pretokenizer {
 public:
  virtual ~Pretokenizer() = default;
  virtual void Cut(PieceList& pieces) const = 0;
  // The pattern by whose matches it cuts, where it does nothing else; else null.
  virtual const PublishedPattern* pattern() const { return nullptr; }
  // Whether it writes bytes as letters, where they are not to stay raw.
  virtual bool maps_bytes() const { return false; }
  // Whether it does nothing else.
  virtual bool only_maps_bytes() const { return false; }
  // Of several, one behind the other; else empty.
  virtual const std::vector<std::unique_ptr<Pretokenizer>>* sequence() const { return nullptr; }
};

// Gives a word's ids.
class Model {
 public:
  virtual ~Model() = default;
  virtual absl::Status Encode(std::string_view word, WordCache& cache, IdBuffer& out) const = 0;
  virtual std::optional<uint32_t> IdOf(std::string_view token) const = 0;
  // Null for an id that it has not.
  virtual const std::string* TokenOf(uint32_t id) const = 0;
  // Not null where it is a BPE whose alphabet are all bytes, written as letters.
  virtual const ByteBpe* byte_bpe() const { return nullptr; }
};

// What stands around the ids of a text.
struct Frame {
  std::vector<uint32_t> before, behind;
};
class Processor {
 public:
  virtual ~Processor() = default;
  // Puts its ids around those that are there.
  virtual void AddTo(Frame* frame) const = 0;
};

// Makes text of tokens.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void Apply(std::vector<std::string>* tokens) const = 0;
};

// Makes a part of its kind by its "type"; a type that nobody registered is refused by name.
template <typename Part>
absl::StatusOr<std::unique_ptr<Part>> MakePart(const JsonPart& json);

// Makes a part of each element of an array.
template <typename Part>
absl::StatusOr<std::vector<std::unique_ptr<Part>>> MakeParts(const JsonPart& json) {
  if (!json.is_array()) return json.Refuse("an array");
  std::vector<std::unique_ptr<Part>> parts;
  for (size_t i = 0; i < json.size(); ++i) {
    auto part = MakePart<Part>(json.At(i));
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  return parts;
}

// Makes a part that has no options: PartRegistration<Decoder> kFuse("Fuse", MakePlain<Decoder,
// Fuse>).
template <typename Kind, typename Part>
absl::StatusOr<std::unique_ptr<Kind>> MakePlain(const JsonPart& json) {
  if (absl::Status status = json.OnlyMembers({"type"}); !status.ok()) return status;
  return std::make_unique<Part>();
}

// Register by static object in an anonymous namespace:
// `const PartRegistration<Normalizer> kNfc("NFC", …);`.
template <typename Part>
struct PartRegistration {
  using Make = absl::StatusOr<std::unique_ptr<Part>> (*)(const JsonPart& json);
  PartRegistration(std::string_view type, Make make);
};

// The same of a type that the caller found.
template <typename Part>
absl::StatusOr<std::unique_ptr<Part>> MakePartOfType(std::string_view type, const JsonPart& json);

}  // namespace penstock::text
