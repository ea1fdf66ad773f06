#include "server/engine/stage/tensor_values.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/order/counted_order.h"
#include "server/engine/read/array_files.h"
#include "server/engine/read/inline_tensor.h"
#include "server/engine/read/tensor_rows.h"

namespace penstock {
namespace {

// Of a tensor without values, whose rows cost nothing in the spec but something in memory.
constexpr uint64_t kMaxEmptyRows = uint64_t{1} << 20;

// The name for messages, of tensor number `i`.
std::string Describe(const std::string& name, int i) {
  return name.empty() ? absl::StrCat("tensor ", i) : absl::StrCat("tensor \"", name, "\"");
}

// Compares what a file holds with what the spec says of it.
absl::Status CheckDeclared(const v1::TensorValues& values, TensorSource* source) {
  absl::StatusOr<TensorType> declared = ReadDeclaredType(values);
  if (!declared.ok()) return declared.status();
  if (source->header.element == NpyElement::kUntyped) {
    if (declared->dtype != DType::kBfloat16) {
      return absl::InvalidArgumentError(
          "an array of 2 bytes without a type (\"V2\"): expected dtype: \"bfloat16\" beside it");
    }
    source->type.dtype = DType::kBfloat16;
  }
  TensorType expected = *std::move(declared);
  if (expected.dtype == DType::kInvalid) expected.dtype = source->type.dtype;
  if (expected.shape.empty()) expected.shape = source->type.shape;
  if (expected != source->type) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ", TypeToString(expected), " in the file, found ", TypeToString(source->type)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorSource> ReadTensor(const v1::TensorValues& values, bool slices,
                                        ArrayFiles& files) {
  const int given = !values.value().empty() + !values.int_value().empty() +
                    !values.uint_value().empty() + !values.string_value().empty() +
                    !values.npy().empty() + !values.npz().empty();
  if (given > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected one of value, int_value, uint_value, string_value, npy and npz, found ", given));
  }
  if (!values.array().empty() && values.npz().empty())
    return absl::InvalidArgumentError("array: names one of an npz; expected npz, found none");
  if (values.npy().empty() && values.npz().empty()) return ReadInlineTensor(values, !slices);
  absl::StatusOr<TensorSource> source =
      values.npz().empty()
          ? files.ReadNpy(values.npy())
          : files.ReadNpz(values.npz(), values.array().empty() ? values.name() : values.array());
  if (!source.ok()) return source;
  if (absl::Status status = CheckDeclared(values, &*source); !status.ok()) return status;
  return source;
}

// Names that differ, and the same number of rows.
absl::Status CheckTogether(const std::vector<TensorSource>& sources, bool slices) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const TensorSource& source = sources[i];
    if (source.name.empty() && sources.size() > 1)
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, ": expected a name, found none"));
    for (size_t j = 0; j < i; ++j) {
      if (sources[j].name == source.name)
        return absl::InvalidArgumentError(
            absl::StrCat("two tensors are called \"", source.name, "\""));
    }
    if (!slices) continue;
    const Shape& shape = source.type.shape;
    if (shape.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(source.name, i), ": expected an axis to slice along, found a scalar"));
    }
    const Shape& first = sources[0].type.shape;
    if (shape[0] != first[0]) {
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(source.name, i), ": expected the first axis to be as long as that of ",
          Describe(sources[0].name, 0), ", ", first[0], ", found ", shape[0]));
    }
    if (!source.in_file && static_cast<uint64_t>(shape[0]) > kMaxEmptyRows &&
        NumElements(shape) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(source.name, i), ": more rows of no values than there may be: ", shape[0], " > ",
          kMaxEmptyRows));
    }
  }
  return absl::OkStatus();
}

class TensorLoader final : public ColumnLoader {
 public:
  TensorLoader(Signature output, bool is_dict, std::vector<std::unique_ptr<TensorRows>> tensors)
      : output_(std::move(output)), is_dict_(is_dict), tensors_(std::move(tensors)) {}

  const Signature& output() const override { return output_; }
  bool is_dict() const override { return is_dict_; }

  RowStatus Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                 Arena& arena) const override {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      RowStatus status = tensors_[i]->Load(rows, files, &out[i], arena);
      if (!status.ok()) return status;
    }
    return {};
  }

  RecordRef Locate(const RecordRef& reference) const override {
    for (const std::unique_ptr<TensorRows>& tensor : tensors_) {
      if (const std::optional<RecordRef> place = tensor->Locate(reference.offset)) return *place;
    }
    return reference;
  }

 private:
  const Signature output_;
  const bool is_dict_;
  const std::vector<std::unique_ptr<TensorRows>> tensors_;
};

}  // namespace

absl::Status PlanTensors(const google::protobuf::RepeatedPtrField<v1::TensorValues>& tensors,
                         const std::string& npz, bool slices, PlanBuilder& plan) {
  if (tensors.empty() == npz.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("expected either tensors or an npz, found ",
                                                   npz.empty() ? "neither" : "both"));
  }
  google::protobuf::RepeatedPtrField<v1::TensorValues> wanted = tensors;
  ArrayFiles files(plan.files());
  if (!npz.empty()) {
    absl::StatusOr<std::vector<std::string>> names = files.List(npz);
    if (!names.ok()) return names.status();
    if (names->empty())
      return absl::InvalidArgumentError(absl::StrCat("the file has no arrays (", npz, ")"));
    for (const std::string& name : *names) {
      v1::TensorValues& tensor = *wanted.Add();
      tensor.set_name(name);
      tensor.set_npz(npz);
    }
  }
  std::vector<TensorSource> sources;
  for (int i = 0; i < wanted.size(); ++i) {
    absl::StatusOr<TensorSource> source = ReadTensor(wanted[i], slices, files);
    if (!source.ok()) {
      return absl::Status(source.status().code(), absl::StrCat(Describe(wanted[i].name(), i), ": ",
                                                               source.status().message()));
    }
    source->name = wanted[i].name();
    sources.push_back(*std::move(source));
  }
  if (absl::Status status = CheckTogether(sources, slices); !status.ok()) return status;

  Manifest manifest = files.manifest();
  if (manifest.empty()) manifest.push_back({});
  const FileRange range = plan.AddFiles(std::move(manifest));
  CountedElements elements;
  elements.step = 1;
  elements.first_file = range.first;
  Signature output;
  std::vector<std::unique_ptr<TensorRows>> rows;
  for (TensorSource& source : sources) {
    const RowCut cut = CutRows(source.type, slices);
    elements.count = cut.rows;
    output.push_back({source.name.empty() ? "value" : source.name, cut.row_type});
    if (source.in_file) {
      rows.push_back(FileRows(cut, std::make_unique<FileArray>(range.first + source.file,
                                                               source.header, source.member)));
    } else if (source.type.dtype == DType::kString) {
      rows.push_back(StringRows(cut, source.strings));
    } else {
      rows.push_back(NumberRows(cut, source.numbers));
    }
  }
  const bool is_dict = !sources[0].name.empty();
  plan.SetSource(std::make_unique<TensorLoader>(std::move(output), is_dict, std::move(rows)), range,
                 CountedOrder(elements));
  return absl::OkStatus();
}

}  // namespace penstock
