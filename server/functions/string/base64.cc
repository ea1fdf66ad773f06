// Base64 of RFC 4648.
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

// Of text: as many bytes of base64 as stand for whole bytes, and the other way.
constexpr size_t kTextPiece = size_t{4} << 18;
constexpr size_t kBytesPiece = size_t{3} << 18;

bool Has(absl::string_view text, absl::string_view bytes) {
  bool is_one[256] = {};
  for (const char byte : bytes) is_one[static_cast<unsigned char>(byte)] = true;
  return FindInPieces(text, 0, [&is_one](char byte) {
           return is_one[static_cast<unsigned char>(byte)];
         }) < text.size();
}

// Whether it is base64; to `bytes`. Abseil also takes white space, and dots for the = at the end.
bool Decode(absl::string_view text, std::string* bytes) {
  if (Has(text, " \t\n\v\f\r.")) return false;
  const bool is_web_safe = Has(text, "-_");
  const auto decode = [is_web_safe](absl::string_view from, std::string* to) {
    return is_web_safe ? absl::WebSafeBase64Unescape(from, to) : absl::Base64Unescape(from, to);
  };
  if (text.size() <= kTextPiece) return decode(text, bytes);
  bytes->reserve(text.size() / 4 * 3);
  bool is_base64 = true;
  std::string part;
  InPieces(
      text.size(),
      [&](size_t first, size_t some) {
        const absl::string_view piece = text.substr(first, some);
        // What fills up the last one stands in no other.
        const bool is_filled = first + some < text.size() && piece.find('=') != piece.npos;
        is_base64 = is_base64 && !is_filled && decode(piece, &part);
        if (is_base64) bytes->append(part);
      },
      kTextPiece);
  return is_base64;
}

absl::StatusOr<BoundRowFunction> BindDecode(absl::Span<const Argument> arguments) {
  return BindEachText(
      arguments[0], "input", {DType::kString, {}}, [](absl::string_view text, RowOutput& out) {
        std::string bytes;
        if (!Decode(text, &bytes)) {
          return absl::DataLossError(absl::StrCat("expected base64, found a text of ", text.size(),
                                                  " bytes that is none"));
        }
        PutText(bytes, out);
        return absl::OkStatus();
      });
}

absl::StatusOr<BoundRowFunction> BindEncode(absl::Span<const Argument> arguments) {
  bool pads = false;
  if (absl::Status status = ReadConstant(arguments[1], "pad", &pads); !status.ok()) return status;
  return BindEachText(arguments[0], "input", {DType::kString, {}},
                      [pads](absl::string_view bytes, RowOutput& out) {
                        std::string text;
                        text.reserve(bytes.size() / 3 * 4 + 4);
                        InPieces(
                            bytes.size(),
                            [&](size_t first, size_t some) {
                              text += absl::WebSafeBase64Escape(bytes.substr(first, some));
                            },
                            kBytesPiece);
                        if (pads) text.append((4 - text.size() % 4) % 4, '=');
                        PutText(text, out);
                        return absl::OkStatus();
                      });
}

const RowFunctionRegistration kDecodeBase64({
    .name = "decode_base64",
    .signature = "decode_base64(input)",
    .doc =
        "The bytes that a text in base64 (RFC 4648) stands for, as tf.io.decode_base64 reads it, "
        "and also in the alphabet with + and /.\n"
        "\n"
        "input: a string, or a tensor of strings; with or without = at the end. Any other text "
        "is an error of its record.",
    .bind = BindDecode,
});

const RowFunctionRegistration kEncodeBase64({
    .name = "encode_base64",
    .signature = "encode_base64(input, pad=False)",
    .doc = "Bytes as a text in base64 (RFC 4648, the alphabet with - and _), as "
           "tf.io.encode_base64 writes it.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "pad: whether = fills the text up to a multiple of four; a constant.",
    .bind = BindEncode,
});

}  // namespace
}  // namespace penstock::expr
