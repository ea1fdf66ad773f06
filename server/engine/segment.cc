#include "server/engine/segment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// As many rows go through all ops before the next ones are looked at.
constexpr uint32_t kStripRows = 32;

// The reference that a new element shows as its origin: the first that lies in a file.
RecordRef Origin(absl::Span<const RecordRef> element, const WorkNode& work,
                 const Manifest& manifest) {
  for (const RecordRef& record : element) {
    if (record.file >= manifest.size() || manifest[record.file].path.empty()) continue;
    RecordRef place = work.SourceOf(record.file)->loader->Locate(record);
    place.epoch = element.front().epoch;
    return place;
  }
  return element.front();
}

}  // namespace

void SegmentRunner::Run(SegmentTask* task) {
  const uint32_t rows = static_cast<uint32_t>(task->rows);
  for (uint32_t first = 0; first < rows; first += kStripRows) {
    if (!RunStrip(task, first, std::min(kStripRows, rows - first))) break;
  }
  store_.Release(task->records);
  task->records.clear();
  // From the store on the task is the front's.
  task->done.store(true, std::memory_order_release);  // SYNC segment-done
}

// False when nothing follows in this task.
bool SegmentRunner::RunStrip(SegmentTask* task, uint32_t first, uint32_t rows) {
  const uint32_t width = task->segment->width;
  FetchRecords(absl::MakeConstSpan(task->records).subspan(first * width, size_t{rows} * width));
  const uint32_t end = first + rows;
  while (first < end) {
    // An op stops at its own first bad row, but an earlier row may fail in a later op: look again at
    // the rows before it.
    RowStatus failure;
    int stage = 0;
    for (uint32_t left = end - first; left > 0;) {
      RowStatus status = RunRows(task, first, left);
      if (status.ok()) break;
      failure = std::move(status);
      stage = failed_stage_;
      left = failure.row;
    }
    if (task->ends) return false;
    if (failure.ok()) return true;
    first += failure.row;
    Fail(task, first, failure.status, stage);
    if (!task->segment->skip_failures) return false;
    ++first;
  }
  return true;
}

// Adds what these rows become to the task, if all of them do well.
RowStatus SegmentRunner::RunRows(SegmentTask* task, uint32_t first, uint32_t rows) {
  const Segment& segment = *task->segment;
  evaluator_.Reset();
  Columns in(segment.work->output.size());
  RowStatus status = evaluator_.Evaluate(
      *segment.work, {&task->records[size_t{first} * segment.width], rows, segment.width},
      absl::MakeSpan(in));
  if (!status.ok()) {
    failed_stage_ = evaluator_.failed_stage();
    return status;
  }
  failed_stage_ = segment.stage;
  StageClock::Scope scope(evaluator_.clock(), segment.stage);
  Split split;
  split.counts = {evaluator_.arena().AllocateArray<uint32_t>(rows), rows};
  Columns out(segment.split->output().size());
  status = segment.split->Run(static_cast<int>(rows), in, &split, absl::MakeSpan(out),
                              evaluator_.arena());
  if (!status.ok()) return status;
  const size_t before = task->elements.size();
  int element = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    if (split.counts[row] == 0) continue;
    RecordRef reference = Origin(absl::MakeConstSpan(task->records)
                                     .subspan(size_t{first + row} * segment.width, segment.width),
                                 *segment.work, evaluator_.files().manifest());
    for (uint32_t i = 0; i < split.counts[row]; ++i) {
      absl::Status packed = segment.cells->Pack(out, element++, cells_, &reference);
      if (!packed.ok()) {
        store_.Release(absl::MakeConstSpan(task->elements).subspan(before));
        task->elements.resize(before);
        return {packed, static_cast<int>(row)};
      }
      task->elements.push_back(reference);
    }
  }
  task->ends = split.ends;
  return {};
}

void SegmentRunner::Fail(SegmentTask* task, uint32_t row, const absl::Status& status, int stage) {
  const Segment& segment = *task->segment;
  const absl::Status staged(
      status.code(), absl::StrCat("stage ", segment.stage_names[stage], ": ", status.message()));
  const auto element =
      absl::MakeConstSpan(task->records).subspan(size_t{row} * segment.width, segment.width);
  if (!segment.skip_failures) {
    task->error = WithElementAddress(staged, element, *segment.work, evaluator_.files());
    return;
  }
  const RecordRef origin = Origin(element, *segment.work, evaluator_.files().manifest());
  task->failures.push_back({task->elements.size(),
                            {origin.file,
                             origin.epoch,
                             {origin.offset, origin.length, DamageReason::kValue},
                             std::string(staged.message())}});
}

}  // namespace penstock
