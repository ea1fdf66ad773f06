#include "server/engine/compute/block_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/memory_account.h"
#include "base/pending_call.h"
#include "base/row_shape.h"
#include "base/staying_room.h"
#include "server/engine/tensor/pad_rows.h"

namespace penstock {
namespace {

// A batch above this is in no cache any more when its last row is written: half of the last-level
// cache that is assumed of a machine.
constexpr uint64_t kCachedBatchBytes = 16 << 20;

// Copies a column that was left elsewhere to where it belongs.
void CopyRows(const Column& from, size_t rows, size_t row_bytes, uint8_t* to) {
  if (from.data == to) return;
  for (size_t row = 0; row < rows; ++row)
    CopyInPieces(to + row * row_bytes, from.row(row), row_bytes);
}

// Whether a batch has strings that are copied into the slot from where they lie.
bool HasStrings(const BatchProgram& program) {
  return std::any_of(
      program.layouts().begin(), program.layouts().end(), [](const RowLayout& layout) {
        return layout.row.dtype == DType::kString && layout.row.shape.empty() && !layout.pads;
      });
}

// Where strings of a block may stay until the step is published.
std::shared_ptr<StayingRoom> TakeRoom() {
  static thread_local StayingRooms rooms;
  return rooms.Take();
}

// Whether all of these rows are to be seen.
bool AreShown(const Step& step, uint32_t first, uint32_t rows) {
  return first >= step.shown.first && first + rows <= step.shown.first + step.shown.count;
}

}  // namespace

RowStatus BlockRunner::RunRows(Step* step, uint32_t first, uint32_t rows) {
  // What no row's own code took for its own is the first one's.
  try {
    return RunRowsWithin(step, first, rows);
  } catch (const MemoryLimitError& error) {
    failed_stage_ = evaluator_.failed_stage();
    failed_loading_ = false;
    return {MemoryStatus(error), 0};
  }
}

Columns BlockRunner::Places(const Step& step, uint32_t first, uint32_t rows) const {
  Columns places(program_->tensors().size());
  // Of rows that are other hosts', some go nowhere.
  if (!AreShown(step, first, rows)) return places;
  for (size_t i = 0; i < places.size(); ++i) {
    if (step.slot.tensors[i] != nullptr && !program_->layouts()[i].pads)
      places[i].data = step.slot.tensors[i] + (first - step.shown.first) * program_->row_bytes()[i];
  }
  return places;
}

RowStatus BlockRunner::RunRowsWithin(Step* step, uint32_t first, uint32_t rows) {
  evaluator_.Reset();
  const bool has_strings = program_->has_variable() && HasStrings(*program_);
  const std::shared_ptr<StayingRoom> room = has_strings ? TakeRoom() : nullptr;
  const StayingRoom::Scope scope(room.get());
  Columns out = Places(*step, first, rows);
  const uint32_t width = program_->width();
  RowStatus status = evaluator_.Evaluate(
      program_->work(), {&step->records[size_t{first} * width], rows, width}, absl::MakeSpan(out));
  if (status.ok()) return PutRows(step, first, rows, out);
  failed_stage_ = evaluator_.failed_stage();
  failed_loading_ = evaluator_.failed_loading();
  return status;
}

RowStatus BlockRunner::PutRows(Step* step, uint32_t first, uint32_t rows,
                               absl::Span<const Column> columns) {
  RowStatus lowest;
  const bool had_places = AreShown(*step, first, rows);
  for (size_t i = 0; i < columns.size(); ++i) {
    uint8_t* const tensor = step->slot.tensors[i];
    // The last op wrote it where it belongs.
    if (had_places && tensor != nullptr &&
        columns[i].data == tensor + (first - step->shown.first) * program_->row_bytes()[i])
      continue;
    RowStatus status;
    const RowLayout& layout = program_->layouts()[i];
    if (tensor == nullptr) {
      const uint32_t width = program_->width();
      status = step->variable.Put(i, block_, first, rows, columns[i],
                                  step->records.data() + size_t{first} * width, width);
    } else {
      status = PutFixed(i, layout, *step, first, rows, columns[i]);
    }
    if (!status.ok() && (lowest.ok() || status.row < lowest.row)) lowest = std::move(status);
  }
  if (!lowest.ok()) {
    failed_stage_ = program_->form().stage;
    failed_loading_ = false;
  }
  return lowest;
}

RowStatus BlockRunner::PutFixed(size_t tensor, const RowLayout& layout, const Step& step,
                                uint32_t first, uint32_t rows, const Column& column) const {
  const size_t row_bytes = program_->row_bytes()[tensor];
  const uint32_t begin = std::max(first, step.shown.first);
  const uint32_t end = std::min(first + rows, step.shown.first + step.shown.count);
  if (begin >= end) return {};
  const Column shown = RowsFrom(column, begin - first, layout.row.shape.size());
  uint8_t* const to = step.slot.tensors[tensor] + (begin - step.shown.first) * row_bytes;
  if (!layout.pads) {
    CopyRows(shown, end - begin, row_bytes, to);
    return {};
  }
  RowStatus status = PadRows(program_->tensors()[tensor].name, layout, shown, end - begin, to);
  if (!status.ok()) status.row += static_cast<int>(begin - first);
  return status;
}

RowStatus BlockRunner::LayVariable(Step* step, Arena* room) {
  const uint32_t rows = step->info.rows;
  std::vector<TensorExtent>& extents = step->info.extents;
  if (room == nullptr) return step->variable.Lay(step->slot, rows, step->info.shape_rows, &extents);
  uint64_t bytes = 0;
  RowStatus status = step->variable.Measure(rows, step->info.shape_rows, &extents, &bytes);
  if (!status.ok()) return status;
  if (bytes > UINT32_MAX) {
    return {absl::ResourceExhaustedError(absl::StrCat(
                "a batch that is an element is larger than it may be: ", UINT32_MAX, " bytes")),
            -1};
  }
  step->slot.variable = room->Allocate(bytes);
  step->variable.Write(step->slot.variable, extents);
  return {};
}

void BlockRunner::ShowRows(const BatchProgram& program, Step* step) {
  step->rows = step->info.rows;
  step->first_row = 0;
  const BatchProgram::Rows rows = program.RowsOf(step->rows);
  step->shown = rows.shown;
  step->info.rows = rows.shown.count;
  step->info.shape_rows = rows.shape_rows;
  step->variable.Show(step->shown);
}

void BlockRunner::Complete(const BatchProgram& program, Step* step, Arena* room) {
  program_ = &program;
  if (!step->failure.ok()) return;
  const uint32_t rows = step->info.rows;
  const BatchForm& form = program_->form();
  for (size_t i = 0; i < program_->tensors().size() && step->info.shape_rows > rows; ++i) {
    if (step->slot.tensors[i] == nullptr) continue;
    const size_t row_bytes = program_->row_bytes()[i];
    FillWith(program_->layouts()[i].padding, (step->info.shape_rows - rows) * row_bytes,
             step->slot.tensors[i] + rows * row_bytes);
  }
  if (!program.has_variable()) return;
  RowStatus status;
  try {
    status = LayVariable(step, room);
  } catch (const MemoryLimitError& error) {
    status = {MemoryStatus(error), 0};
  }
  if (status.ok()) return;
  step->failure = std::move(status.status);
  if (status.row < 0) return;
  NoteFailure(step, status.row, step->failure, form.stage, /*loading=*/false);
}

void BlockRunner::Begin(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows) {
  program_ = &program;
  evaluator_.Reset();
  evaluator_.set_past_caches(program.fixed_bytes() > kCachedBatchBytes ? &program.work() : nullptr);
  Resolve(program, step, first, rows);
  block_ = step->variable.TakeBlock();
  FetchRecords(absl::MakeConstSpan(step->records)
                   .subspan(size_t{first} * program.width(), size_t{rows} * program.width()));
}

void BlockRunner::Resolve(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows) {
  for (const BatchProgram::Resolved& source : program.resolved()) {
    StageClock::Scope scope(evaluator_.clock(), source.stage);
    RecordRef* const refs = &step->records[size_t{first} * program.width() + source.reference];
    // It may map files, of which one stands for all: rows of other branches have no reference
    // there.
    const PendingCall call("opening", evaluator_.files().manifest()[source.first_file].path);
    source.loader->Resolve(refs, rows, program.width(), evaluator_.files(), evaluator_.arena());
  }
}

void BlockRunner::Run(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows) {
  Begin(program, step, first, rows);
  RunToFailure(step, first, rows);
  // What it has of others is not kept while it sleeps.
  evaluator_.Reset();
}

bool BlockRunner::RunInParts(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows,
                             absl::Span<const WorkNode* const> nodes, AwayTasks& away,
                             AwayTask* task) {
  if (!std::exchange(begun_, true)) {
    Begin(program, step, first, rows);
    evaluator_.set_rows_away(&rows_away_);
    next_ = first;
  }
  const uint32_t width = program.width();
  const bool are_last = !nodes.empty() && nodes.back() == &program.work();
  while (next_ < first + rows) {
    // What they make last goes to the batch at once.
    const Columns places = are_last ? Places(*step, next_, first + rows - next_) : Columns();
    const bool is_lone = are_last && step->rows == 1 && step->shown.count == 1;
    LoneRowRoom* const room = is_lone ? step->variable.RoomIn(step->slot) : nullptr;
    const uint32_t ready = rows_away_.Begin(
        evaluator_, nodes, {&step->records[size_t{next_} * width], first + rows - next_, width},
        away, task, places, room);
    if (ready == 0) return false;
    if (!RunToFailure(step, next_, ready)) break;
    next_ += ready;
  }
  evaluator_.Reset();
  rows_away_.Reset();
  begun_ = false;
  return true;
}

bool BlockRunner::RunToFailure(Step* step, uint32_t first, uint32_t rows) {
  // An op stops at its own first bad row, but an earlier row may fail in a later op: look again at
  // the rows before it.
  RowStatus failure;
  int stage = 0;
  bool loading = false;
  for (uint32_t left = rows; left > 0;) {
    RowStatus status = RunRows(step, first, left);
    if (status.ok()) break;
    failure = std::move(status);
    stage = failed_stage_;
    loading = failed_loading_;
    left = failure.row;
  }
  if (failure.ok()) return true;

  const int row = static_cast<int>(first) + failure.row;
  std::lock_guard<std::mutex> lock(step->failure_mutex);
  if (!step->failure.ok() && step->failed_row < row) return false;
  NoteFailure(step, row, failure.status, stage, loading);
  return false;
}

void BlockRunner::NoteFailure(Step* step, int row, const absl::Status& status, int stage,
                              bool loading) {
  step->failure_reason =
      absl::StrCat("stage ", program_->stage_names()[stage], ": ", status.message());
  const absl::Status staged(status.code(), step->failure_reason);
  step->failure = WithRowAddress(staged, *step, row);
  // A row that takes too much is named also where it comes of no file.
  if (absl::IsResourceExhausted(status) && step->failure == staged) {
    step->failure =
        absl::Status(status.code(), absl::StrCat(staged.message(), " (row ", step->first_row + row,
                                                 " of step ", step->info.step, ")"));
  }
  step->failed_row = row;
  step->failed_loading = loading;
}

absl::Status BlockRunner::WithRowAddress(const absl::Status& status, const Step& step, int row) {
  const uint32_t width = program_->width();
  return WithElementAddress(status,
                            absl::MakeConstSpan(step.records).subspan(size_t(row) * width, width),
                            program_->work(), evaluator_.files());
}

}  // namespace penstock
