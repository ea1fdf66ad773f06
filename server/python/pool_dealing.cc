#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/tick_clock.h"
#include "server/python/pool_core.h"

namespace penstock::python {
namespace {

// Sheets that lie ready at a worker are to take so long together: more is to be had by those that
// are done with theirs.
constexpr uint64_t kAheadNs = 4'000'000;

}  // namespace

void PoolCore::Deal(bool wakes) {
  std::vector<std::shared_ptr<Call>> ended;
  {
    Lock lock(mutex_);
    while (!waiting_.empty()) {
      int tray = 0;
      const std::shared_ptr<Worker> worker = FindTray(&tray);
      if (worker == nullptr) break;
      Tray& taken = worker->trays[tray];
      taken = {.is_taken = true, .is_laid = false, .sheet = std::move(waiting_.front())};
      waiting_.pop_front();
      Lay(worker, tray, lock, &ended);
    }
    // More is wanted than there are hands.
    if (wakes && workers_.size() < static_cast<size_t>(options_.workers) && NumWaiting() > 0)
      Wake();
  }
  Tell(std::move(ended));
}

std::shared_ptr<Worker> PoolCore::FindTray(int* tray) const {
  const uint64_t row_ns = row_ns_.load(std::memory_order_relaxed);
  std::shared_ptr<Worker> best;
  int least = kTrays;
  for (const std::shared_ptr<Worker>& worker : workers_) {
    // One that still loads the function would keep rows from those that are ready.
    if (!worker->is_ready || worker->is_leaving || worker->is_gone) continue;
    int taken = 0, free = -1;
    uint64_t rows = 0;
    for (int i = 0; i < kTrays; ++i) {
      if (worker->trays[i].is_taken) {
        ++taken;
        rows += worker->trays[i].sheet.rows;
      } else {
        free = i;
      }
    }
    // A second one lies ready where a row takes no longer than what a worker may wait for once.
    if (taken > 0 && (row_ns == 0 || rows * row_ns > kAheadNs)) continue;
    if (taken >= least) continue;
    least = taken;
    best = worker;
    *tray = free;
  }
  return best;
}

absl::Status PoolCore::LayOn(Desk& desk, int tray, const Sheet& sheet, uint64_t* bytes) const {
  const absl::Span<const Column> columns = sheet.call->rows->in;
  *bytes = in_.Measure(columns, sheet.first, sheet.rows);
  uint8_t* const to = desk.Inputs(tray, *bytes);
  if (to == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory to hand ", *bytes, " bytes of rows to a Python worker process"));
  }
  in_.Lay(columns, sheet.first, sheet.rows, to);
  return absl::OkStatus();
}

void PoolCore::Lay(const std::shared_ptr<Worker>& worker, int number, Lock& lock,
                   std::vector<std::shared_ptr<Call>>* ended) {
  Tray& tray = worker->trays[number];
  const std::shared_ptr<Call> call = tray.sheet.call;
  const auto free = [&] { tray = {}; };
  if (call->is_over) {
    free();
    EndSheet(call, ended);
    return;
  }
  ++call->busy;
  lock.unlock();
  uint64_t bytes = 0;
  absl::Status status = LayOn(worker->process->desk(), number, tray.sheet, &bytes);
  lock.lock();
  --call->busy;
  if (!status.ok() && !call->is_over) {
    call->is_over = true;
    call->status = std::move(status);
    DropWaiting(call, 0, ended);
  }
  if (call->is_over) {
    free();
    EndSheet(call, ended);
    return;
  }
  const Message message = {.what = static_cast<uint32_t>(What::kWork),
                           .tray = static_cast<uint32_t>(number),
                           .sheet = tray.sheet.number,
                           .rows = tray.sheet.rows,
                           .bytes = bytes};
  if (worker->is_gone || worker->is_leaving) {
    waiting_.push_front(std::move(tray.sheet));
    free();
    return;
  }
  tray.is_laid = true;
  if (worker->order.empty()) worker->idle_until_ns = MonotonicNanos();
  worker->order.push_back(number);
  // Its end is seen by the pool's thread.
  if (!worker->process->Send(message)) worker->process->Kill();
}

void PoolCore::Learn(Worker& worker, uint64_t rows) {
  const uint64_t since = worker.idle_until_ns;
  CountWork(worker, rows);
  worker.rows_made += rows;
  if (rows == 0) return;
  const uint64_t found = std::max<uint64_t>((worker.idle_until_ns - since) / rows, 1);
  const uint64_t known = row_ns_.load(std::memory_order_relaxed);
  // One slow row says little of the others.
  row_ns_.store(known == 0 ? found : (7 * known + std::min(found, 8 * known)) / 8,
                std::memory_order_relaxed);
}

absl::Status PoolCore::TakeRows(Desk& desk, const Message& message, const Sheet& sheet,
                                AwayRows* rows) const {
  Call& call = *sheet.call;
  const MemoryAccount::Scope scope(call.account.get());
  try {
    // All of a call's sheets are taken here, on the pool's thread.
    if (!std::exchange(call.is_prepared, true))
      call.has_place = out_.Prepare(static_cast<uint32_t>(rows->rows), rows->out, rows->arena);
    const uint8_t* const from = desk.Outputs(static_cast<int>(message.tray), message.bytes);
    if (from == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no memory to take ", message.bytes, " bytes of rows from a Python worker process"));
    }
    return out_.Take(from, message.bytes, sheet.first, static_cast<uint32_t>(message.rows),
                     sheet.rows, rows->out, rows->arena, call.has_place, rows->room);
  } catch (const MemoryLimitError& error) {
    return MemoryStatus(error);
  }
}

void PoolCore::Take(Worker& worker, const Message& message, std::string text, Lock& lock,
                    std::vector<std::shared_ptr<Call>>* ended) {
  // What took too long is not taken, though it came in the moment before its end.
  if (worker.asked_ns != 0) return;
  const int number = worker.order.empty() ? -1 : worker.order.front();
  const uint64_t laid = number < 0 ? 0 : worker.trays[number].sheet.rows;
  const bool has_failed = message.what == static_cast<uint32_t>(What::kFailed);
  if (number < 0 || message.tray != static_cast<uint32_t>(number) ||
      message.sheet != worker.trays[number].sheet.number ||
      (has_failed ? message.rows >= laid : message.rows != laid)) {
    // No worker that is sound says that.
    worker.process->Kill();
    return;
  }
  Tray& tray = worker.trays[number];
  const Sheet sheet = tray.sheet;
  const std::shared_ptr<Call>& call = sheet.call;
  Learn(worker, message.rows + (has_failed ? 1 : 0));
  worker.order.pop_front();
  worker.unwanted_ns = 0;
  deaths_ns_.clear();
  if (!call->is_over && call->rows != nullptr) {
    AwayRows* const rows = call->rows;
    ++call->busy;
    lock.unlock();
    const absl::Status status = TakeRows(worker.process->desk(), message, sheet, rows);
    lock.lock();
    --call->busy;
    if (!status.ok() && !call->is_over) {
      call->is_over = true;
      call->status = status;
      DropWaiting(call, 0, ended);
    } else if (has_failed && !call->is_over) {
      FailRow(sheet, sheet.first + static_cast<uint32_t>(message.rows), absl::DataLossError(text),
              ended);
    }
  }
  tray = {};
  EndSheet(call, ended);
}

}  // namespace penstock::python
