#include "server/engine/constant_file.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/array_files.h"
#include "server/engine/stage_message.h"
#include "server/expr/graph.h"
#include "server/io/crc32c.h"

namespace penstock {
namespace {

// Whether a file holds what the spec says of it.
absl::Status CheckDeclared(const v1::Constant& constant, const TensorType& type) {
  if (!constant.dtype().empty() && DTypeFromName(constant.dtype()) != type.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype: expected \"", constant.dtype(), "\", found ", TypeToString(type)));
  }
  const Shape shape(constant.shape().begin(), constant.shape().end());
  // Without one it may be of any, but where the file has been read before: then it was a scalar.
  const bool is_known = !shape.empty() || (constant.has_npy_crc32c() && !constant.dtype().empty());
  if (is_known && shape != type.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape: expected ", ShapeToString(shape), ", found ", TypeToString(type)));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<v1::Constant*> ConstantsOf(v1::Stage& stage) {
  std::vector<v1::Constant*> constants;
  const google::protobuf::FieldDescriptor* const op_field = OpField(stage);
  if (op_field == nullptr || op_field->message_type() == nullptr) return constants;
  google::protobuf::Message* const op = stage.GetReflection()->MutableMessage(&stage, op_field);
  const google::protobuf::FieldDescriptor* const field =
      op->GetDescriptor()->FindFieldByName("constant");
  if (field == nullptr || field->message_type() != v1::Constant::descriptor()) return constants;
  const google::protobuf::Reflection& reflection = *op->GetReflection();
  for (int i = 0; i < reflection.FieldSize(*op, field); ++i) {
    constants.push_back(
        static_cast<v1::Constant*>(reflection.MutableRepeatedMessage(op, field, i)));
  }
  return constants;
}

absl::Status ReadConstantFile(const v1::Constant& constant, FileSystem& files,
                              expr::NamedConstant* result, v1::Constant* resolved) {
  ArrayFiles arrays(files);
  absl::StatusOr<TensorSource> array = arrays.ReadNpy(constant.npy());
  if (!array.ok()) return array.status();
  const TensorType& type = array->type;
  const std::string place = absl::StrCat(" (", constant.npy(), ")");
  const auto refuse = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(status.message(), place));
  };
  if (array->header.element != NpyElement::kNumber || type.dtype == DType::kFloat16) {
    return refuse(absl::InvalidArgumentError(absl::StrCat(
        "expected bools, integers, float32 or float64, found ",
        array->header.element == NpyElement::kUntyped ? "values of a type that NumPy has not"
                                                      : TypeToString(type))));
  }
  if (array->header.data_bytes == 0)
    return refuse(absl::InvalidArgumentError("expected elements, found none"));
  if (array->header.data_bytes > static_cast<uint64_t>(expr::kMaxConstantBytes)) {
    return refuse(absl::InvalidArgumentError(
        absl::StrCat("constants larger than limit: ", array->header.data_bytes, " > ",
                     expr::kMaxConstantBytes, " bytes")));
  }
  if (absl::Status status = CheckDeclared(constant, type); !status.ok()) return refuse(status);
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(constant.npy());
  if (!file.ok()) return file.status();
  result->bytes.resize(array->header.data_bytes);
  absl::StatusOr<size_t> count =
      (*file)->ReadAt(array->header.data_offset, absl::MakeSpan(result->bytes));
  if (!count.ok()) return count.status();
  if (*count < result->bytes.size())
    return refuse(absl::DataLossError("the file became shorter while it was read"));
  const uint32_t crc = Crc32c(result->bytes.data(), result->bytes.size());
  if (constant.has_npy_crc32c() && constant.npy_crc32c() != crc) {
    return refuse(absl::FailedPreconditionError(
        absl::StrCat("the file holds other values than its npy_crc32c says: expected ",
                     constant.npy_crc32c(), ", found ", crc)));
  }
  result->dtype = type.dtype;
  result->has_shape = true;
  result->shape = type.shape;
  resolved->set_npy_crc32c(crc);
  resolved->set_dtype(DTypeName(type.dtype));
  resolved->mutable_shape()->Assign(type.shape.begin(), type.shape.end());
  return absl::OkStatus();
}

void StripConstantFiles(v1::Stage* stage) {
  for (v1::Constant* const constant : ConstantsOf(*stage)) constant->clear_npy();
}

}  // namespace penstock
