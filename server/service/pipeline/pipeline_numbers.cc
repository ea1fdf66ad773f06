#include "server/service/pipeline/pipeline_numbers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/numa_node.h"
#include "base/processors.h"
#include "ring/aligned_map.h"
#include "ring/memory_limit.h"
#include "server/engine/read/file_table.h"
#include "server/service/stream/ring_sink.h"

namespace penstock {
namespace {

// Of the memory that there is, what a ring may grow by without being asked for.
constexpr uint64_t kPartForSlots = 8;

}  // namespace

PipelineNumbers::PipelineNumbers(const PipelineBasis& basis, const std::vector<v1::Change>& history)
    : checked_(basis.checked),
      options_(basis.options),
      share_(options_.quotas, options_.owner.uid),
      workers_(checked_.workers),
      slots_(checked_.slots),
      workers_are_chosen_(checked_.plan->spec().workers() > 0),
      slots_are_chosen_(checked_.plan->spec().ring().slots() > 0),
      read_ahead_is_chosen_(checked_.plan->spec().read_ahead_bytes() > 0) {
  if (read_ahead_is_chosen_) read_ahead_[""] = checked_.plan->spec().read_ahead_bytes();
  for (const v1::Change& change : history) Take(change);
}

absl::Status PipelineNumbers::TakeWorkers(bool returns) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int wanted = workers_ > 0 ? workers_ : DefaultWorkers();
  if (returns && workers_are_chosen_) {
    share_.Keep(wanted);
    return absl::OkStatus();
  }
  if (workers_are_chosen_) return share_.Have(wanted);
  const absl::StatusOr<int> had = share_.HaveUpTo(wanted);
  if (!had.ok() && !returns) return had.status();
  // One that comes back goes on, if with a single worker.
  if (!had.ok()) share_.Keep(1);
  if (share_.workers() < wanted) workers_ = share_.workers();
  return absl::OkStatus();
}

int PipelineNumbers::Chosen(int workers) const {
  // 0: nothing has been taken yet.
  const int had = share_.workers();
  return had == 0 ? workers : std::min(workers, had);
}

// A slot's tensors begin on pages of their own, huge ones where variable memory grows, and what has
// no fixed size has some bytes to spare.
uint64_t PipelineNumbers::SlotCost() const {
  const uint64_t bytes = checked_.layout->slot_bytes();
  const uint64_t page_bytes = checked_.plan->variable_grows() ? ring::kHugePageBytes : 0;
  return bytes + bytes / 64 + (uint64_t{64} << 10) + page_bytes;
}

absl::Status PipelineNumbers::Check(const v1::Change& change) const {
  if (change.has_slots()) {
    if (absl::Status status = CheckSlots(change.slots()); !status.ok()) return status;
  }
  if (change.has_workers() && change.workers() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: expected 0 (automatic) or more, found ", change.workers()));
  }
  if (absl::Status status = CheckReadAhead(change.read_ahead_bytes()); !status.ok()) return status;
  if (!change.has_memory_bytes()) return absl::OkStatus();
  const int64_t bytes = change.memory_bytes();
  if (bytes == 0) return absl::OkStatus();
  const uint64_t least = kMinSlots * SlotCost();
  if (bytes < 0 || static_cast<uint64_t>(bytes) < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_bytes: expected 0 (no limit of its own) or at least ", least,
                     ", which ", kMinSlots, " slots of this pipeline take, found ", bytes));
  }
  if (checked_.plan->spec().ring().has_device()) {
    return absl::FailedPreconditionError(
        "memory_bytes: a ring on a device is laid out when it is made; delete the pipeline and "
        "create it with other ring.slots");
  }
  return absl::OkStatus();
}

void PipelineNumbers::Take(const v1::Change& change) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (change.has_workers()) {
    workers_are_chosen_ = change.workers() > 0;
    workers_ = workers_are_chosen_ ? change.workers() : Chosen(DefaultWorkers());
  }
  if (change.has_slots()) {
    slots_are_chosen_ = change.slots() > 0;
    slots_ = slots_are_chosen_ ? static_cast<uint32_t>(change.slots()) : DefaultSlotsOf(checked_);
  }
  if (change.has_read_ahead_bytes()) {
    read_ahead_is_chosen_ = change.read_ahead_bytes() > 0;
    read_ahead_.clear();
    if (read_ahead_is_chosen_) read_ahead_[""] = change.read_ahead_bytes();
  }
  if (change.has_memory_bytes()) *memory_bytes_ = static_cast<uint64_t>(change.memory_bytes());
  slots_ = std::min(slots_, SlotsWithin(*memory_bytes_));
}

int PipelineNumbers::DefaultWorkers() const {
  if (options_.defaults.workers() > 0) return options_.defaults.workers();
  const int processors = ThreadsFor(UsableProcessors());
  return std::min(processors, NodeProcessors().value_or(processors));
}

std::optional<int> PipelineNumbers::NodeProcessors() const {
  if (checked_.numa_node == kNoNumaNode) return std::nullopt;
  const absl::StatusOr<std::vector<int>> processors = ProcessorsOfNode(checked_.numa_node);
  if (!processors.ok()) return std::nullopt;
  return static_cast<int>(processors->size());
}

uint32_t PipelineNumbers::SlotsWithin(uint64_t memory_bytes) const {
  if (memory_bytes == 0) return kMaxSlots;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(memory_bytes / SlotCost(), kMinSlots, kMaxSlots));
}

// Those of the change as they are to be applied: given back ones by what the daemon begins with.
absl::Status PipelineNumbers::Apply(const v1::Change& change,
                                    const std::vector<std::shared_ptr<Stream>>& streams) {
  ring::Writer& writer = streams.front()->writer();
  const uint64_t memory_bytes = change.has_memory_bytes()
                                    ? static_cast<uint64_t>(change.memory_bytes())
                                    : memory_bytes_->load();
  const uint32_t most = SlotsWithin(memory_bytes);
  if (change.slots() > static_cast<int>(most)) {
    return absl::ResourceExhaustedError(absl::StrCat("ring.slots: memory_bytes of the pipeline, ",
                                                     memory_bytes, ", is enough for ", most,
                                                     ", found ", change.slots()));
  }
  int workers = change.workers();
  if (change.has_workers() && workers > 0) {
    if (absl::Status status = share_.Have(workers); !status.ok()) return status;
  } else if (change.has_workers()) {
    const absl::StatusOr<int> had = share_.HaveUpTo(DefaultWorkers());
    if (!had.ok()) return had.status();
    workers = *had;
  }
  // Small rings of those who catch up stay small.
  const uint32_t slots = change.slots() > 0 ? static_cast<uint32_t>(change.slots()) : most;
  if (change.slots() > 0 || writer.slots() > most) {
    const ring::Status status = writer.SetSlots(slots);
    if (!status.ok()) return FromRing(status);
  }
  if (change.has_read_ahead_bytes()) {
    std::map<std::string, int64_t> bytes;
    if (change.read_ahead_bytes() > 0) bytes[""] = change.read_ahead_bytes();
    for (const auto& stream : streams) stream->SetReadAhead(bytes);
  }
  if (!change.has_workers()) return absl::OkStatus();
  for (const auto& stream : streams) {
    absl::Status status = stream->SetWorkers(workers);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void PipelineNumbers::Undo(const v1::Change& change, uint32_t slots_before,
                           const std::vector<std::shared_ptr<Stream>>& streams) {
  ring::Writer& writer = streams.front()->writer();
  if (writer.slots() != slots_before) (void)writer.SetSlots(slots_before);
  int workers;
  std::map<std::string, int64_t> read_ahead;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    workers = workers_;
    read_ahead = read_ahead_;
  }
  if (change.has_workers()) share_.Keep(workers > 0 ? workers : DefaultWorkers());
  for (const auto& stream : streams) {
    if (change.has_read_ahead_bytes()) stream->SetReadAhead(read_ahead);
    if (change.has_workers() && workers > 0) stream->SetWorkers(workers).IgnoreError();
  }
}

bool PipelineNumbers::DepthIsFree() const {
  return !slots_are_chosen_ && !checked_.plan->spec().ring().has_device();
}

Tunes PipelineNumbers::tunes() const {
  if (!options_.defaults.autotune()) return {};
  std::lock_guard<std::mutex> lock(mutex_);
  return {!workers_are_chosen_, DepthIsFree(), !read_ahead_is_chosen_};
}

PipelineNumbers::OfStream PipelineNumbers::ForStream() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {workers_, DepthIsFree(), read_ahead_};
}

uint32_t PipelineNumbers::MostSlots(const ring::Writer& writer) const {
  uint64_t left = ring::ReadUnpromisedMemory().bytes / kPartForSlots;
  if (options_.memory != nullptr)
    left = std::min(left, options_.memory->Left(Limited(options_.owner)));
  const uint64_t more = std::min<uint64_t>(left / SlotCost(), kMaxSlots);
  return std::min({writer.slots() + static_cast<uint32_t>(more), SlotsWithin(*memory_bytes_),
                   static_cast<uint32_t>(kMaxSlots)});
}

absl::Status PipelineNumbers::Tune(const Tuning& wanted, v1::Autotune report,
                                   const std::vector<std::shared_ptr<Stream>>& streams) {
  // An update may have named a number meanwhile.
  const Tunes may = tunes();
  int workers = 0;
  if (may.workers && wanted.workers) {
    const absl::StatusOr<int> had = share_.HaveUpTo(*wanted.workers);
    if (!had.ok()) return had.status();
    workers = *had;
    for (const auto& stream : streams) {
      if (absl::Status status = stream->SetWorkers(workers); !status.ok()) return status;
    }
  }
  if (may.slots && wanted.slots) {
    const ring::Status status = streams.front()->writer().SetSlots(*wanted.slots);
    if (!status.ok()) return FromRing(status);
  }
  if (may.read_ahead && wanted.read_ahead) {
    for (const auto& stream : streams) stream->SetReadAhead(*wanted.read_ahead);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (workers > 0) workers_ = workers;
  if (may.slots && wanted.slots) slots_ = *wanted.slots;
  if (may.read_ahead && wanted.read_ahead) read_ahead_ = *wanted.read_ahead;
  autotune_ = std::move(report);
  return absl::OkStatus();
}

void PipelineNumbers::Describe(v1::PipelineSpec* spec) const {
  std::lock_guard<std::mutex> lock(mutex_);
  spec->set_workers(workers_);
  spec->mutable_ring()->set_slots(static_cast<int>(slots_));
  spec->set_read_ahead_bytes(read_ahead_is_chosen_ ? read_ahead_.at("") : 0);
}

}  // namespace penstock
