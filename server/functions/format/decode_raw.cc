#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"

namespace penstock::expr {
namespace {

constexpr int64_t kLengthMax = int64_t{1} << 28;

class DecodeRaw final : public RowKernel {
 public:
  // `fixed_bytes`: of the result; 0: as many as there are.
  DecodeRaw(DType dtype, bool swaps, size_t fixed_bytes)
      : dtype_(dtype), swaps_(swaps), fixed_bytes_(fixed_bytes) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const size_t element = DTypeSize(dtype_);
    size_t bytes = in.bytes;
    if (fixed_bytes_ == 0) {
      if (bytes % element != 0) {
        return absl::DataLossError(
            absl::StrCat("expected a multiple of ", element, " bytes, found ", bytes));
      }
      out.SetShape({static_cast<int64_t>(bytes / element)});
    } else {
      bytes = fixed_bytes_;
    }
    uint8_t* const to = out.Reserve(bytes);
    const size_t copied = std::min(bytes, in.bytes);
    CopyInPieces(to, in.data, copied);
    ClearInPieces(to + copied, bytes - copied);
    if (swaps_) {
      InPieces(bytes / element, [&](size_t first, size_t some) {
        for (size_t at = first * element; at < (first + some) * element; at += element)
          std::reverse(to + at, to + at + element);
      });
    }
    if (dtype_ == DType::kBool) {
      InPieces(bytes, [&](size_t first, size_t some) {
        for (size_t at = first; at < first + some; ++at) to[at] = to[at] != 0;
      });
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
  const bool swaps_;
  const size_t fixed_bytes_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = ReadStrings(arguments[0], "input_bytes"); !status.ok()) return status;
  std::string name;
  bool little_endian = true;
  int64_t length = 0;
  absl::Status status =
      FirstError({ReadConstant(arguments[1], "out_type", &name),
                  ReadConstant(arguments[2], "little_endian", &little_endian),
                  ReadConstant(arguments[3], "fixed_length", 0, kLengthMax, &length)});
  if (!status.ok()) return status;
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype || DTypeSize(*dtype) == 0)
    return WrongArgument("out_type", "the name of a number's type");
  const auto element = static_cast<int64_t>(DTypeSize(*dtype));
  if (length % element != 0) {
    return WrongArgument("fixed_length",
                         absl::StrCat("a multiple of ", element, ", found ", length));
  }
  BoundRowFunction bound;
  bound.type = {*dtype, {length > 0 ? length / element : kUnknownSize}};
  bound.kernel = std::make_shared<DecodeRaw>(*dtype, !little_endian && element > 1,
                                             static_cast<size_t>(length));
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kDecodeRaw({
    .name = "decode_raw",
    .signature = "decode_raw(input_bytes, out_type, little_endian=True, fixed_length=0)",
    .doc =
        "The bytes of a string as numbers, as tf.io.decode_raw does.\n"
        "\n"
        "input_bytes: a string, or a tensor of strings.\n"
        "out_type: the name of their type, a constant; \"bool\" takes every byte but 0 for True.\n"
        "little_endian: the order of each number's bytes, a constant.\n"
        "fixed_length: bytes, a constant multiple of the type's: longer strings are cut, shorter "
        "ones filled "
        "up with zeros.\n"
        "\n"
        "Shape (n,) after that of input_bytes; n is known where fixed_length is given. Otherwise "
        "strings of one tensor have one length, and a length that is no multiple of "
        "the type's is an "
        "error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
