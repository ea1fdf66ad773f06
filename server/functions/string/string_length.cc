#include <cstring>
#include <string>

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
                        const auto length =
                            static_cast<int32_t>(counts_characters ? CountUtf8(text) : text.size());
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
