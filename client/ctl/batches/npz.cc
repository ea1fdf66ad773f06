#include "client/ctl/batches/npz.h"

#include <zip.h>

#include <iterator>
#include <list>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ctl {
namespace {

constexpr size_t kNpyAlignment = 64;

const char* NpyType(int dtype) {
  switch (dtype) {
    case PENSTOCK_BOOL:
      return "|b1";
    case PENSTOCK_INT8:
      return "|i1";
    case PENSTOCK_UINT8:
      return "|u1";
    case PENSTOCK_INT16:
      return "<i2";
    case PENSTOCK_UINT16:
      return "<u2";
    case PENSTOCK_INT32:
      return "<i4";
    case PENSTOCK_UINT32:
      return "<u4";
    case PENSTOCK_INT64:
      return "<i8";
    case PENSTOCK_UINT64:
      return "<u8";
    case PENSTOCK_FLOAT16:
      return "<f2";
    case PENSTOCK_BFLOAT16:
      return "|V2";  // NumPy has no name for it
    case PENSTOCK_FLOAT32:
      return "<f4";
    case PENSTOCK_FLOAT64:
      return "<f8";
  }
  return nullptr;
}

NpzArray Numbers(std::string name, std::span<const int64_t> values) {
  return {std::move(name), PENSTOCK_INT64, {std::ssize(values)}, std::as_bytes(values)};
}

std::string Npy(const NpzArray& array) {
  std::string shape;
  for (const int64_t size : array.shape) absl::StrAppend(&shape, size, ",");
  std::string header = absl::StrCat("{'descr': '", NpyType(array.dtype),
                                    "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kPreambleBytes = 10;
  const size_t unpadded = kPreambleBytes + header.size() + 1;
  header.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  header.push_back('\n');

  std::string npy("\x93NUMPY\x01\x00", 8);
  npy.push_back(static_cast<char>(header.size() & 0xff));
  npy.push_back(static_cast<char>(header.size() >> 8));
  npy.reserve(npy.size() + header.size() + array.bytes.size());
  npy += header;
  npy.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return npy;
}

absl::Status AddFile(zip_t* archive, const std::string& name, const std::string& content) {
  zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
  if (source == nullptr) return absl::InternalError(zip_strerror(archive));
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return absl::InternalError(zip_strerror(archive));
  }
  zip_set_file_compression(archive, index, ZIP_CM_STORE, 0);
  return absl::OkStatus();
}

}  // namespace

std::vector<NpzArray> NpzArrays(const Tensor& tensor) {
  const std::string name(tensor.name());
  std::vector<NpzArray> arrays;
  if (tensor.is_string()) {
    arrays.push_back(Numbers(name + ".offsets", tensor.offsets()));
    arrays.push_back(
        {name + ".bytes", PENSTOCK_UINT8, {std::ssize(tensor.bytes())}, tensor.bytes()});
    if (tensor.dynamic()) arrays.push_back(Numbers(name + ".shape", tensor.shape()));
  } else if (tensor.kind() == PENSTOCK_KIND_RAGGED) {
    const int rank = tensor.ragged_rank();
    // All rows of the innermost ragged axis together, and the axes behind it.
    std::vector<int64_t> shape = {tensor.row_splits(rank - 1).back()};
    const std::span<const int64_t> inner = tensor.shape().subspan(rank + 1);
    shape.insert(shape.end(), inner.begin(), inner.end());
    arrays.push_back({name + ".values", tensor.dtype(), std::move(shape), tensor.bytes()});
  } else if (tensor.kind() == PENSTOCK_KIND_SPARSE) {
    const int64_t count = std::ssize(tensor.indices()) / std::ssize(tensor.shape());
    arrays.push_back({name + ".values", tensor.dtype(), {count}, tensor.bytes()});
  } else {
    arrays.push_back(
        {name, tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}, tensor.bytes()});
  }
  for (int axis = 0; axis < tensor.ragged_rank(); ++axis) {
    arrays.push_back(Numbers(absl::StrCat(name, ".row_splits_", axis), tensor.row_splits(axis)));
  }
  if (tensor.kind() == PENSTOCK_KIND_SPARSE) {
    NpzArray indices = Numbers(name + ".indices", tensor.indices());
    const int64_t axes = std::ssize(tensor.shape());
    indices.shape = {std::ssize(tensor.indices()) / axes, axes};
    arrays.push_back(std::move(indices));
    arrays.push_back(Numbers(name + ".dense_shape", tensor.shape()));
  }
  return arrays;
}

absl::Status WriteNpz(const std::string& path, const Batch& batch) {
  int error = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive == nullptr) {
    zip_error_t reason;
    zip_error_init_with_code(&reason, error);
    absl::Status status =
        absl::UnknownError(absl::StrCat("cannot create ", path, ": ", zip_error_strerror(&reason)));
    zip_error_fini(&reason);
    return status;
  }
  std::list<std::string> contents;  // read by zip_close()
  absl::Status status;
  for (size_t i = 0; i < batch.size(); ++i) {
    for (const NpzArray& array : NpzArrays(batch[i])) {
      if (!status.ok()) break;
      status = AddFile(archive, array.name + ".npy", contents.emplace_back(Npy(array)));
    }
  }
  if (status.ok() && zip_close(archive) == 0) return absl::OkStatus();
  if (status.ok()) status = absl::UnknownError(zip_strerror(archive));
  zip_discard(archive);
  return absl::Status(status.code(), absl::StrCat("cannot write ", path, ": ", status.message()));
}

}  // namespace penstock::ctl
