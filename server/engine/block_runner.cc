#include "server/engine/block_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Rows that go through all ops before the next ones are looked at. While a strip is computed, whose stores keep the memory
// busy, the records of the next one come nearer.
constexpr uint32_t kStripRows = 32;
// Of each record; what lies behind follows by itself.
constexpr uint32_t kFetchedBytes = 512;

}  // namespace

BlockRunner::BlockRunner(const PlanImpl& plan, FileTable& files, StageClock& clock)
    : plan_(plan), files_(files), clock_(clock) {}

RowStatus BlockRunner::FindBytes(const Step& step, uint32_t first, uint32_t rows, RowBytes* bytes) {
  for (uint32_t row = 0; row < rows; ++row) {
    const RecordRef& record = step.records[first + row];
    bytes[row] = {record.data, record.length};
    if (record.data != nullptr) continue;
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(record.file);
    if (!file.ok()) return {file.status(), static_cast<int>(row)};
    absl::StatusOr<const uint8_t*> data = ReadRecord(**file, record.offset, record.length, arena_);
    if (!data.ok()) return {data.status(), static_cast<int>(row)};
    bytes[row].data = *data;
  }
  return {};
}

RowStatus BlockRunner::RunRows(Step* step, uint32_t first, uint32_t rows) {
  arena_.Reset();
  auto* bytes = arena_.AllocateArray<RowBytes>(rows);
  failed_stage_ = 0;
  {
    StageClock::Scope scope(clock_, 0);
    RowStatus status = FindBytes(*step, first, rows, bytes);
    if (!status.ok()) return status;
  }
  in_.assign(1, Column{nullptr, 0, bytes});
  for (size_t i = 0; i < plan_.work().size(); ++i) {
    const PlannedWork& work = plan_.work()[i];
    failed_stage_ = work.stages.back();
    StageClock::Scope scope(clock_, failed_stage_);
    out_.assign(work.op->output().size(), Column{});
    if (i + 1 == plan_.work().size()) {
      // The last op writes where the trainer reads.
      for (size_t tensor = 0; tensor < out_.size(); ++tensor) {
        out_[tensor].data = step->slot.tensors[tensor] + first * plan_.row_bytes()[tensor];
      }
    }
    RowStatus status = work.op->Run(rows, in_, absl::MakeSpan(out_), arena_);
    if (!status.ok()) return status;
    clock_.Count(failed_stage_, rows);
    std::swap(in_, out_);
  }
  return {};
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

void BlockRunner::Fetch(const Step& step, uint32_t first, uint32_t end) {
  for (uint32_t row = first; row < end; ++row) {
    const RecordRef& record = step.records[row];
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
  const RecordRef& record = step->records[row];
  absl::Status addressed(failure.status.code(), absl::StrCat("stage ", plan_.stage_names()[stage],
                                                             ": ", failure.status.message()));
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files_.Open(record.file);
  step->failure = file.ok() ? WithAddress(addressed, **file, record.offset) : addressed;
  step->failed_row = row;
  return false;
}

}  // namespace penstock
