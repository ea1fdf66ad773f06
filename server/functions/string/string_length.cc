#include <cstring>
#include <string>

#include "base/in_pieces.h"
#include "base/utf8.h"
#include "server/expr/arguments.h"
#include "server/expr/texts.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string unit = "BYTE";
  if (absl::Status status = ReadConstant(arguments[1], "unit", &unit); !status.ok()) return status;
  if (unit != "BYTE" && unit != "UTF8_CHAR") {
    return WrongArgument("unit", "\"BYTE\" or \"UTF8_CHAR\"");
  }
  return BindEachText(arguments[0], "input", {DType::kInt32, {}},
                      [counts_characters = unit != "BYTE"](absl::string_view text, RowOutput& out) {
                        size_t count = text.size();
                        if (counts_characters) {
                          count = 0;
                          InPieces(text.size(), [&](size_t first, size_t some) {
                            count += CountUtf8(text.substr(first, some));
                          });
                        }
                        const auto length = static_cast<int32_t>(count);
                        std::memcpy(out.Reserve(sizeof(length)), &length, sizeof(length));
                        out.Commit();
                        return absl::OkStatus();
                      });
}

const RowFunctionRegistration kStringLength({
    .name = "string_length",
    .signature = "string_length(input, unit=\"BYTE\")",
    .doc = "How long a text is, as tf.strings.length counts it; int32.\n"
           "\n"
           "input: a string, or a tensor of strings.\n"
           "unit: \"BYTE\", or \"UTF8_CHAR\": characters of UTF-8, which are bytes that continue "
           "none; a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
