#include "server/engine/block_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Rows that go through all ops before the next ones are looked at. While a strip is computed, whose
// stores keep the memory busy, the records of the next one come nearer.
constexpr uint32_t kStripRows = 32;

// Copies a column that was left elsewhere to where it belongs.
void CopyRows(const Column& from, size_t rows, size_t row_bytes, uint8_t* to) {
  if (from.data == to) return;
  for (size_t row = 0; row < rows; ++row)
    std::memcpy(to + row * row_bytes, from.row(row), row_bytes);
}

}  // namespace

BlockRunner::BlockRunner(const PlanImpl& plan, FileTable& files, StageClock& clock)
    : plan_(plan), evaluator_(files, clock) {}

RowStatus BlockRunner::RunRows(Step* step, uint32_t first, uint32_t rows) {
  evaluator_.Reset();
  const std::vector<BatchTensor>& tensors = plan_.tensors();
  Columns out(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    // The last op writes where the trainer reads.
    if (step->slot.tensors[i] != nullptr)
      out[i].data = step->slot.tensors[i] + first * plan_.row_bytes()[i];
  }
  const uint32_t width = plan_.width();
  RowStatus status = evaluator_.Evaluate(
      plan_.work(), {&step->records[size_t{first} * width], rows, width}, absl::MakeSpan(out));
  if (!status.ok()) return status;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (step->slot.tensors[i] == nullptr) {
      step->variable.Put(i, first, rows, out[i]);
    } else {
      CopyRows(out[i], rows, plan_.row_bytes()[i],
               step->slot.tensors[i] + first * plan_.row_bytes()[i]);
    }
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

void BlockRunner::Fetch(const Step& step, uint32_t first, uint32_t end) const {
  const size_t width = plan_.width();
  FetchRecords(absl::MakeConstSpan(step.records).subspan(first * width, (end - first) * width));
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
    stage = evaluator_.failed_stage();
    left = failure.row;
  }
  if (failure.ok()) return true;

  const int row = static_cast<int>(first) + failure.row;
  std::lock_guard<std::mutex> lock(step->failure_mutex);
  if (!step->failure.ok() && step->failed_row < row) return false;
  absl::Status addressed(failure.status.code(), absl::StrCat("stage ", plan_.stage_names()[stage],
                                                             ": ", failure.status.message()));
  const uint32_t width = plan_.width();
  step->failure = WithElementAddress(
      addressed, absl::MakeConstSpan(step->records).subspan(size_t(row) * width, width),
      plan_.work(), evaluator_.files());
  step->failed_row = row;
  return false;
}

}  // namespace penstock
