#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/tick_clock.h"
#include "ring/descriptor.h"
#include "server/python/pool_core.h"

namespace penstock::python {
namespace {

// What a process has for itself: what it maps of files, and of memory that others map too, is left
// out.
uint64_t OwnBytes(pid_t process) {
  const ring::Descriptor file(
      open(absl::StrCat("/proc/", process, "/statm").c_str(), O_RDONLY | O_CLOEXEC));
  char text[128] = {};
  if (!file || read(file.get(), text, sizeof(text) - 1) <= 0) return 0;
  uint64_t all = 0, resident = 0, shared = 0;
  if (std::sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &all, &resident, &shared) != 3)
    return 0;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

bool PoolCore::IsAtWork(const Worker& worker) {
  return worker.is_ready && !worker.is_gone && !worker.order.empty();
}

int PoolCore::ProcessOf(const Worker& worker) {
  const pid_t process = worker.process->pid();
  return process > 0 ? process : worker.number;
}

uint64_t PoolCore::BusyNs(uint64_t now_ns) const {
  uint64_t busy = busy_ns_;
  for (const std::shared_ptr<Worker>& worker : workers_)
    if (IsAtWork(*worker)) busy += now_ns - std::min(now_ns, worker->idle_until_ns);
  return busy;
}

void PoolCore::Watch(Worker& worker, uint64_t now_ns) {
  // The row that took too long stays the one, though it may go on when its stack is asked for.
  if (worker.asked_ns != 0) return;
  const Progress progress = worker.process->desk().progress();
  // Another sheet in front has its own time, also where it has not been begun.
  const uint64_t sheet = worker.trays[worker.order.front()].sheet.number;
  if (progress == worker.seen && sheet == worker.seen_sheet) return;
  worker.seen = progress;
  worker.seen_sheet = sheet;
  worker.seen_ns = now_ns;
}

bool PoolCore::IsAtRow(const Worker& worker) {
  return worker.seen.row > 0 && worker.seen.sheet == worker.seen_sheet;
}

AwayWorkers PoolCore::Workers() {
  AwayWorkers found;
  std::vector<pid_t> processes;
  {
    const Lock lock(mutex_);
    const uint64_t now = MonotonicNanos();
    found.workers = static_cast<uint32_t>(workers_.size());
    found.most_workers = static_cast<uint32_t>(options_.workers);
    found.is_chosen = options_.chooses;
    found.rows = rows_made_;
    found.busy_ns = BusyNs(now);
    found.started = started_;
    found.deaths = deaths_;
    found.user = function_.user;
    if (function_.file == nullptr) {
      found.offers = static_cast<int16_t>(TheOffers().Of(function_.user).size());
      found.is_unoffered = unoffered_ns_ != 0 && workers_.empty();
      if (found.is_unoffered) found.oldest_row_ns = now - unoffered_ns_;
    }
    for (const std::shared_ptr<Worker>& worker : workers_) {
      if (worker->process->pid() > 0) processes.push_back(worker->process->pid());
      if (!worker->is_ready)
        found.loading_ns = std::max(found.loading_ns, now - std::min(now, worker->started_ns));
      if (!IsAtWork(*worker)) continue;
      Watch(*worker, now);
      if (IsAtRow(*worker))
        found.oldest_row_ns = std::max(found.oldest_row_ns, now - worker->seen_ns);
    }
  }
  for (const pid_t process : processes) found.memory_bytes += OwnBytes(process);
  return found;
}

std::vector<AwaySpan> PoolCore::SpansSince(uint64_t monotonic_ns) {
  std::vector<AwaySpan> found;
  const Lock lock(mutex_);
  for (const AwaySpan& span : spans_)
    if (span.end_ns > monotonic_ns) found.push_back(span);
  // What is not done yet goes until now.
  const uint64_t now = MonotonicNanos();
  for (const std::shared_ptr<Worker>& worker : workers_) {
    if (!IsAtWork(*worker)) continue;
    found.push_back({.begin_ns = worker->idle_until_ns,
                     .end_ns = now,
                     .rows = worker->trays[worker->order.front()].sheet.rows,
                     .process = ProcessOf(*worker)});
  }
  return found;
}

void PoolCore::CountWork(Worker& worker, uint64_t rows) {
  const uint64_t now = MonotonicNanos();
  const uint64_t since = std::exchange(worker.idle_until_ns, now);
  rows_made_ += rows;
  if (!worker.is_ready) return;
  busy_ns_ += now - std::min(now, since);
  if (spans_.size() == kMaxSpans) spans_.pop_front();
  spans_.push_back({.begin_ns = since,
                    .end_ns = now,
                    .rows = static_cast<uint32_t>(rows),
                    .process = ProcessOf(worker)});
}

void PoolCore::ChooseWorkers() {
  if (!options_.chooses) return;
  const auto is_waited_for = [](const std::shared_ptr<Worker>& worker) {
    return !worker->is_ready || worker->is_leaving;
  };
  if (std::any_of(workers_.begin(), workers_.end(), is_waited_for)) return;
  const uint64_t now = MonotonicNanos();
  const auto workers = static_cast<int>(workers_.size());
  wanted_ = count_.Look(now, BusyNs(now), workers, NumWaiting() > 0);
  if (wanted_ >= workers) return;
  const auto idle =
      std::find_if(workers_.begin(), workers_.end(),
                   [](const std::shared_ptr<Worker>& worker) { return worker->order.empty(); });
  if (idle == workers_.end()) return;
  (*idle)->is_leaving = true;
  (*idle)->process->Send({.what = static_cast<uint32_t>(What::kLeave)});
}

}  // namespace penstock::python
