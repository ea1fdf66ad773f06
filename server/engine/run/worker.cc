#include "server/engine/run/worker.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/memory_account.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "server/engine/tensor/unwanted_slot.h"

namespace penstock {
namespace {

constexpr int kSpins = 50;
// So many reads are too many to wait for the worker that runs the front.
constexpr size_t kReadsForAll = 3;
// What a block should take: some 50 us, beside which a call of a program is little.
constexpr uint64_t kTaskTicks = 150'000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Worker::Worker(WorkSite& site, int number, const PrefixMember* sharing, bool holds)
    : site_(site),
      number_(number),
      holds_(holds),
      clock_(site.gauges.clock(number)),
      runner_(site.files, clock_, sharing),
      reader_(site.store),
      section_runner_(site.store, site.files, clock_, sharing),
      function_times_(clock_) {}

Worker::Watched::Watched(Worker& worker, WorkKind kind, uint64_t detail)
    : worker_(worker),
      kind_(kind),
      detail_(detail),
      begin_(worker.site_.trace.Now()),
      functions_(begin_ == 0 ? nullptr : &worker.function_times_) {
  if (begin_ == 0) return;
  worker_.clock_.CopyTicks(&worker_.ticks_before_);
  worker_.function_times_.Clear();
}

Worker::Watched::~Watched() {
  if (begin_ == 0) return;
  worker_.site_.trace.AddBlock(worker_.number_, kind_, worker_.clock_, begin_, detail_,
                               worker_.ticks_before_, worker_.function_times_.functions());
}

void Worker::Run(const WorkerThreads& threads) {
  while (!threads.IsOver(number_)) {
    try {
      RunUntilOver(threads);
    } catch (const MemoryLimitError& error) {
      // Where no row, no read and no step of the order has taken it for its own.
      site_.steps.Fail(MemoryStatus(error));
    } catch (const Stopped&) {
      // Nobody wants what it was in the middle of: it looks whether it is over.
    }
    WorkerGauges::Pulse& pulse = site_.gauges.pulse(number_);
    pulse.idle.store(false, std::memory_order_relaxed);
  }
  site_.sink.Rest();
}

void Worker::RunUntilOver(const WorkerThreads& threads) {
  WorkerGauges::Pulse& pulse = site_.gauges.pulse(number_);
  const CallSpot::OfThisThread spot(pulse.call);
  pulse.thread.store(gettid(), std::memory_order_relaxed);
  uint64_t beats = 0;
  FrontResult front = FrontResult::kStuck;
  while (!threads.IsOver(number_)) {
    pulse.beats.store(++beats, std::memory_order_relaxed);
    if (Once(&front)) {
      site_.sink.PassBy();
      continue;
    }
    for (int spin = 0; spin < kSpins && !site_.steps.HasBlocks() && !site_.HasRequests(); ++spin)
      Pause();
    // The last look before sleeping comes behind the ticket: what changes after it wakes us at
    // once.
    const Event::Ticket ticket = site_.work.Prepare();
    const uint64_t begin = site_.trace.Now();
    bool over;
    try {
      over = threads.IsOver(number_) || Once(&front);
    } catch (...) {
      site_.work.Cancel();
      throw;
    }
    if (over) {
      site_.work.Cancel();
    } else if (front == FrontResult::kRingFull && !site_.slot_waiter.exchange(true)) {
      site_.work.Cancel();
      pulse.idle.store(true, std::memory_order_relaxed);
      WaitForSlot();
      pulse.idle.store(false, std::memory_order_relaxed);
      site_.slot_waiter.store(false);
      site_.trace.Add(number_, WorkKind::kWaitForSlot, begin);
    } else {
      pulse.idle.store(true, std::memory_order_relaxed);
      site_.sink.Rest();
      site_.work.Wait(ticket);
      pulse.idle.store(false, std::memory_order_relaxed);
      site_.trace.Add(number_, WorkKind::kSleep, begin);
    }
  }
}

void Worker::WaitForSlot() {
  // What came back before it was seen that this worker waits.
  if (!site_.blocks.empty() || !site_.lent.empty()) return;
  const uint64_t start = Ticks();
  site_.sink.WaitForSlot(absl::Milliseconds(100));
  site_.gauges.AddSlotWait(Ticks() - start);
}

bool Worker::Once(FrontResult* front) {
  *front = FrontResult::kStuck;
  const bool at_home = site_.front_worker.load(std::memory_order_relaxed) == number_;
  if (site_.assembler.IsWanted(at_home) || site_.lent.WantsSteps()) {
    if (const std::unique_lock<std::mutex> lock = site_.assembler.TryLock(); lock.owns_lock()) {
      const uint64_t begin = site_.trace.Now();
      do {
        *front = site_.assembler.Run(clock_);
      } while (*front == FrontResult::kForward && site_.lent.WantsSteps());
      site_.front_worker.store(number_, std::memory_order_relaxed);
      if (*front == FrontResult::kForward) site_.trace.Add(number_, WorkKind::kFront, begin);
    }
  }
  if (RunBack() || RunLent()) return true;
  if (!at_home && site_.reads.size() < kReadsForAll && RunBlock()) return true;
  if (RunRead() || RunBlock() || *front == FrontResult::kForward || RunErrand() || RunSection())
    return true;
  // Another worker is in the front, and may be for long: what it has assembled waits for a slot
  // only.
  if (*front == FrontResult::kStuck && site_.assembler.HasUnclaimed()) {
    if (site_.assembler.Claim()) return true;
    *front = FrontResult::kRingFull;
  }
  return site_.lent.TakeBackHeld(*front == FrontResult::kRingFull);
}

bool Worker::RunBlock() {
  const bool from_back = number_ % 2 == 1;
  const uint32_t grains = GrainsOfTask();
  std::optional<BlockTask> task = site_.lent.TakeReturned(grains, from_back);
  if (!task) task = site_.steps.Take(grains, from_back);
  if (!task) return false;
  if (holds_) {
    task_ = task;
    return true;
  }
  if ((!site_.away_nodes.empty() || site_.blocks.has_far_files()) &&
      !IsUnwanted(task->step->slot)) {
    AwayBlock* const block = site_.blocks.Take(clock_);
    block->block = task;
    GoOn(block);
    return true;
  }
  const Watched watched(*this, WorkKind::kBlock, task->number);
  const uint64_t start = Ticks();
  const uint32_t rows = Fill(*task);
  if (rows > 0) Learn((Ticks() - start) / rows);
  Finish(*task);
  return true;
}

uint32_t Worker::GrainsOfTask() const {
  const uint32_t most = site_.plan.block_rows() / site_.plan.grain_rows();
  // Whatever the time, where histories are to be repeated.
  if (holds_) return 1 + static_cast<uint32_t>(number_) % most;
  // What others do takes them long enough.
  if (!site_.away_nodes.empty() || site_.blocks.has_far_files()) return most;
  if (row_ticks_ == 0) return 1;
  const uint64_t grain_ticks = row_ticks_ * site_.plan.grain_rows();
  return static_cast<uint32_t>(std::clamp<uint64_t>(kTaskTicks / grain_ticks, 1, most));
}

void Worker::Learn(uint64_t ticks_a_row) {
  const uint64_t found = std::max<uint64_t>(ticks_a_row, 1);
  // Who was interrupted in the middle has learned little.
  row_ticks_ = row_ticks_ == 0 ? found : (3 * row_ticks_ + std::min(found, 4 * row_ticks_)) / 4;
}

uint32_t Worker::Fill(const BlockTask& task) {
  Step& step = *task.step;
  const uint32_t first = task.first_grain * site_.plan.grain_rows();
  if (first >= step.rows || IsUnwanted(step.slot)) return 0;
  const uint32_t rows = std::min(task.grains * site_.plan.grain_rows(), step.rows - first);
  runner_.Run(site_.plan.program(), &step, first, rows);
  return rows;
}

void Worker::Finish(const BlockTask& task) {
  Step& step = *task.step;
  if (step.grains_left.fetch_sub(task.grains, std::memory_order_acq_rel) != task.grains)
    return;  // SYNC block-done
  if (!IsUnwanted(step.slot)) runner_.Complete(site_.plan.program(), &step);
  // Before somebody else may publish it, with which it becomes another one's.
  if (site_.lent.is_used()) site_.lent.Passed(step.info);
  Finish(&step);
}

void Worker::Finish(Step* step) {
  step->done.store(true, std::memory_order_release);  // SYNC step-done
  site_.steps.Commit();
}

bool Worker::RunLent() {
  if (!site_.lent.is_used()) return false;
  bool is_back = false;
  if (Step* const made = site_.lent.TakeMade(&is_back)) {
    Finish(made);
  } else if (is_back) {
    site_.work.NotifyAll();
  } else {
    return site_.lent.LendOne();
  }
  return true;
}

bool Worker::RunSection() {
  SectionTask* task = site_.sections.Pop();
  if (task == nullptr) return false;
  if (holds_) {
    section_ = task;
    return true;
  }
  Finish(task);
  return true;
}

void Worker::Finish(SectionTask* task) {
  const Section& section = *task->section;
  const bool leaves = section.batch == nullptr && !RowsAway::NodesOf(*section.work).empty();
  if (!holds_ && (leaves || site_.blocks.has_far_files())) {
    AwayBlock* const block = site_.blocks.Take(clock_);
    block->section = task;
    GoOn(block);
    return;
  }
  const Watched watched(*this, WorkKind::kSection, 0);
  section_runner_.Run(task);
  site_.work.NotifyAll();
}

bool Worker::RunBack() {
  AwayBlock* const block = site_.blocks.Pop();
  if (block == nullptr) return false;
  GoOn(block);
  return true;
}

void Worker::GoOn(AwayBlock* block) {
  bool is_done = false;
  if (block->section != nullptr) {
    const Section& section = *block->section->section;
    // A batch that is an element goes in one.
    const std::vector<const WorkNode*> nodes = section.batch == nullptr
                                                   ? RowsAway::NodesOf(*section.work)
                                                   : std::vector<const WorkNode*>();
    {
      const Watched watched(*this, WorkKind::kSection, 0);
      is_done = block->RunSection(nodes, site_.away, clock_);
    }
    if (!is_done) return;
    site_.blocks.Give(block);
    site_.work.NotifyAll();
    return;
  }
  const BlockTask task = *block->block;
  {
    const Watched watched(*this, WorkKind::kBlock, task.number);
    is_done = block->RunBlock(site_.plan.program(), site_.away_nodes, site_.plan.grain_rows(),
                              site_.away, clock_);
  }
  if (!is_done) return;
  site_.blocks.Give(block);
  Finish(task);
}

bool Worker::RunErrand() {
  Errand* errand = site_.errands.Pop();
  if (errand == nullptr) return false;
  if (holds_) {
    errand_ = errand;
    return true;
  }
  const uint64_t begin = site_.trace.Now();
  Finish(errand);
  site_.trace.Add(number_, WorkKind::kErrand, begin);
  return true;
}

void Worker::Finish(Errand* errand) {
  StageClock::Scope scope(clock_, errand->stage());
  site_.errands.Begin(errand);
}

bool Worker::RunRead() {
  ReadRequest* request =
      site_.reads.Pop([this](const ReadRequest& candidate) { return candidate.worker == number_; });
  if (request == nullptr) return false;
  if (request->format->is_stream()) request->worker = number_;
  if (holds_) {
    read_ = request;
    return true;
  }
  const uint64_t begin = site_.trace.Now();
  Finish(request);
  site_.trace.Add(number_, WorkKind::kRead, begin);
  return true;
}

void Worker::Finish(ReadRequest* request) {
  const int stage = request->format->stage;
  StageClock::Scope scope(clock_, stage);
  const uint64_t begin = Ticks();
  const ChunkReader::Parking parking{site_.away, site_.reads};
  const std::optional<uint64_t> bytes = reader_.Run(request, &parking);
  // Nobody has anything to do for one that has left.
  if (!bytes) return;
  site_.gauges.AddRead(stage, *bytes, Ticks() - begin);
  site_.work.NotifyAll();
}

bool Worker::FillHeld() {
  if (!task_ || std::exchange(task_is_filled_, true)) return false;
  Fill(*task_);
  return true;
}

bool Worker::FinishHeld() {
  if (read_ != nullptr) {
    Finish(std::exchange(read_, nullptr));
  } else if (section_ != nullptr) {
    Finish(std::exchange(section_, nullptr));
  } else if (errand_ != nullptr) {
    Finish(std::exchange(errand_, nullptr));
  } else if (task_) {
    task_is_filled_ = false;
    Finish(*std::exchange(task_, std::nullopt));
  } else {
    return false;
  }
  return true;
}

void Worker::RunRequests() {
  while (ReadRequest* request = site_.reads.Pop()) reader_.Run(request);
  while (SectionTask* task = site_.sections.Pop()) section_runner_.Run(task);
  while (Errand* errand = site_.errands.Pop()) site_.errands.Begin(errand);
}

}  // namespace penstock
