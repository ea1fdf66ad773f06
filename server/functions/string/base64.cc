// Base64 of RFC 4648.
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

// Abseil also takes white space, and dots for the = at the end.
bool IsLooseBase64(absl::string_view text) {
  return text.find_first_of(" \t\n\v\f\r.") != absl::string_view::npos;
}

absl::StatusOr<BoundRowFunction> BindDecode(absl::Span<const Argument> arguments) {
  return BindEachText(
      arguments[0], "input", {DType::kString, {}}, [](absl::string_view text, RowOutput& out) {
        std::string bytes;
        const bool is_web_safe = text.find_first_of("-_") != absl::string_view::npos;
        if (IsLooseBase64(text) || !(is_web_safe ? absl::WebSafeBase64Unescape(text, &bytes)
                                                 : absl::Base64Unescape(text, &bytes))) {
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
                        std::string text = absl::WebSafeBase64Escape(bytes);
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
