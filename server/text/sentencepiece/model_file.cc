#include "server/text/sentencepiece/model_file.h"

#include <cmath>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/codec/wire.h"

namespace penstock::text {
namespace {

struct Field {
  uint32_t tag;
  uint64_t number;         // of a varint or of four bytes
  std::string_view bytes;  // of what has a length
};

constexpr uint32_t Tag(uint32_t field, wire::WireType type) { return field << 3 | type; }

// Calls `use` for each field of a message, in the order of the file. A field of another type than
// its own has another tag, and counts as unknown.
absl::Status ForEachField(std::string_view message, const std::string& name,
                          absl::FunctionRef<absl::Status(const Field&)> use) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(message.data());
  const uint8_t* const end = begin + message.size();
  for (const uint8_t* at = begin; at < end;) {
    const auto damaged = [&, from = at] {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected a field of a protobuf message, found other bytes at byte ",
                       from - begin, " of ", message.size()));
    };
    Field field{};
    at = wire::ReadTag(at, end, &field.tag);
    if (at == nullptr || field.tag >> 3 == 0) return damaged();
    size_t size = 0;
    switch (field.tag & 7) {
      case wire::kVarint:
        at = wire::ReadVarint(at, end, &field.number);
        break;
      case wire::kLengthDelimited:
        at = wire::ReadSize(at, end, &size);
        if (at == nullptr) return damaged();
        field.bytes = {reinterpret_cast<const char*>(at), size};
        at += size;
        break;
      case wire::kFixed32: {
        if (end - at < 4) return damaged();
        uint32_t number;
        std::memcpy(&number, at, 4);
        field.number = number;
        at += 4;
        break;
      }
      default:
        at = wire::SkipField(field.tag, at, end, wire::kDepthLimit);
    }
    if (at == nullptr) return damaged();
    if (absl::Status status = use(field); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadPiece(std::string_view message, const std::string& name,
                       SentencePieceFile::Piece* piece) {
  absl::Status status = ForEachField(message, name, [&](const Field& field) {
    if (field.tag == Tag(1, wire::kLengthDelimited)) piece->text = field.bytes;
    if (field.tag == Tag(2, wire::kFixed32)) {
      const auto bits = static_cast<uint32_t>(field.number);
      std::memcpy(&piece->score, &bits, sizeof(piece->score));
    }
    // A number that is no type counts as not there, as protobuf has it.
    if (field.tag == Tag(3, wire::kVarint) && field.number >= 1 && field.number <= 6)
      piece->kind = static_cast<PieceKind>(field.number);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (piece->text.empty() || piece->text.find('\0') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat(
        name, ".piece: expected a text without zero bytes, found ",
        piece->text.empty() ? "none" : absl::StrCat(piece->text.size(), " bytes with one")));
  if (std::isnan(piece->score))
    return absl::InvalidArgumentError(absl::StrCat(name, ".score: expected a number, found NaN"));
  return absl::OkStatus();
}

absl::Status ReadTrainer(std::string_view message, SentencePieceFile* file) {
  return ForEachField(message, "trainer_spec", [&](const Field& field) {
    if (field.tag == Tag(3, wire::kVarint) && field.number >= 1 && field.number <= 4)
      file->kind = static_cast<PieceModelKind>(field.number);
    if (field.tag == Tag(24, wire::kVarint)) file->space_behind = field.number != 0;
    if (field.tag == Tag(35, wire::kVarint)) file->falls_back_to_bytes = field.number != 0;
    // The library takes it for a text that a zero byte ends.
    if (field.tag == Tag(44, wire::kLengthDelimited))
      file->unknown_surface = field.bytes.substr(0, field.bytes.find('\0'));
    return absl::OkStatus();
  });
}

absl::Status ReadRules(std::string_view message, const std::string& name,
                       SentencePieceFile::Rules* rules) {
  return ForEachField(message, name, [&](const Field& field) {
    if (field.tag == Tag(2, wire::kLengthDelimited)) rules->charsmap = field.bytes;
    if (field.tag == Tag(3, wire::kVarint)) rules->adds_space = field.number != 0;
    if (field.tag == Tag(4, wire::kVarint)) rules->removes_extra_spaces = field.number != 0;
    if (field.tag == Tag(5, wire::kVarint)) rules->escapes_spaces = field.number != 0;
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<SentencePieceFile> ReadSentencePieceFile(std::string_view bytes) {
  SentencePieceFile file;
  size_t piece_bytes = 0;
  absl::Status status = ForEachField(bytes, "the model", [&](const Field& field) {
    switch (field.tag) {
      case Tag(1, wire::kLengthDelimited): {
        if (file.pieces.size() == kPiecesMax)
          return absl::InvalidArgumentError(
              absl::StrCat("pieces: more than the limit of ", kPiecesMax));
        SentencePieceFile::Piece& piece = file.pieces.emplace_back();
        absl::Status read =
            ReadPiece(field.bytes, absl::StrCat("pieces[", file.pieces.size() - 1, "]"), &piece);
        piece_bytes += piece.text.size();
        if (read.ok() && piece_bytes > kPieceBytesMax)
          return absl::InvalidArgumentError(
              absl::StrCat("pieces: longer than the limit of ", kPieceBytesMax, " bytes together"));
        return read;
      }
      case Tag(2, wire::kLengthDelimited):
        return ReadTrainer(field.bytes, &file);
      case Tag(3, wire::kLengthDelimited):
        return ReadRules(field.bytes, "normalizer_spec", &file.rules);
      case Tag(5, wire::kLengthDelimited):
        if (!file.rules_back) file.rules_back.emplace();
        return ReadRules(field.bytes, "denormalizer_spec", &*file.rules_back);
      default:
        return absl::OkStatus();
    }
  });
  if (!status.ok()) return status;
  return file;
}

}  // namespace penstock::text
