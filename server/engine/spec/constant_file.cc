#include "server/engine/spec/constant_file.h"

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "io/record/record_stream.h"
#include "io/record/text_line_format.h"
#include "server/engine/read/array_files.h"
#include "server/engine/read/npy_strings.h"
#include "server/engine/spec/spec_paths.h"
#include "server/engine/spec/stage_message.h"
#include "server/expr/graph.h"

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

absl::Status CheckBytes(uint64_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("expected elements, found none");
  if (bytes <= static_cast<uint64_t>(expr::kMaxConstantBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("constants larger than limit: ", bytes, " > ",
                                                 expr::kMaxConstantBytes, " bytes"));
}

// Both return the checksum of the values.
absl::StatusOr<uint32_t> ReadArray(const std::string& path, FileSystem& files,
                                   expr::NamedConstant* result) {
  ArrayFiles arrays(files);
  absl::StatusOr<TensorSource> array = arrays.ReadNpy(path);
  if (!array.ok()) return array.status();
  const NpyHeader& header = array->header;
  if (header.element == NpyElement::kUntyped || array->type.dtype == DType::kFloat16) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected bools, integers, float32, float64 or strings, found ",
                     header.element == NpyElement::kUntyped ? "values of a type that NumPy has not"
                                                            : TypeToString(array->type)));
  }
  if (absl::Status status = CheckBytes(header.data_bytes); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
  if (!file.ok()) return file.status();
  std::vector<uint8_t> bytes(header.data_bytes);
  absl::StatusOr<size_t> count = (*file)->ReadAt(header.data_offset, absl::MakeSpan(bytes));
  if (!count.ok()) return count.status();
  if (*count < bytes.size())
    return absl::DataLossError("the file became shorter while it was read");
  const uint32_t crc = Crc32c(bytes.data(), bytes.size());
  result->dtype = array->type.dtype;
  result->shape = array->type.shape;
  if (header.element == NpyElement::kNumber) {
    result->bytes = std::move(bytes);
    return crc;
  }
  result->strings.resize(static_cast<size_t>(*NumElements(result->shape)));
  absl::Status status = DecodeNpyStrings(header, bytes.data(), absl::MakeSpan(result->strings));
  if (!status.ok()) return status;
  return crc;
}

absl::StatusOr<uint32_t> ReadLines(const std::string& path, FileSystem& files,
                                   expr::NamedConstant* result) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
  if (!file.ok()) return file.status();
  if (absl::Status status = CheckBytes((*file)->size()); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<RecordStream>> stream =
      RecordStream::Open(*file, Compression::kNone, {.format = TextLineFormat()});
  if (!stream.ok()) return stream.status();
  uint32_t crc = 0;
  for (RecordChunk chunk; !chunk.end_of_file;) {
    (*stream)->Next(&chunk);
    if (!chunk.error.ok()) return chunk.error;
    for (const RecordChunk::Record& record : chunk.records) {
      const auto* const line = reinterpret_cast<const char*>(chunk.data(record));
      std::string& text = result->strings.emplace_back(line, record.length);
      text.push_back('\n');
      crc = ExtendCrc32c(crc, reinterpret_cast<const uint8_t*>(text.data()), text.size());
      text.pop_back();
    }
  }
  result->dtype = DType::kString;
  result->shape = {static_cast<int64_t>(result->strings.size())};
  return crc;
}

}  // namespace

std::vector<v1::Constant*> ConstantsOf(v1::Stage& stage) {
  std::vector<v1::Constant*> constants;
  google::protobuf::Message* const options = MutableOptionsOf(&stage);
  if (options == nullptr) return constants;
  const google::protobuf::Reflection& reflection = *options->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(*options, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->message_type() != v1::Constant::descriptor()) continue;
    for (int i = 0; i < reflection.FieldSize(*options, field); ++i) {
      constants.push_back(
          static_cast<v1::Constant*>(reflection.MutableRepeatedMessage(options, field, i)));
    }
  }
  return constants;
}

absl::Status ReadConstantFile(const v1::Constant& constant, FileSystem& files,
                              expr::NamedConstant* result, v1::Constant* resolved) {
  const bool is_array = !constant.npy().empty();
  const std::string& path = is_array ? constant.npy() : constant.text_line();
  const auto refuse = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(status.message(), " (", path, ")"));
  };
  absl::StatusOr<uint32_t> crc =
      is_array ? ReadArray(path, files, result) : ReadLines(path, files, result);
  if (!crc.ok())
    return absl::StrContains(crc.status().message(), path) ? crc.status() : refuse(crc.status());
  const TensorType type = {result->dtype, result->shape};
  if (absl::Status status = CheckDeclared(constant, type); !status.ok()) return refuse(status);
  if (constant.has_npy_crc32c() && constant.npy_crc32c() != *crc) {
    return refuse(absl::FailedPreconditionError(
        absl::StrCat("the file holds other values than its npy_crc32c says: expected ",
                     constant.npy_crc32c(), ", found ", *crc)));
  }
  result->has_shape = true;
  resolved->set_npy_crc32c(*crc);
  resolved->set_dtype(DTypeName(type.dtype));
  resolved->mutable_shape()->Assign(type.shape.begin(), type.shape.end());
  return absl::OkStatus();
}

void StripConstantFiles(v1::Stage* stage) {
  VisitPaths(stage, [](PathKind kind, std::string* path) {
    if (kind == PathKind::kConstants) path->clear();
  });
}

}  // namespace penstock
