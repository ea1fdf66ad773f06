#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/codec/number_text.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/scalar_type.h"

namespace penstock::expr {
namespace {

constexpr size_t kShownBytes = 40;

class StringToNumber final : public RowKernel {
 public:
  explicit StringToNumber(DType dtype) : dtype_(dtype) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const absl::string_view text(reinterpret_cast<const char*>(arguments[0].data),
                                 arguments[0].bytes);
    if (!ReadNumber(text, dtype_, out.Reserve(DTypeSize(dtype_)))) {
      return absl::DataLossError(absl::StrCat("expected a number of type ", DTypeName(dtype_),
                                              ", found \"",
                                              absl::CHexEscape(text.substr(0, kShownBytes)), "\""));
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = ReadStrings(arguments[0], "input"); !status.ok()) return status;
  std::string name = "float32";
  if (absl::Status status = ReadConstant(arguments[1], "out_type", &name); !status.ok())
    return status;
  const std::optional<DType> dtype = DTypeFromName(name);
  uint8_t number[8];
  if (!dtype || !ReadNumber("0", *dtype, number)) {
    return WrongArgument(
        "out_type", "\"float32\", \"float64\", \"int32\", \"int64\", \"uint32\" or \"uint64\"");
  }
  BoundRowFunction bound;
  bound.type = ScalarType(*dtype);
  bound.kernel = std::make_shared<StringToNumber>(*dtype);
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kStringToNumber({
    .name = "string_to_number",
    .signature = "string_to_number(input, out_type=\"float32\")",
    .doc = "The number that a text is, as tf.strings.to_number reads it.\n"
           "\n"
           "input: a string, or a tensor of strings; spaces around the number are left out.\n"
           "out_type: \"float32\", \"float64\", \"int32\", \"int64\", \"uint32\" or \"uint64\", a "
           "constant.\n"
           "\n"
           "Floats may be inf and nan. Any other text, one of more than 16 MiB without the spaces "
           "around it, and an integer beyond its type, is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
