#include "server/engine/compute/batch_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"

namespace penstock {
namespace {

// What a ring takes (ring/layout.h); one fewer for strings.
constexpr int kMaxRaggedRank = 3;

void FindResolved(const WorkNode& node, std::vector<BatchProgram::Resolved>* found) {
  if (node.kind == WorkNode::Kind::kLoad) {
    if (node.loader->resolves())
      found->push_back({node.loader.get(), node.reference, node.first_file, node.stages.back()});
    return;
  }
  for (const std::unique_ptr<WorkNode>& input : node.inputs) FindResolved(*input, found);
}

// Whether the shape of a batch's tensor is for all of its rows to say.
bool RowsShareShape(const BatchTensor& tensor) {
  if (!tensor.batched || tensor.kind == TensorKind::kRagged) return false;
  return HasUnknownAxes(Shape(tensor.type.shape.begin() + 1, tensor.type.shape.end()));
}

// Whether others do all that is done with what a source gives.
bool IsAllAway(const WorkNode& work) {
  return work.kind == WorkNode::Kind::kWork && work.op->away() != nullptr &&
         work.inputs[0]->kind == WorkNode::Kind::kLoad;
}

}  // namespace

absl::StatusOr<BatchProgram> BatchProgram::Create(const Dataset& dataset,
                                                  absl::Span<const std::string> stage_names,
                                                  World world) {
  BatchProgram program;
  program.work_ = dataset.work.get();
  program.stage_names_ = stage_names;
  FindResolved(*dataset.work, &program.resolved_);
  program.width_ = dataset.width;
  program.form_ = dataset.batch;
  program.batched_ = dataset.batch_rows.has_value();
  program.batch_rows_ = dataset.batch_rows.value_or(1);
  program.world_ = world;
  program.most_rows_ = world.MostRows(program.batch_rows_);
  program.block_rows_ = BlockRows(EstimatedRowBytes(dataset.signature), IsAllAway(*dataset.work));
  for (size_t i = 0; i < dataset.signature.size(); ++i) {
    if (absl::Status status = program.AddTensor(dataset, i); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("\"", dataset.signature[i].name, "\" ", status.message()));
    }
  }
  program.computes_all_rows_ =
      !world.is_alone() &&
      std::any_of(program.tensors_.begin(), program.tensors_.end(), RowsShareShape);
  program.has_variable_ = std::any_of(program.tensors_.begin(), program.tensors_.end(),
                                      [](const BatchTensor& tensor) { return !tensor.fixed(); });
  return program;
}

BatchProgram::Rows BatchProgram::RowsOf(uint32_t rows) const {
  if (!batched_ || form_.remainder != Remainder::kPad) {
    const RowSpan shown = batched_ ? world_.RowsOf(rows) : RowSpan{0, rows};
    return {shown, shown.count};
  }
  // Rows that are no elements have their places among those of all hosts.
  const RowSpan places = world_.RowsOf(batch_rows_);
  const uint32_t before = std::min(rows, places.first);
  return {{before, std::min(rows - before, places.count)}, places.count};
}

absl::Status BatchProgram::AddTensor(const Dataset& dataset, size_t index) {
  const Feature& feature = dataset.signature[index];
  BatchTensor tensor{feature.name, feature.type, batched_};
  Feature seen = feature;
  if (batched_) {
    tensor.type.shape.insert(tensor.type.shape.begin(), most_rows_);
    seen.type.shape.insert(seen.type.shape.begin(),
                           form_.always_full() ? world_.RowsOf(batch_rows_).count : kUnknownSize);
  }
  const bool is_string = feature.type.dtype == DType::kString;
  const bool has_unknown = HasUnknownAxes(feature.type.shape);
  const RowForm form = feature.type.form;
  const bool is_sparse = form == RowForm::kSparse || form == RowForm::kPackedSparse ||
                         (batched_ && form_.kind == BatchForm::Kind::kSparse);
  if (is_string) tensor.kind = TensorKind::kString;
  if (is_sparse) {
    tensor.kind = TensorKind::kSparse;
  } else if (form == RowForm::kPackedRagged) {
    absl::Status status = MakePackedRagged(&tensor, &seen);
    if (!status.ok()) return status;
  } else if (has_unknown && batched_ &&
             (form == RowForm::kRagged || form_.kind == BatchForm::Kind::kRagged)) {
    absl::Status status = MakeRagged(&tensor, &seen);
    if (!status.ok()) return status;
  }
  layouts_.push_back(LayoutOf(dataset, index));
  if (layouts_.back().pads) tensor.padding = layouts_.back().padding;
  const std::optional<int64_t> tensor_bytes = NumBytes(tensor.type);
  if (is_string || has_unknown || is_sparse) {
    element_.push_back(std::move(seen));
    tensors_.push_back(std::move(tensor));
    row_bytes_.push_back(0);
    return absl::OkStatus();
  }
  uint64_t total = 0;
  if (!tensor_bytes ||
      __builtin_add_overflow(fixed_bytes_, static_cast<uint64_t>(*tensor_bytes), &total)) {
    return absl::InvalidArgumentError(
        absl::StrCat("overflows: the size of a batch of ", TypeToString(tensor.type)));
  }
  fixed_bytes_ = total;
  element_.push_back(std::move(seen));
  tensors_.push_back(std::move(tensor));
  row_bytes_.push_back(*NumBytes(feature.type));
  return absl::OkStatus();
}

// As tf.data's ragged_batch: ragged up to the last axis that only the data tells.
absl::Status BatchProgram::MakeRagged(BatchTensor* tensor, Feature* seen) const {
  Shape& shape = tensor->type.shape;
  int rank = static_cast<int>(shape.size()) - 1;
  while (shape[rank] >= 0) --rank;
  const int rank_max = kMaxRaggedRank - (tensor->type.dtype == DType::kString ? 1 : 0);
  if (rank > rank_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", rank, " ragged axes in a ragged_batch; expected at most ", rank_max));
  }
  tensor->kind = TensorKind::kRagged;
  tensor->ragged_rank = rank;
  if (tensor->type.form == RowForm::kPlain)
    tensor->type.narrow_splits = seen->type.narrow_splits = form_.narrow_splits;
  std::fill_n(shape.begin() + 1, rank, kUnknownSize);
  std::fill_n(seen->type.shape.begin() + 1, rank, kUnknownSize);
  return absl::OkStatus();
}

// Rows that are ragged themselves: the axis of rows, if there is one, is another ragged one in
// front.
absl::Status BatchProgram::MakePackedRagged(BatchTensor* tensor, Feature* seen) const {
  Shape& shape = tensor->type.shape;
  // Batches of known size that are rows themselves.
  if (batched_) shape[1] = seen->type.shape[1] = kUnknownSize;
  const int rank = static_cast<int>(std::count(shape.begin() + 1, shape.end(), kUnknownSize));
  const int rank_max = kMaxRaggedRank - (tensor->type.dtype == DType::kString ? 1 : 0);
  if (rank > rank_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", rank, " ragged axes; expected at most ", rank_max));
  }
  tensor->kind = TensorKind::kRagged;
  tensor->ragged_rank = rank;
  return absl::OkStatus();
}

RowLayout BatchProgram::LayoutOf(const Dataset& dataset, size_t index) const {
  RowLayout layout{dataset.work->output[index].type, dataset.signature[index].type.shape};
  if (!batched_ || form_.kind != BatchForm::Kind::kPadded || layout.row.form != RowForm::kPlain)
    return layout;
  layout.padding = form_.values[index];
  layout.pads = HasUnknownAxes(layout.row.shape) || layout.row.shape != layout.shape ||
                (layout.row.dtype == DType::kString && !layout.padding.empty());
  return layout;
}

}  // namespace penstock
