#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/nanoseconds.h"
#include "base/tick_clock.h"
#include "server/python/kept_pools.h"
#include "server/python/offered_worker.h"
#include "server/python/pool_core.h"
#include "server/python/spawned_worker.h"

namespace penstock::python {
namespace {

constexpr size_t kMaxDeaths = 5;
constexpr uint64_t kDeathsNs = 60'000'000'000;
// While the function is loaded: what it imports takes as long as it takes, so that no time counts.
constexpr int kMaxLoadDeaths = 3;
// A worker whose rows nobody wants may end its row by itself.
constexpr uint64_t kUnwantedNs = 100'000'000;
// And one whose row takes too long may say where it is.
constexpr uint64_t kStackNs = 200'000'000;
// One that whoever started it does not end has no say in what comes of its rows.
constexpr uint64_t kAbandonedNs = 2'000'000'000;
constexpr int kLookMs = 20;
// Where the kernel tells no ends.
constexpr int kNoPidfdMs = 100;

std::string StackOf(const WorkerProcess& process) {
  const std::string stack = process.Stack();
  return stack.empty() ? "" : absl::StrCat("\n", stack);
}

}  // namespace

void PoolCore::Run() {
  Borrow();
  while (true) {
    std::vector<std::shared_ptr<Call>> ended;
    {
      Lock lock(mutex_);
      if (is_lent_ && !is_closed_) HandOver(lock);
      if (rest_until_ns_ != 0 && MonotonicNanos() >= rest_until_ns_) is_closed_ = true;
      if (is_closed_) break;
      ChooseWorkers();
      StartWorkersIfNeeded(&ended);
    }
    Tell(std::exchange(ended, {}));
    Deal(/*wakes=*/false);
    {
      Lock lock(mutex_);
      Listen(lock, &ended);
      LookAtTimes(lock, &ended);
    }
    Tell(std::move(ended));
    Deal(/*wakes=*/false);
  }
  // All at once, as each takes a moment to die.
  std::vector<std::shared_ptr<Worker>> workers;
  {
    const Lock lock(mutex_);
    workers = std::exchange(workers_, {});
  }
  lent_changes_.notify_all();
  for (const std::shared_ptr<Worker>& worker : workers) worker->process->Kill();
}

void PoolCore::Borrow() {
  // One that is lent has a row behind it.
  if (options_.max_rows_per_worker > 0) return;
  LentWorker lent = BorrowWorker(load_key_, this);
  if (lent.process == nullptr || !lent.process->desk().Configure(options_.configuration) ||
      !lent.process->Send({.what = static_cast<uint32_t>(What::kConfigure),
                           .bytes = options_.configuration.size()}))
    return;
  auto worker = std::make_shared<Worker>();
  worker->lender = std::move(lent.lender);
  worker->process = std::move(lent.process);
  const Lock lock(mutex_);
  Add(std::move(worker));
}

void PoolCore::HandOver(Lock& lock) {
  const bool is_idle = workers_.size() == 1 && workers_[0]->is_ready && !workers_[0]->is_leaving &&
                       workers_[0]->killed_ns == 0 && workers_[0]->order.empty();
  if (is_idle) {
    handed_over_ = {std::move(workers_[0]->lender), std::move(workers_[0]->process)};
    workers_.clear();
  }
  has_handed_over_ = true;
  lent_changes_.notify_all();
  lent_changes_.wait(lock, [this] { return is_closed_; });
}

void PoolCore::Add(std::shared_ptr<Worker> worker) {
  worker->number = static_cast<int>(++started_);
  worker->started_ns = MonotonicNanos();
  workers_.push_back(std::move(worker));
}

void PoolCore::StartWorkersIfNeeded(std::vector<std::shared_ptr<Call>>* ended) {
  // As many at once as sheets wait for: who asked for so many has processors for their imports.
  for (size_t loading = NumLoading(); broken_.ok() && loading < NumWaiting(); ++loading) {
    if (workers_.size() >= static_cast<size_t>(wanted_)) return;
    // One after the other where one has failed, as for want of memory, say.
    if (load_deaths_ > 0 && loading > 0) return;
    // Others could not load it: those that have do the work for a while.
    if (load_deaths_ >= kMaxLoadDeaths && !workers_.empty() &&
        MonotonicNanos() - load_death_ns_ < kDeathsNs)
      return;
    absl::StatusOr<std::shared_ptr<Worker>> worker = NewWorker();
    if (worker.ok()) {
      Add(*std::move(worker));
      continue;
    }
    // Those that there are do the work.
    if (!workers_.empty()) return;
    if (!absl::IsUnavailable(worker.status())) {
      Break(worker.status(), ended);
    } else if (unoffered_ns_ == 0) {
      unoffered_ns_ = MonotonicNanos();
    }
    return;
  }
}

size_t PoolCore::NumLoading() const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [](const auto& worker) { return !worker->is_ready && !worker->is_gone; });
}

size_t PoolCore::NumWaiting() const {
  size_t sheets = waiting_.size();
  for (const std::shared_ptr<Worker>& worker : workers_)
    sheets += std::max<size_t>(worker->order.size(), 1) - 1;
  return sheets;
}

absl::StatusOr<std::shared_ptr<Worker>> PoolCore::NewWorker() {
  auto worker = std::make_shared<Worker>();
  const auto take = [&](absl::StatusOr<std::unique_ptr<WorkerProcess>> process) {
    if (process.ok()) worker->process = *std::move(process);
    return process.status();
  };
  if (function_.file != nullptr) {
    const absl::Status started = take(SpawnedWorker::Start(function_, options_.configuration));
    if (!started.ok()) return started;
    return worker;
  }
  const uint64_t now = MonotonicNanos();
  std::erase_if(given_up_ns_, [now](const auto& offer) { return now - offer.second >= kOfferNs; });
  for (const std::shared_ptr<const Offer>& offer : TheOffers().Of(function_.user)) {
    if (given_up_ns_.contains(offer->number())) continue;
    const absl::Status asked =
        take(OfferedWorker::Start(function_, options_.configuration, *offer));
    worker->offer = offer;
    if (asked.ok()) return worker;
    if (!absl::IsUnavailable(asked)) return asked;
    given_up_ns_[offer->number()] = now;
  }
  return absl::UnavailableError("no process of the user offers workers");
}

int PoolCore::WaitMs() const {
  const bool has_pidfds = std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->process->end_file() >= 0;
  });
  const bool has_unwanted = std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->unwanted_ns != 0 ||
           (!worker->order.empty() && worker->trays[worker->order.front()].sheet.call->is_over);
  });
  if (has_unwanted || options_.timeout_ms > 0) return kLookMs;
  int wait_ms = has_pidfds ? -1 : kNoPidfdMs;
  const auto at_most = [&wait_ms](uint64_t ns) {
    const auto ms = static_cast<int>(ns / kNsPerMs) + 1;
    wait_ms = wait_ms < 0 ? ms : std::min(wait_ms, ms);
  };
  if (options_.chooses && NumWaiting() > 0 && wanted_ < options_.workers) {
    at_most(WorkerCount::kUpNs);
  } else if (options_.chooses && workers_.size() > 1) {
    at_most(WorkerCount::kDownNs);
  }
  // What is offered is told; what was given up is looked at again.
  const bool is_asked = std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker->offer != nullptr && !worker->is_ready;
  });
  if (is_asked || (unoffered_ns_ != 0 && !given_up_ns_.empty())) at_most(kOfferNs);
  // Who could not load the function is tried again.
  if (load_deaths_ >= kMaxLoadDeaths && !waiting_.empty() &&
      workers_.size() < static_cast<size_t>(wanted_))
    at_most(kDeathsNs);
  const uint64_t now = MonotonicNanos();
  if (rest_until_ns_ != 0) at_most(rest_until_ns_ - std::min(rest_until_ns_, now));
  return wait_ms;
}

void PoolCore::Listen(Lock& lock, std::vector<std::shared_ptr<Call>>* ended) {
  std::vector<pollfd> files = {{wake_.get(), POLLIN, 0}};
  const std::vector<std::shared_ptr<Worker>> workers = workers_;
  for (const std::shared_ptr<Worker>& worker : workers) {
    files.push_back({worker->process->socket(), POLLIN, 0});
    files.push_back({worker->process->end_file(), POLLIN, 0});
  }
  const int wait_ms = WaitMs();
  lock.unlock();
  poll(files.data(), files.size(), wait_ms);
  if (files[0].revents != 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
  }
  lock.lock();
  for (size_t i = 0; i < workers.size(); ++i) {
    if (files[1 + 2 * i].revents != 0) Hear(workers[i], lock, ended);
    // What it has said before its end has been heard.
    if (files[2 + 2 * i].revents != 0 && !workers[i]->is_gone) {
      Hear(workers[i], lock, ended);
      if (!workers[i]->is_gone) Bury(workers[i], lock, ended);
    }
  }
}

void PoolCore::Hear(const std::shared_ptr<Worker>& worker, Lock& lock,
                    std::vector<std::shared_ptr<Call>>* ended) {
  Message message;
  std::string text;
  // As many as one that is sound can have sent; others come with the next look.
  for (int i = 0; i <= kTrays && !worker->is_gone; ++i) {
    switch (worker->process->Receive(&message, &text)) {
      case WorkerProcess::Received::kNothing:
        return;
      case WorkerProcess::Received::kClosed:
        worker->process->Kill();
        Bury(worker, lock, ended);
        return;
      case WorkerProcess::Received::kMessage:
        break;
    }
    switch (static_cast<What>(message.what)) {
      case What::kReady:
        // What took too long is not taken, though it came in the moment before its end.
        if (worker->asked_ns != 0) break;
        worker->is_ready = true;
        load_deaths_ = lone_load_deaths_ = 0;
        unoffered_ns_ = 0;
        worker->idle_until_ns = MonotonicNanos();
        break;
      case What::kCannotLoad:
        Break(absl::FailedPreconditionError(
                  absl::StrCat("the Python function ", options_.name,
                               " cannot be loaded in a worker process: ", text)),
              ended);
        return;
      case What::kMade:
      case What::kFailed:
        Take(*worker, message, std::move(text), lock, ended);
        break;
      default:
        worker->process->Kill();
        return;
    }
    if (options_.max_rows_per_worker > 0 && !worker->is_leaving &&
        worker->rows_made >= static_cast<uint64_t>(options_.max_rows_per_worker)) {
      worker->is_leaving = true;
      worker->process->Send({.what = static_cast<uint32_t>(What::kLeave)});
    }
  }
}

void PoolCore::LookAtTimes(Lock& lock, std::vector<std::shared_ptr<Call>>* ended) {
  const uint64_t now = MonotonicNanos();
  std::vector<std::shared_ptr<Worker>> abandoned;
  for (const std::shared_ptr<Worker>& worker : workers_) {
    if (worker->offer != nullptr && !worker->is_ready && worker->offer->has_gone()) {
      // It was never begun.
      worker->is_leaving = true;
      abandoned.push_back(worker);
      continue;
    }
    if (worker->is_gone) continue;
    const auto kill = [&] {
      if (worker->killed_ns == 0) {
        worker->killed_ns = now;
        worker->process->Kill();
      } else if (now - worker->killed_ns >= kAbandonedNs) {
        abandoned.push_back(worker);
      }
    };
    if (!worker->is_ready) {
      if (options_.timeout_ms <= 0) continue;
      if (worker->asked_ns != 0) {
        if (now - worker->asked_ns >= kStackNs) kill();
      } else if (now - std::min(now, worker->started_ns) >=
                 static_cast<uint64_t>(LoadTimeoutMs()) * kNsPerMs) {
        worker->asked_ns = now;
        worker->process->AskForStack();
      }
      continue;
    }
    if (worker->order.empty()) continue;
    const Sheet& sheet = worker->trays[worker->order.front()].sheet;
    if (sheet.call->is_over) {
      if (worker->unwanted_ns == 0) worker->unwanted_ns = now;
      if (now - worker->unwanted_ns >= kUnwantedNs) kill();
      continue;
    }
    worker->unwanted_ns = 0;
    if (options_.timeout_ms <= 0) continue;
    if (worker->asked_ns != 0) {
      // Whatever it does since.
      if (now - worker->asked_ns >= kStackNs) kill();
      continue;
    }
    Watch(*worker, now);
    const int64_t timeout_ms = IsAtRow(*worker) ? options_.timeout_ms : BetweenRowsMs();
    if (now - worker->seen_ns >= static_cast<uint64_t>(timeout_ms) * kNsPerMs) {
      worker->asked_ns = now;
      worker->process->AskForStack();
    }
  }
  for (const std::shared_ptr<Worker>& worker : abandoned) Bury(worker, lock, ended);
}

void PoolCore::Bury(const std::shared_ptr<Worker>& worker, Lock& lock,
                    std::vector<std::shared_ptr<Call>>* ended) {
  const uint64_t now = MonotonicNanos();
  worker->is_gone = true;
  workers_.erase(std::find(workers_.begin(), workers_.end(), worker));
  worker->process->Kill();
  // Nobody lays anything on its trays any more.
  lock.unlock();
  const std::string ending = worker->process->Wait();
  lock.lock();
  if (worker->process->was_withdrawn()) {
    worker->is_leaving = true;
    given_up_ns_[worker->offer->number()] = now;
    if (!worker->is_ready) --started_;
  }
  std::string how = absl::StrCat("ended its process (", ending, ")");
  if (worker->asked_ns != 0) {
    how = !worker->is_ready ? absl::StrCat("took longer than ", LoadTimeoutMs(), " ms")
          : IsAtRow(*worker)
              ? absl::StrCat("took longer than timeout_ms (", options_.timeout_ms, ")")
              : absl::StrCat("took longer than ", BetweenRowsMs(), " ms between two rows");
  }
  if (!worker->order.empty()) CountWork(*worker, 0);
  const bool is_ours = worker->is_leaving || worker->unwanted_ns != 0 || !broken_.ok();
  GiveBack(*worker, how, ended);
  if (is_ours) return;
  ++deaths_;
  if (!worker->is_ready) {
    EndLoading(*worker, how, now, ended);
    return;
  }
  deaths_ns_.push_back(now);
  while (now - deaths_ns_.front() > kDeathsNs) deaths_ns_.pop_front();
  if (deaths_ns_.size() <= kMaxDeaths) return;
  Break(absl::FailedPreconditionError(absl::StrCat(
            "the Python function ", options_.name, " ", how, ", as its workers have done ",
            deaths_ns_.size(), " times within a minute, and no row was made in between",
            StackOf(*worker->process))),
        ended);
}

void PoolCore::EndLoading(const Worker& worker, const std::string& how, uint64_t now_ns,
                          std::vector<std::shared_ptr<Call>>* ended) {
  ++load_deaths_;
  load_death_ns_ = now_ns;
  if (HasReady()) {
    lone_load_deaths_ = 0;
    return;
  }
  // Those that were started with it tell, too.
  if (NumLoading() > 0) return;
  if (++lone_load_deaths_ < kMaxLoadDeaths) return;
  Break(absl::FailedPreconditionError(
            absl::StrCat("a worker of the Python function ", options_.name, " ", how,
                         " while it loaded the function, as ", lone_load_deaths_,
                         " have done one after the other", StackOf(*worker.process))),
        ended);
}

bool PoolCore::HasReady() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->is_ready && !worker->is_leaving; });
}

int64_t PoolCore::BetweenRowsMs() const {
  return std::max(options_.timeout_ms, options_.between_rows_ms);
}

int64_t PoolCore::LoadTimeoutMs() const {
  return std::max(options_.timeout_ms, options_.load_timeout_ms);
}

void PoolCore::GiveBack(Worker& worker, const std::string& how,
                        std::vector<std::shared_ptr<Call>>* ended) {
  // A row that took too long may have gone on when it was asked for its stack.
  const Progress progress = worker.asked_ns != 0 ? worker.seen : worker.process->desk().progress();
  std::deque<Sheet> back;
  for (const int number : worker.order) {
    Tray& tray = worker.trays[number];
    Sheet sheet = std::move(tray.sheet);
    tray = {};
    // Whatever lies in front of it has not been heard of, and is none of its.
    const bool was_begun = progress.sheet == sheet.number;
    if (sheet.call->is_over) {
      EndSheet(sheet.call, ended);
      continue;
    }
    if (!was_begun || worker.is_leaving) {
      // Behind a row that has failed nothing is wanted.
      const AwayRows* const rows = sheet.call->rows;
      if (rows != nullptr && !rows->failure.ok() &&
          rows->failure.row < static_cast<int>(sheet.first)) {
        EndSheet(sheet.call, ended);
      } else {
        back.push_back(std::move(sheet));
      }
      continue;
    }
    const auto add = [&](uint32_t first, uint32_t rows, int deaths) {
      if (rows == 0) return;
      back.push_back({sheet.call, first, rows, deaths, next_sheet_++});
      ++sheet.call->open;
    };
    const bool knows_row = progress.row >= 1 && progress.row <= sheet.rows;
    if (!knows_row && sheet.rows > 1) {
      // It was one of them, which closed what is needed behind it, say: each alone.
      for (uint32_t row = 0; row < sheet.rows; ++row) add(sheet.first + row, 1, 0);
      --sheet.call->open;
      continue;
    }
    const auto row = static_cast<uint32_t>(knows_row ? progress.row - 1 : 0);
    if (sheet.deaths > 0) {
      const std::string twice = absl::StrCat("the Python function ", options_.name, " ", how,
                                             " twice", StackOf(*worker.process));
      FailRow(sheet, sheet.first + row, absl::DataLossError(twice), ended);
      EndSheet(sheet.call, ended);
      continue;
    }
    // The row alone, once more; the others as they were.
    add(sheet.first, row, 0);
    add(sheet.first + row, 1, 1);
    add(sheet.first + row + 1, sheet.rows - row - 1, 0);
    --sheet.call->open;
  }
  worker.order.clear();
  waiting_.insert(waiting_.begin(), back.begin(), back.end());
}

}  // namespace penstock::python
