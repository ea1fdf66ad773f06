#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/codec/inflate.h"
#include "server/expr/arguments.h"
#include "server/expr/each_string.h"
#include "server/expr/scalar_type.h"

namespace penstock::expr {
namespace {

class DecodeCompressed final : public RowKernel {
 public:
  explicit DecodeCompressed(std::optional<Wrapping> wrapping) : wrapping_(wrapping) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const uint8_t* bytes = in.data;
    size_t size = in.bytes;
    LargeCharge charge;
    absl::StatusOr<std::string> inflated;
    if (wrapping_) {
      inflated = Inflate(in.data, in.bytes, *wrapping_, charge);
      if (!inflated.ok()) return inflated.status();
      bytes = reinterpret_cast<const uint8_t*>(inflated->data());
      size = inflated->size();
    }
    uint8_t* const to = out.Reserve(size);
    CopyInPieces(to, bytes, size);
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const std::optional<Wrapping> wrapping_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (absl::Status status = ReadStrings(arguments[0], "bytes"); !status.ok()) return status;
  std::string name;
  if (absl::Status status = ReadConstant(arguments[1], "compression_type", &name); !status.ok())
    return status;
  std::optional<Wrapping> wrapping;
  if (name == "GZIP") {
    wrapping = Wrapping::kGzip;
  } else if (name == "ZLIB") {
    wrapping = Wrapping::kZlib;
  } else if (!name.empty()) {
    return WrongArgument("compression_type", "\"\", \"GZIP\" or \"ZLIB\"");
  }
  BoundRowFunction bound;
  bound.type = ScalarType(DType::kString);
  bound.kernel = std::make_shared<DecodeCompressed>(wrapping);
  bound.tensor_arguments = {0};
  return ForEachString(arguments[0].type.shape, std::move(bound));
}

const RowFunctionRegistration kDecodeCompressed({
    .name = "decode_compressed",
    .signature = "decode_compressed(bytes, compression_type=\"\")",
    .doc = "What a compressed string holds, as tf.io.decode_compressed does.\n"
           "\n"
           "bytes: a string, or a tensor of strings.\n"
           "compression_type: \"GZIP\", \"ZLIB\", or \"\": the string as it is; a constant.\n"
           "\n"
           "Strings, of the shape of bytes. Compressed data behind compressed data is joined. Data "
           "that is cut or malformed, of another checksum, or of more than 256 MiB is an error of "
           "its record, and so are other bytes behind it, zeros too.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
