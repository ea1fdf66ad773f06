#include "server/engine/section/like_elements.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/engine/tensor/structure.h"

namespace penstock {
namespace {

// The features of its input in another order, and with sizes that only the data tells where the
// input's are known.
class LikeElements final : public WorkOp {
 public:
  // Feature i of `output` is feature sources[i] of `input`.
  LikeElements(Signature input, Signature output, std::vector<size_t> sources)
      : input_(std::move(input)), output_(std::move(output)), sources_(std::move(sources)) {}

  const Signature& output() const override { return output_; }

  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      const Column& from = in[sources_[i]];
      const Shape& shape = input_[sources_[i]].type.shape;
      if (out[i].data != nullptr) {
        const size_t row_bytes = out[i].row_bytes = *NumBytes(output_[i].type);
        for (int row = 0; row < rows; ++row)
          std::memcpy(out[i].data + row * row_bytes, from.row(row), row_bytes);
      } else if (output_[i].type.shape == shape || from.dims != nullptr) {
        out[i] = from;
      } else {
        out[i] = WithDims(from, shape, rows, arena);
      }
    }
    return {};
  }

 private:
  static Column WithDims(const Column& column, const Shape& shape, int rows, Arena& arena) {
    auto* const scattered = arena.AllocateArray<RowBytes>(rows);
    auto* const dims = arena.AllocateArray<int64_t>(rows * shape.size());
    for (int row = 0; row < rows; ++row) {
      scattered[row] = {column.row(row), column.row_size(row)};
      std::copy(shape.begin(), shape.end(), dims + row * shape.size());
    }
    Column result;
    result.rows = scattered;
    result.dims = dims;
    return result;
  }

  const Signature input_;
  const Signature output_;
  const std::vector<size_t> sources_;
};

// For each feature of `like` the one of that name; nullopt where there are others.
std::optional<std::vector<size_t>> SourcesOf(const Signature& like, const Signature& signature) {
  if (like.size() != signature.size()) return std::nullopt;
  std::vector<size_t> sources;
  for (const Feature& feature : like) {
    const auto found = std::find_if(signature.begin(), signature.end(), [&](const Feature& other) {
      return other.name == feature.name;
    });
    if (found == signature.end()) return std::nullopt;
    sources.push_back(found - signature.begin());
  }
  return sources;
}

// Makes of `type` one that elements of `other` have as well; false where there is none.
bool Widen(TensorType* type, const TensorType& other) {
  if (*type == other) return true;
  TensorType widened = other;
  widened.shape = type->shape;
  // What a list is in a batch belongs to its type.
  if (widened != *type || type->form != RowForm::kPlain ||
      type->shape.size() != other.shape.size()) {
    return false;
  }
  for (size_t axis = 0; axis < other.shape.size(); ++axis) {
    if (type->shape[axis] != other.shape[axis]) type->shape[axis] = kUnknownSize;
  }
  return true;
}

void AddWork(int stage, const Signature& output, std::vector<size_t> sources, Dataset* dataset) {
  auto node = std::make_unique<WorkNode>();
  node->kind = WorkNode::Kind::kWork;
  node->stages = {stage};
  node->output = output;
  node->op = std::make_unique<LikeElements>(dataset->signature, output, std::move(sources));
  node->parts.push_back({stage, /*batched=*/false, nullptr});
  node->inputs.push_back(std::move(dataset->work));
  dataset->work = std::move(node);
  dataset->signature = output;
}

}  // namespace

absl::Status MakeAlike(int stage, std::vector<Dataset>* inputs) {
  if (inputs->empty()) return absl::InvalidArgumentError("expected at least one input, found none");
  const Dataset& first = inputs->front();
  Signature signature = first.signature;
  std::vector<std::vector<size_t>> sources;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const Dataset& input = (*inputs)[i];
    // An element belongs to the input whose files it comes from.
    if (i > 0 && input.work->FirstFile() <= (*inputs)[i - 1].work->FirstFile()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i,
                       ": expected another source than those of the inputs before it, found "
                       "window_part of the same elements"));
    }
    std::optional<std::vector<size_t>> found = SourcesOf(signature, input.signature);
    bool alike = found && SameStructure(input.structure, first.structure);
    for (size_t f = 0; alike && f < signature.size(); ++f)
      alike = Widen(&signature[f].type, input.signature[(*found)[f]].type);
    if (!alike) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, ": expected elements like those of input 0, ",
          SignatureToString(first.signature), ", found ", SignatureToString(input.signature)));
    }
    sources.push_back(*std::move(found));
  }
  for (size_t i = 0; i < inputs->size(); ++i) {
    Dataset& input = (*inputs)[i];
    if (input.signature != signature) AddWork(stage, signature, std::move(sources[i]), &input);
    input.structure = first.structure;
  }
  return absl::OkStatus();
}

}  // namespace penstock
