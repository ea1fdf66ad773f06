#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/row_shape.h"
#include "server/codec/tensor_proto.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class ParseTensor final : public RowKernel {
 public:
  explicit ParseTensor(TensorType type) : type_(std::move(type)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    absl::StatusOr<ParsedTensor> tensor = ParseTensorProto(arguments[0].data, arguments[0].bytes);
    if (!tensor.ok()) return tensor.status();
    if (tensor->type.dtype != type_.dtype || !FitsShape(type_.shape, tensor->type.shape)) {
      return absl::DataLossError(
          absl::StrCat("expected ", TypeToString(type_), ", found ", TypeToString(tensor->type)));
    }
    if (const auto elements = CountElements(tensor->type.shape); !elements.ok())
      return elements.status();
    if (HasUnknownAxes(type_.shape)) out.SetShape(tensor->type.shape);
    const std::string& values = tensor->values;
    uint8_t* const to = out.Reserve(values.size());
    CopyInPieces(to, values.data(), values.size());
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const TensorType type_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& input = arguments[0].type;
  if (input != TensorType{DType::kString, {}} || arguments[0].literal) {
    return absl::InvalidArgumentError(
        absl::StrCat("serialized: expected a string scalar, found ", TypeToString(input)));
  }
  std::string name;
  if (absl::Status status = ReadConstant(arguments[1], "out_type", &name); !status.ok())
    return status;
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype || DTypeSize(*dtype) == 0)
    return WrongArgument("out_type", "the name of a number's type");
  TensorType type{*dtype, {}};
  if (arguments[2].given) {
    const Literal* const literal = arguments[2].literal;
    const auto* sizes = literal != nullptr ? std::get_if<std::vector<int64_t>>(literal) : nullptr;
    if (sizes == nullptr)
      return WrongArgument("shape", "a list of sizes, -1 for those that only the data tells");
    for (const int64_t size : *sizes) {
      if (size < -1) return WrongArgument("shape", "sizes of at least -1");
      type.shape.push_back(size);
    }
  }
  const std::optional<int64_t> elements = NumElements(type.shape);
  if (type.shape.size() > 16 || (elements && *elements > kTensorBytesMax) ||
      (!elements && !HasUnknownAxes(type.shape)))
    return WrongArgument("shape", "at most 16 sizes of at most 2^28 values");
  BoundRowFunction bound;
  bound.type = type;
  bound.kernel = std::make_shared<ParseTensor>(std::move(type));
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kParseTensor({
    .name = "parse_tensor",
    .signature = "parse_tensor(serialized, out_type, shape=None)",
    .doc = "The tensor of a serialized TensorProto, as tf.io.parse_tensor reads it.\n"
           "\n"
           "serialized: a string scalar, as tf.io.serialize_tensor writes it.\n"
           "out_type: the name of the type of its numbers, a constant.\n"
           "shape: a constant list of its sizes, -1 for those that only the data tells; without "
           "it, a scalar. TensorFlow needs none, since "
           "there a tensor may have any number of axes.\n"
           "\n"
           "Another type or shape, and a tensor of strings, is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
