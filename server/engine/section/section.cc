#include "server/engine/section/section.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "base/packed_row.h"
#include "base/row_shape.h"
#include "base/stop_flag.h"
#include "server/engine/compute/step.h"
#include "server/engine/read/row_block.h"

namespace penstock {
namespace {

// As many rows go through all ops before the next ones are looked at.
constexpr uint32_t kStripRows = 32;
// The number of a batch among what is made of its first row: that row has others of its own.
constexpr uint64_t kBatchPath = UINT64_MAX;
// Of an element beside its bytes, as StopLook counts it.
constexpr uint64_t kElementWork = 256;

// Strings as a column has them (base/column.h), of offsets and bytes.
RowBytes JoinStrings(RowBytes offsets, RowBytes bytes, Arena& arena) {
  const size_t count = offsets.size / sizeof(int64_t) - 1;
  const size_t size = count * sizeof(uint32_t) + bytes.size;
  uint8_t* const joined = arena.Allocate(size);
  const auto* ends = reinterpret_cast<const int64_t*>(offsets.data);
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<uint32_t>(ends[i + 1] - ends[i]);
    std::memcpy(joined + i * sizeof(length), &length, sizeof(length));
  }
  if (bytes.size > 0) std::memcpy(joined + count * sizeof(uint32_t), bytes.data, bytes.size);
  return {joined, size};
}

absl::Span<const int64_t> Integers(const RowBytes& bytes) {
  return {reinterpret_cast<const int64_t*>(bytes.data), bytes.size / sizeof(int64_t)};
}

// A ragged or sparse tensor as a row (base/packed_row.h). `part`: those of the tensor, by their
// numbers in ring/layout.h.
RowBytes PackTensor(const BatchTensor& tensor, const std::function<RowBytes(int)>& part,
                    Arena& arena) {
  const bool is_string = tensor.type.dtype == DType::kString;
  const int first = is_string ? 2 : 1;  // part behind the values
  const size_t count =
      is_string ? part(0).size / sizeof(int64_t) - 1 : part(0).size / DTypeSize(tensor.type.dtype);
  const PackedValues values = ReadDenseRow(
      tensor.type.dtype, count, is_string ? JoinStrings(part(0), part(1), arena) : part(0));
  if (tensor.kind == TensorKind::kSparse) {
    return PackSparse(Integers(part(first + 1)), Integers(part(first)), values, arena);
  }
  std::vector<std::vector<int64_t>> splits;
  for (int axis = 0; axis < tensor.ragged_rank; ++axis) {
    const absl::Span<const int64_t> of_axis = Integers(part(first + axis));
    splits.emplace_back(of_axis.begin(), of_axis.end());
  }
  return PackRagged(splits, values, arena);
}

// The tensors of a batch as columns of one row.
Columns ColumnsOf(const BatchProgram& program, const Step& step, Arena& arena) {
  Columns columns(program.tensors().size());
  size_t variable = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const BatchTensor& tensor = program.tensors()[i];
    const size_t ndim = tensor.type.shape.size();
    auto* row = arena.AllocateArray<RowBytes>(1);
    auto* dims = arena.AllocateArray<int64_t>(ndim);
    std::copy(tensor.type.shape.begin(), tensor.type.shape.end(), dims);
    dims[0] = step.info.shape_rows;
    if (tensor.fixed()) {
      *row = {step.slot.tensors[i], step.info.shape_rows * program.row_bytes()[i]};
    } else {
      const TensorExtent& extent = step.info.extents[variable++];
      const auto part = [&](int number) {
        return RowBytes{step.slot.variable + extent.parts[number].offset,
                        extent.parts[number].bytes};
      };
      columns[i].rows = row;
      if (tensor.kind == TensorKind::kRagged || tensor.kind == TensorKind::kSparse) {
        *row = PackTensor(tensor, part, arena);
        continue;
      }
      const bool is_string = tensor.kind == TensorKind::kString;
      if (HasUnknownAxes(tensor.type.shape)) {
        std::memcpy(dims, part(is_string ? 2 : 1).data, ndim * sizeof(int64_t));
      }
      *row = is_string ? JoinStrings(part(0), part(1), arena) : part(0);
    }
    columns[i].rows = row;
    columns[i].dims = dims;
  }
  return columns;
}

}  // namespace

void SectionRunner::Run(SectionTask* task) {
  const uint32_t rows = static_cast<uint32_t>(task->rows);
  if (task->section->batch != nullptr) {
    try {
      RunBatch(task);
    } catch (const MemoryLimitError& error) {
      task->elements.clear();
      task->error = MemoryStatus(error);
      task->error =
          absl::Status(task->error.code(),
                       absl::StrCat("stage ", task->section->stage_names[task->section->stage],
                                    ": ", task->error.message()));
    }
  } else {
    for (uint32_t first = 0; first < rows; first += kStripRows) {
      if (!RunStrip(task, first, std::min(kStripRows, rows - first))) break;
    }
    // What it has of others is not kept while it sleeps.
    evaluator_.Reset();
  }
  Finish(task);
}

void SectionRunner::Finish(SectionTask* task) {
  store_.Release(task->records);
  task->records.clear();
  task->element_bytes = HeldBytes(task->elements);
  // From the store on the task is the front's.
  task->done.store(true, std::memory_order_release);  // SYNC section-done
}

bool SectionRunner::RunInParts(SectionTask* task, absl::Span<const WorkNode* const> nodes,
                               AwayTasks& away, AwayTask* away_task) {
  const uint32_t width = task->section->width;
  const auto rows = static_cast<uint32_t>(task->rows);
  evaluator_.set_rows_away(&rows_away_);
  if (next_ == 0) FetchRecords(task->records);
  while (next_ < rows) {
    const uint32_t ready = rows_away_.Begin(
        evaluator_, nodes, {&task->records[size_t{next_} * width], rows - next_, width}, away,
        away_task);
    if (ready == 0) return false;
    if (!RunFetched(task, next_, ready)) break;
    next_ += ready;
  }
  next_ = 0;
  evaluator_.Reset();
  rows_away_.Reset();
  Finish(task);
  return true;
}

// False when nothing follows in this task.
bool SectionRunner::RunStrip(SectionTask* task, uint32_t first, uint32_t rows) {
  const uint32_t width = task->section->width;
  FetchRecords(absl::MakeConstSpan(task->records).subspan(first * width, size_t{rows} * width));
  return RunFetched(task, first, rows);
}

bool SectionRunner::RunFetched(SectionTask* task, uint32_t first, uint32_t rows) {
  const uint32_t end = first + rows;
  while (first < end) {
    // An op stops at its own first bad row, but an earlier row may fail in a later op: look again
    // at the rows before it.
    RowStatus failure;
    int stage = 0;
    bool loading = false;
    for (uint32_t left = end - first; left > 0;) {
      RowStatus status = RunRows(task, first, left);
      if (status.ok()) break;
      failure = std::move(status);
      stage = failed_stage_;
      loading = failed_loading_;
      left = failure.row;
    }
    if (task->ends) return false;
    if (failure.ok()) return true;
    first += failure.row;
    if (!Fail(task, first, failure.status, stage, loading)) return false;
    ++first;
  }
  return true;
}

// Adds what these rows become to the task, if all of them do well.
RowStatus SectionRunner::RunRows(SectionTask* task, uint32_t first, uint32_t rows) {
  const size_t before = task->elements.size();
  try {
    return RunRowsWithin(task, first, rows);
  } catch (const MemoryLimitError& error) {
    store_.Release(absl::MakeConstSpan(task->elements).subspan(before));
    task->elements.resize(before);
    if (element_rows_ != nullptr) element_rows_->resize(before);
    if (failed_loading_) failed_stage_ = evaluator_.failed_stage();
    failed_loading_ = false;
    return {MemoryStatus(error), 0};
  }
}

RowStatus SectionRunner::RunRowsWithin(SectionTask* task, uint32_t first, uint32_t rows) {
  // Until its own rule is at work, what fails is the evaluator's.
  failed_loading_ = true;
  const Section& section = *task->section;
  evaluator_.Reset();
  Columns in(section.work->output.size());
  RowStatus status = evaluator_.Evaluate(
      *section.work, {&task->records[size_t{first} * section.width], rows, section.width},
      absl::MakeSpan(in));
  if (!status.ok()) {
    failed_stage_ = evaluator_.failed_stage();
    failed_loading_ = evaluator_.failed_loading();
    return status;
  }
  failed_stage_ = section.stage;
  failed_loading_ = false;
  StageClock::Scope scope(evaluator_.clock(), section.stage);
  Split split;
  if (section.split->draws()) {
    evaluator_.AddIdentities(
        *section.work, {&task->records[size_t{first} * section.width], rows, section.width}, &in);
  }
  split.counts = {evaluator_.arena().AllocateArray<uint32_t>(rows), rows};
  Columns out(section.split->output().size());
  status = section.split->Run(static_cast<int>(rows), in, &split, absl::MakeSpan(out),
                              evaluator_.arena());
  if (!status.ok()) return status;
  const size_t before = task->elements.size();
  int element = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    if (split.counts[row] == 0) continue;
    RecordRef reference =
        ElementOrigin(absl::MakeConstSpan(task->records)
                          .subspan(size_t{first + row} * section.width, section.width),
                      *section.work, evaluator_.files().manifest());
    const uint64_t path = section.work->PathOf(&task->records[size_t{first + row} * section.width]);
    if (section.makes_blocks && AddBlocks(task, first + row, out, static_cast<uint32_t>(element),
                                          split.counts[row], reference, path)) {
      element += static_cast<int>(split.counts[row]);
      continue;
    }
    StopLook look;
    for (uint32_t i = 0; i < split.counts[row]; ++i) {
      look.Did(kElementWork);
      absl::Status packed =
          section.cells->Pack(out, element++, cells_, &reference, MixPath(path, i));
      if (!packed.ok()) {
        store_.Release(absl::MakeConstSpan(task->elements).subspan(before));
        task->elements.resize(before);
        if (element_rows_ != nullptr) element_rows_->resize(before);
        return {packed, static_cast<int>(row)};
      }
      task->charge.MakeRoom(task->elements, 1);
      task->elements.push_back(reference);
      if (element_rows_ != nullptr) element_rows_->push_back(first + row);
    }
  }
  task->ends = split.ends;
  return {};
}

bool SectionRunner::AddBlocks(SectionTask* task, uint32_t row, absl::Span<const Column> columns,
                              uint32_t first, uint32_t count, const RecordRef& origin,
                              uint64_t path) {
  const Section& section = *task->section;
  const Signature& features = section.split->output();
  const auto input =
      absl::MakeConstSpan(task->records).subspan(size_t{row} * section.width, section.width);
  absl::Span<const uint8_t> outside;
  if (section.takes_cells && input[0].in_cell() && !RowBlock::HasRow(input[0]))
    outside = {input[0].data, input[0].length};
  std::vector<uint32_t> sizes;
  for (uint32_t begin = 0; begin < count; begin += sizes.back()) {
    const std::optional<uint32_t> rows =
        RowBlock::RowsOfNext(features, columns, first + begin, count - begin, outside);
    // The last ones may be few.
    if (!rows || (*rows < RowBlock::kMinRows && begin + *rows < count)) return false;
    sizes.push_back(*rows);
  }
  if (count < RowBlock::kMinRows) return false;
  task->charge.MakeRoom(task->elements, count);
  RecordRef reference = origin;
  reference.in_map = 0;
  reference.resolved = 1;
  StopLook look;
  uint32_t begin = 0;
  for (const uint32_t rows : sizes) {
    auto* const block = const_cast<RowBlock*>(
        RowBlock::Make(features, columns, first + begin, rows, outside, cells_));
    block->path = path;
    block->first_row = begin;
    reference.data = reinterpret_cast<const uint8_t*>(block);
    if (block->shows()) {
      store_.Share(input);
      store_.Own(reference.data, {input.begin(), input.end()});
    }
    const size_t before = task->elements.size();
    task->elements.resize(before + rows, reference);
    for (uint32_t i = 0; i < rows; ++i) task->elements[before + i].length = i;
    if (element_rows_ != nullptr) element_rows_->insert(element_rows_->end(), rows, row);
    begin += rows;
    look.Did(block->bytes + uint64_t{rows} * sizeof(RecordRef));
  }
  return true;
}

// The task's records are those of one batch.
void SectionRunner::RunBatch(SectionTask* task) {
  const Section& section = *task->section;
  const BatchProgram& program = *section.batch;
  StageClock::Scope scope(evaluator_.clock(), section.stage);
  evaluator_.Reset();
  Arena& arena = evaluator_.arena();
  Step step;
  step.records.swap(task->records);
  const absl::Cleanup back = [&] { step.records.swap(task->records); };
  step.info.rows = static_cast<uint32_t>(step.records.size() / section.width);
  const uint64_t rows = program.RowsOf(step.info.rows).shape_rows;
  uint64_t bytes = 0;
  for (size_t i = 0; i < program.tensors().size(); ++i)
    bytes += program.tensors()[i].fixed() ? program.row_bytes()[i] * rows : 0;
  if (bytes > UINT32_MAX) {
    task->error = absl::ResourceExhaustedError(absl::StrCat(
        "stage ", section.stage_names[section.stage],
        ": an element is larger than it may be: ", bytes, " > ", UINT32_MAX, " bytes"));
    return;
  }
  for (size_t i = 0; i < program.tensors().size(); ++i) {
    step.slot.tensors.push_back(
        program.tensors()[i].fixed() ? arena.Allocate(program.row_bytes()[i] * rows) : nullptr);
  }
  step.variable.Reset(program.tensors(), program.layouts(),
                      (program.batch_rows() + program.block_rows() - 1) / program.block_rows());
  // A block that finds out which records its positions are writes that down.
  if (section.hands_on_rows) {
    task->charge.MakeRoom(task->elements, step.records.size());
    task->elements = step.records;
  }
  BlockRunner::ShowRows(program, &step);
  for (uint32_t first = 0; first < step.rows; first += program.block_rows()) {
    batches_.Run(program, &step, first, std::min(program.block_rows(), step.rows - first));
  }
  batches_.Complete(program, &step, &arena);
  if (!step.failure.ok()) {
    task->elements.clear();
    const auto row = absl::MakeConstSpan(step.records)
                         .subspan(size_t(step.failed_row) * section.width, section.width);
    // Rows that make no batch together are the data's fault as well: shapes that differ are no
    // valid argument (as in TensorFlow).
    const absl::Status of_data = absl::IsInvalidArgument(step.failure)
                                     ? absl::DataLossError(step.failure.message())
                                     : step.failure;
    if (!LeftOut(task, row, of_data, step.failure_reason, step.failed_loading))
      task->error = step.failure;
  } else if (section.hands_on_rows) {
    step.records.clear();
  } else {
    const Columns columns = ColumnsOf(program, step, arena);
    RecordRef reference = ElementOrigin(absl::MakeConstSpan(step.records).first(section.width),
                                        *section.work, evaluator_.files().manifest());
    // A batch is known by its first row.
    task->error =
        section.cells->Pack(columns, 0, cells_, &reference,
                            MixPath(section.work->PathOf(step.records.data()), kBatchPath));
    if (task->error.ok()) task->elements.push_back(reference);
  }
}

bool SectionRunner::Fail(SectionTask* task, uint32_t row, const absl::Status& status, int stage,
                         bool loading) {
  const Section& section = *task->section;
  const absl::Status staged(
      status.code(), absl::StrCat("stage ", section.stage_names[stage], ": ", status.message()));
  const auto element =
      absl::MakeConstSpan(task->records).subspan(size_t{row} * section.width, section.width);
  if (LeftOut(task, element, status, staged.message(), loading)) return true;
  task->error = WithElementAddress(staged, element, *section.work, evaluator_.files());
  return false;
}

bool SectionRunner::LeftOut(SectionTask* task, absl::Span<const RecordRef> element,
                            const absl::Status& status, absl::string_view reason, bool loading) {
  const Section& section = *task->section;
  if (!section.ignored || loading || !absl::IsDataLoss(status)) return false;
  task->failures.push_back(
      {task->elements.size(),
       FailedPlace(element, *section.work, evaluator_.files().manifest(), std::string(reason))});
  return true;
}

}  // namespace penstock
