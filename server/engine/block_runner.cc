#include "server/engine/block_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/row_shape.h"
#include "server/engine/pad_rows.h"

namespace penstock {
namespace {

// Rows that go through all ops before the next ones are looked at. While a strip is computed, whose
// stores keep the memory busy, the records of the next one come nearer.
constexpr uint32_t kStripRows = 32;
// Of each record; what lies behind follows by itself.
constexpr uint32_t kFetchedBytes = 512;

// Copies a column that was left elsewhere to where it belongs.
void CopyRows(const Column& from, size_t rows, size_t row_bytes, uint8_t* to) {
  if (from.data == to) return;
  for (size_t row = 0; row < rows; ++row)
    std::memcpy(to + row * row_bytes, from.row(row), row_bytes);
}

}  // namespace

BlockRunner::BlockRunner(const PlanImpl& plan, FileTable& files, StageClock& clock)
    : plan_(plan), files_(files), clock_(clock) {}

RowStatus BlockRunner::Evaluate(const WorkNode& node, RowReferences rows, absl::Span<Column> out) {
  switch (node.kind) {
    case WorkNode::Kind::kLoad: {
      failed_stage_ = node.stages.back();
      StageClock::Scope scope(clock_, failed_stage_);
      return node.loader->Load({rows.refs + node.reference, rows.rows, rows.stride}, files_, out,
                               arena_);
    }
    case WorkNode::Kind::kWork: {
      Columns in(node.inputs[0]->output.size());
      RowStatus status = Evaluate(*node.inputs[0], rows, absl::MakeSpan(in));
      if (!status.ok()) return status;
      failed_stage_ = node.stages.back();
      StageClock::Scope scope(clock_, failed_stage_);
      status = node.op->Run(static_cast<int>(rows.rows), in, out, arena_);
      if (status.ok()) clock_.Count(failed_stage_, rows.rows);
      return status;
    }
    case WorkNode::Kind::kTuple: {
      for (const std::unique_ptr<WorkNode>& input : node.inputs) {
        RowStatus status = Evaluate(*input, rows, out.first(input->output.size()));
        if (!status.ok()) return status;
        out.remove_prefix(input->output.size());
      }
      return {};
    }
    case WorkNode::Kind::kBranch:
      return EvaluateBranches(node, rows, out);
  }
  return {};
}

RowStatus BlockRunner::EvaluateBranches(const WorkNode& node, RowReferences rows,
                                        absl::Span<Column> out) {
  // The first reference that any branch looks at is the element's first.
  const uint32_t first_reference = node.reference;
  const auto branch_of = [&](uint32_t row) {
    const uint32_t file = rows.refs[size_t{row} * rows.stride + first_reference].file;
    return std::upper_bound(node.first_files.begin(), node.first_files.end(), file) -
           node.first_files.begin() - 1;
  };
  const auto branch = branch_of(0);
  uint32_t same = 1;
  while (same < rows.rows && branch_of(same) == branch) ++same;
  if (same == rows.rows) return Evaluate(*node.inputs[branch], rows, out);

  // Each branch computes its own rows, which are then put into their order.
  for (size_t i = 0; i < out.size(); ++i) {
    const std::optional<int64_t> row_bytes = NumBytes(node.output[i].type);
    if (row_bytes) {
      out[i].row_bytes = *row_bytes;
      if (out[i].data == nullptr) out[i].data = arena_.Allocate(*row_bytes * rows.rows);
    } else {
      out[i].rows = arena_.AllocateArray<RowBytes>(rows.rows);
      const Shape& shape = node.output[i].type.shape;
      if (HasUnknownAxes(shape))
        out[i].dims = arena_.AllocateArray<int64_t>(shape.size() * rows.rows);
    }
  }
  RowStatus lowest;
  int stage_of_lowest = 0;
  for (size_t b = 0; b < node.inputs.size(); ++b) {
    auto* refs = arena_.AllocateArray<RecordRef>(size_t{rows.rows} * rows.stride);
    auto* places = arena_.AllocateArray<uint32_t>(rows.rows);
    uint32_t count = 0;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      if (branch_of(row) != static_cast<ptrdiff_t>(b)) continue;
      std::copy_n(rows.refs + size_t{row} * rows.stride, rows.stride,
                  refs + size_t{count} * rows.stride);
      places[count++] = row;
    }
    if (count == 0) continue;
    Columns columns(node.output.size());
    RowStatus status =
        Evaluate(*node.inputs[b], {refs, count, rows.stride}, absl::MakeSpan(columns));
    if (!status.ok()) {
      const int row = static_cast<int>(places[status.row]);
      if (lowest.ok() || row < lowest.row) {
        lowest = {std::move(status.status), row};
        stage_of_lowest = failed_stage_;
      }
      continue;
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      for (uint32_t r = 0; r < count; ++r) {
        if (out[i].data != nullptr) {
          std::memcpy(out[i].data + places[r] * out[i].row_bytes, columns[i].row(r),
                      out[i].row_bytes);
        } else {
          const_cast<RowBytes*>(out[i].rows)[places[r]] = {columns[i].row(r),
                                                           columns[i].row_size(r)};
          if (out[i].dims == nullptr) continue;
          const size_t axes = node.output[i].type.shape.size();
          std::copy_n(columns[i].dims + r * axes, axes,
                      const_cast<int64_t*>(out[i].dims) + places[r] * axes);
        }
      }
    }
  }
  if (!lowest.ok()) failed_stage_ = stage_of_lowest;
  return lowest;
}

RowStatus BlockRunner::RunRows(Step* step, uint32_t first, uint32_t rows) {
  arena_.Reset();
  const std::vector<BatchTensor>& tensors = plan_.tensors();
  Columns out(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    // The last op writes where the trainer reads.
    if (step->slot.tensors[i] != nullptr && !plan_.layouts()[i].pads)
      out[i].data = step->slot.tensors[i] + first * plan_.row_bytes()[i];
  }
  const uint32_t width = plan_.width();
  RowStatus status = Evaluate(plan_.work(), {&step->records[size_t{first} * width], rows, width},
                              absl::MakeSpan(out));
  return status.ok() ? PutRows(step, first, rows, out) : status;
}

RowStatus BlockRunner::PutRows(Step* step, uint32_t first, uint32_t rows,
                               absl::Span<const Column> columns) {
  RowStatus lowest;
  for (size_t i = 0; i < columns.size(); ++i) {
    RowStatus status;
    const RowLayout& layout = plan_.layouts()[i];
    const size_t row_bytes = plan_.row_bytes()[i];
    if (step->slot.tensors[i] == nullptr) {
      status = step->variable.Put(i, first, rows, columns[i]);
    } else if (layout.pads) {
      status = PadRows(plan_.tensors()[i].name, layout, columns[i], rows,
                       step->slot.tensors[i] + first * row_bytes);
    } else {
      CopyRows(columns[i], rows, row_bytes, step->slot.tensors[i] + first * row_bytes);
    }
    if (!status.ok() && (lowest.ok() || status.row < lowest.row)) lowest = std::move(status);
  }
  if (!lowest.ok()) failed_stage_ = plan_.batch_form().stage;
  return lowest;
}

void BlockRunner::Complete(Step* step) {
  if (!step->failure.ok()) return;
  const uint32_t rows = step->info.rows;
  const BatchForm& form = plan_.batch_form();
  step->info.shape_rows =
      plan_.batched() && form.remainder == Remainder::kPad ? plan_.batch_rows() : rows;
  for (size_t i = 0; i < plan_.tensors().size() && step->info.shape_rows > rows; ++i) {
    if (step->slot.tensors[i] == nullptr) continue;
    const size_t row_bytes = plan_.row_bytes()[i];
    FillWith(plan_.layouts()[i].padding, (step->info.shape_rows - rows) * row_bytes,
             step->slot.tensors[i] + rows * row_bytes);
  }
  if (plan_.variable_bytes() == 0) return;
  RowStatus status =
      step->variable.Lay(step->slot, rows, step->info.shape_rows, &step->info.extents);
  if (status.ok()) return;
  step->failure = std::move(status.status);
  if (status.row < 0) return;
  step->failed_row = status.row;
  step->failure = WithRowAddress(
      absl::Status(step->failure.code(), absl::StrCat("stage ", plan_.stage_names()[form.stage],
                                                      ": ", step->failure.message())),
      *step, status.row);
}

void BlockRunner::Run(Step* step, uint32_t first, uint32_t rows) {
  const uint32_t end = first + rows;
  Fetch(*step, first, std::min(end, first + kStripRows));
  for (uint32_t row = first; row < end; row += kStripRows) {
    const uint32_t next = std::min(end, row + kStripRows);
    Fetch(*step, next, std::min(end, next + kStripRows));
    if (!RunStrip(step, row, next - row)) return;
  }
}

void BlockRunner::Fetch(const Step& step, uint32_t first, uint32_t end) const {
  for (size_t i = size_t{first} * plan_.width(); i < size_t{end} * plan_.width(); ++i) {
    const RecordRef& record = step.records[i];
    if (record.data == nullptr) continue;
    const uint32_t bytes = std::min(record.length, kFetchedBytes);
    for (uint32_t offset = 0; offset < bytes; offset += 64)
      __builtin_prefetch(record.data + offset);
  }
}

bool BlockRunner::RunStrip(Step* step, uint32_t first, uint32_t rows) {
  // An op stops at its own first bad row, but an earlier row may fail in a later op: look again at
  // the rows before it.
  RowStatus failure;
  int stage = 0;
  for (uint32_t left = rows; left > 0;) {
    RowStatus status = RunRows(step, first, left);
    if (status.ok()) break;
    failure = std::move(status);
    stage = failed_stage_;
    left = failure.row;
  }
  if (failure.ok()) return true;

  const int row = static_cast<int>(first) + failure.row;
  std::lock_guard<std::mutex> lock(step->failure_mutex);
  if (!step->failure.ok() && step->failed_row < row) return false;
  absl::Status addressed(failure.status.code(), absl::StrCat("stage ", plan_.stage_names()[stage],
                                                             ": ", failure.status.message()));
  step->failure = WithRowAddress(addressed, *step, row);
  step->failed_row = row;
  return false;
}

absl::Status BlockRunner::WithRowAddress(const absl::Status& status, const Step& step, int row) {
  for (uint32_t i = 0; i < plan_.width(); ++i) {
    const RecordRef& record = step.records[size_t(row) * plan_.width() + i];
    if (record.file >= plan_.manifest().size() || plan_.manifest()[record.file].path.empty())
      continue;
    const RecordRef place = plan_.work().SourceOf(record.file)->loader->Locate(record);
    return files_.WithRecordAddress(status, place.file, place.offset);
  }
  return status;
}

}  // namespace penstock
