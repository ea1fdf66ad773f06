#include "server/service/stream/stream.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "ring/divided_rows.h"
#include "ring/futex.h"
#include "server/cuda/expansions.h"
#include "server/engine/run/step_count.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// Whether the steps are those of a pipeline that was never changed, but for the hosts that divide
// them.
bool OnlyWorldsDiffer(const std::vector<Phase>& phases) {
  return std::all_of(phases.begin(), phases.end(), [&](const Phase& phase) {
    return phase.first_step != kUnknownStep && phase.only_divides;
  });
}

// Whether a step may have the rows of one of several hosts.
bool IsDivided(const Plan& first, const StreamOptions& options) {
  return !first.world().is_alone() ||
         std::any_of(options.phases.begin(), options.phases.end(),
                     [](const Phase& phase) { return !phase.plan->world().is_alone(); });
}

// It may open files and read their indices.
absl::StatusOr<StepCount> CountOf(const StreamOptions& options) {
  const std::vector<Phase>& phases = options.phases;
  if (!OnlyWorldsDiffer(phases))
    return StepCount{std::nullopt, "the pipeline was changed while it ran"};
  return Within<StepCount>(options.read_deadline, absl::StrCat("pipeline ", options.name),
                           [plan = phases[0].plan] { return CountSteps(*plan); });
}

// Once: it is the machine's affair, and all pipelines'.
void TellOfSmallPages(const std::string& pipeline) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  spdlog::warn(
      "the kernel gives no huge pages for rings (pipeline {} and perhaps others): everything "
      "works, with "
      "more processor time; they need Linux 6.1, and free memory in one piece",
      pipeline);
}

// Nobody has had a step of an epoch that a phase waits for, nor one behind that where this epoch is
// known: a position there is another run's, and where the epoch begins could not be told from it.
// `executor` is at options.start.
absl::Status CheckWaiting(const StreamOptions& options, const Executor& executor) {
  if (options.phases.size() != 2) return absl::OkStatus();
  const Phase& next = options.phases[1];
  const uint64_t step = options.start.step;
  if (next.any_pass_from && step > *next.any_pass_from) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", step, " has not been handed out: a change waits for the first epoch behind step ",
        *next.any_pass_from - 1,
        ", and the cursor is that of another run, whose epochs may be others; a pipeline that is "
        "created from it (create --resume) goes on behind it"));
  }
  if (next.first_step == kUnknownStep && next.pass && executor.pass() >= *next.pass) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", step, " lies in epoch ", executor.pass(), ", and epoch ", *next.pass,
        ", from which on this pipeline has other stages, has not been begun: the cursor is that of "
        "another run; a pipeline that is created from it (create --resume) goes on behind it"));
  }
  return absl::OkStatus();
}

// What both have done; the stages are those of `now`.
ExecutorStats Sum(const ExecutorStats& before, ExecutorStats now) {
  now.rows += before.rows;
  now.records += before.records;
  now.bytes_read += before.bytes_read;
  now.skipped += before.skipped;
  now.slot_wait_ns += before.slot_wait_ns;
  now.running_ns += before.running_ns;
  for (StageStats& stage : now.stages) {
    for (const StageStats& other : before.stages) {
      if (other.name != stage.name) continue;
      stage.elements += other.elements;
      stage.busy_ns += other.busy_ns;
      stage.read_bytes += other.read_bytes;
      stage.read_ns += other.read_ns;
      stage.kept.hits += other.kept.hits;
      stage.packed.sequences += other.packed.sequences;
      stage.packed.tokens += other.packed.tokens;
      stage.packed.padding += other.packed.padding;
      stage.packed.documents += other.packed.documents;
      stage.packed.pieces += other.packed.pieces;
    }
  }
  for (SharedStats& shared : now.shared) {
    for (const SharedStats& other : before.shared) {
      if (other.stage != shared.stage) continue;
      shared.hits += other.hits;
      shared.misses += other.misses;
    }
  }
  return now;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Stream>> Stream::Create(const Plan& first, const Plan& layout,
                                                       const StreamOptions& options) {
  std::function<ring::Status(uint64_t bytes)> reserve;
  if (options.memory != nullptr) {
    reserve = [memory = options.memory](uint64_t bytes) { return ToRing(memory->Take(bytes)); };
  }
  absl::StatusOr<StepCount> count = CountOf(options);
  if (!count.ok()) return count.status();
  if (IsDivided(first, options)) count->pass_last_rows = ring::kDividedAmongHosts;
  auto placement = std::make_shared<Placement>(options.numa_node, options.misplaced);
  absl::StatusOr<std::unique_ptr<RingSink>> sink =
      RingSink::Create(options.name, layout.tensors(), options.slots,
                       {.structure = layout.structure(),
                        .variable_bytes = layout.variable_bytes(),
                        .variable_grows = layout.variable_grows(),
                        .first_step = options.start.step,
                        .count = *std::move(count),
                        .first_cursor = options.start_cursor,
                        .split_log = options.split_log.get(),
                        .slots_grow = !first.spec().ring().has_device(),
                        .reserve = std::move(reserve),
                        .numa_node = placement->ring_node(),
                        .high_water = options.high_water});
  if (!sink.ok()) return sink.status();
  placement->LookAtRing((*sink)->writer());
  std::shared_ptr<Stream> stream(new Stream(*std::move(sink), std::move(placement), options));
  stream->writer().TryFewerSlots(options.tries_fewer_slots);
  if (!stream->writer().has_huge_pages()) TellOfSmallPages(options.name);
  if (first.spec().ring().has_device()) {
    const absl::Status status = stream->AddDevice(layout);
    if (!status.ok()) return status;
  }
  const Phase& phase = options.phases.front();
  const bool begins = options.phases.front().first_step == options.start.step;
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      stream->MakeExecutor(phase, options.start, begins);
  if (!executor.ok()) return executor.status();
  if (absl::Status status = CheckWaiting(options, **executor); !status.ok()) return status;
  stream->executor_ = *std::move(executor);
  for (int i = 0; i < options.holds; ++i) stream->executor_->Hold();
  stream->LimitIt();
  return stream;
}

absl::Status Stream::AddDevice(const Plan& plan) {
  DeviceRingOptions device;
  device.device = plan.spec().ring().device();
  device.tensors = plan.tensors();
  ring::Status status = ReadExpansions(plan.spec().ring(), plan.tensors(), &device.expansions);
  if (!status.ok()) return FromRing(status);
  for (uint32_t slot = 0; slot < writer().slots(); ++slot) {
    std::vector<const uint8_t*>& tensors = device.slots.emplace_back();
    for (size_t i = 0; i < device.tensors.size(); ++i) {
      tensors.push_back(writer().tensor(static_cast<int>(slot), static_cast<int>(i)));
    }
  }
  std::unique_ptr<DeviceRing> made;
  status = DeviceRing::Create(device, &made);
  if (!status.ok()) {
    return FromRing({status.code, status.message + " (ring.device of pipeline " + name_ + ")"});
  }
  if (!made->not_pinned().empty()) {
    spdlog::warn("pipeline {}: copies to the device are slower than they could be: {}", name_,
                 made->not_pinned());
  }
  spdlog::info("pipeline {}: {} slots of CUDA device {} take {} bytes", name_, device.slots.size(),
               device.device, made->memory_bytes());
  device_sink_ = std::make_shared<DeviceRingSink>(*sink_, std::move(made), &ring::MonotonicNs);
  return absl::OkStatus();
}

// `begins`: the phase's first step is that of `start`, which is where the one before it ended.
absl::StatusOr<std::unique_ptr<Executor>> Stream::MakeExecutor(const Phase& phase,
                                                               ResumePoint start, bool begins) {
  ExecutorOptions options;
  options.fingerprint = phase.fingerprint;
  options.start = std::move(start);
  if (begins) {
    if (phase.seek) options.start.position = *phase.seek;
    options.skip_steps = phase.skip_steps;
    options.start_pass = phase.pass;
    // Of another plan.
    if (phase.pass) options.start.position.Clear();
  }
  options.read_ahead = read_ahead_;
  options.workers = workers_;
  options.worker_nice = worker_nice_;
  options.processors = placement_->processors();
  options.not_bound = [placement = placement_.get()](const absl::Status& refusal) {
    placement->DropProcessors(refusal);
  };
  options.prefixes = prefixes_;
  options.maps = maps_;
  options.helpers = helpers_;
  options.memory = work_memory_;
  options.pipeline = name_;
  options.notice = [name = name_](const std::string& text) {
    spdlog::warn("pipeline {}: {}", name, text);
  };
  options.at_limit = [this] {
    {
      std::lock_guard<std::mutex> lock(limit_mutex_);
      at_limit_ = true;
    }
    limit_changed_.notify_all();
  };
  options.read_deadline_ns = read_deadline_.ns;
  return Within<std::unique_ptr<Executor>>(
      read_deadline_, absl::StrCat("pipeline ", name_),
      [plan = phase.plan, ring = sink_, device = device_sink_, options] {
        if (device != nullptr) return Executor::Create(plan, *device, options);
        return Executor::Create(plan, *ring, options);
      });
}

bool Stream::End(Executor& executor) const {
  if (read_deadline_.leftovers != nullptr) return executor.TryStop();
  executor.Stop();
  return true;
}

void Stream::Leave(std::unique_ptr<Executor> executor) const {
  read_deadline_.leftovers->Take(absl::StrCat("pipeline ", name_), std::move(executor),
                                 {device_sink_, placement_, sink_, split_log_, memory_});
}

absl::Status Stream::Start() {
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (executor_ == nullptr || started_) return absl::OkStatus();
    started_ = true;
    absl::StatusOr<std::thread> advancing = NewThread("pipeline change", [this] { Advance(); });
    status = advancing.status();
    if (advancing.ok()) {
      advancing_ = *std::move(advancing);
      status = executor_->Start();
    }
  }
  // Whoever is attached already is told.
  if (!status.ok()) producers_sink().Finish(status);
  return status;
}

void Stream::Stop(const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(limit_mutex_);
    ends_ = true;
  }
  limit_changed_.notify_all();
  {
    // Whoever has change_mutex_ may wait for a front that hangs.
    std::lock_guard<std::mutex> lock(mutex_);
    if (executor_ != nullptr) executor_->Cancel();
  }
  std::unique_ptr<Executor> executor;
  {
    std::lock_guard<std::mutex> change_lock(change_mutex_);
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    executor = std::move(executor_);
  }
  if (executor == nullptr) return;
  if (advancing_.joinable()) advancing_.join();
  const bool ended = End(*executor);
  sink_->Close(reason);
  if (!ended) Leave(std::move(executor));
}

uint64_t Stream::Hold() {
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++holds_;
  }
  // Without that lock: it may have to wait for a front that reads.
  Executor* const held = executor();
  return held == nullptr ? 0 : held->Hold();
}

void Stream::Release() {
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --holds_;
  }
  if (Executor* const held = executor(); held != nullptr) held->Release();
}

bool Stream::KnowsEnd() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ == nullptr || executor_->KnowsEnd();
}

absl::Status Stream::SetWorkers(int workers) {
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  Executor* executor = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    executor = executor_.get();
  }
  if (executor == nullptr) return absl::OkStatus();
  absl::Status status = executor->SetWorkers(workers);
  std::lock_guard<std::mutex> lock(mutex_);
  if (status.ok()) workers_ = workers;
  return status;
}

bool Stream::StartTrace() {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ != nullptr && executor_->StartTrace();
}

WorkSpans Stream::StopTrace() {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ != nullptr ? executor_->StopTrace() : WorkSpans();
}

void Stream::SetReadAhead(const std::map<std::string, int64_t>& bytes) {
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  read_ahead_ = bytes;
  if (executor_ != nullptr) executor_->SetReadAhead(bytes);
}

std::optional<ExecutorStats> Stream::Snapshot() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return std::nullopt;
  return StatsNow();
}

ExecutorStats Stream::StatsNow() const {
  uint64_t again = 0;
  // First: what is listed is counted by then.
  if (!skipped_before_.empty()) SkippedNow(&again);
  ExecutorStats now = executor_->Snapshot();
  now.skipped -= again;
  return Sum(before_, std::move(now));
}

std::vector<SkippedRecord> Stream::SkippedNow(uint64_t* again) const {
  const auto key = [](const SkippedRecord& one) {
    return std::tie(one.path, one.place.epoch, one.place.damage.offset, one.place.damage.length,
                    one.place.message);
  };
  using Key = decltype(key(skipped_before_.front()));
  std::multiset<Key> before;
  for (const SkippedRecord& one : skipped_before_) before.insert(key(one));
  std::vector<SkippedRecord> skipped;
  for (SkippedPlace& place : executor_->Skipped()) {
    std::string path = phases_.front().plan->FilePath(place.file);
    SkippedRecord one{std::move(place), std::move(path)};
    if (const auto found = before.find(key(one)); found != before.end()) {
      before.erase(found);
      ++*again;
    } else {
      skipped.push_back(std::move(one));
    }
  }
  return skipped;
}

std::vector<SkippedRecord> Stream::Skipped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return {};
  std::vector<SkippedRecord> all = skipped_before_;
  uint64_t again = 0;
  const std::vector<SkippedRecord> now = SkippedNow(&again);
  all.insert(all.end(), now.begin(), now.end());
  if (all.size() > DamageLog::kMaxListed) all.resize(DamageLog::kMaxListed);
  return all;
}

std::vector<WorkerPulse> Stream::Pulses() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return executor_ == nullptr ? std::vector<WorkerPulse>() : executor_->Pulses();
}

void Stream::EndAtHungRead() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ != nullptr) executor_->EndAtHungRead();
}

}  // namespace penstock
