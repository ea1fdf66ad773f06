#include "ring/writer.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "ring/consumer_table.h"
#include "ring/doorbell.h"
#include "ring/futex.h"
#include "ring/layout.h"
#include "ring/segment.h"
#include "ring/slot_table.h"

namespace penstock::ring {
namespace {

// An idle worker looks this often before it sleeps; longer takes a core from those that work.
constexpr int kSpins = 50;

// The indices of the tensors that are not fixed.
std::vector<uint32_t> VariableTensors(const SegmentPlan& plan) {
  std::vector<uint32_t> tensors;
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    if (!IsFixed(plan.tensors[i])) tensors.push_back(i);
  }
  return tensors;
}

class RingWriter : public Writer {
 public:
  explicit RingWriter(std::unique_ptr<Segment> segment)
      : segment_(std::move(segment)),
        variable_tensors_(VariableTensors(segment_->plan())),
        slots_(segment_->header().slots.load(), segment_->header().published.load()) {}

  Status Start() { return doorbell_.Create(); }

  int TryClaim() override;
  uint8_t* tensor(int slot, int tensor) override {
    if (!IsFixed(segment_->plan().tensors[static_cast<size_t>(tensor)])) return nullptr;
    return segment_->tensor(static_cast<uint32_t>(slot), static_cast<uint32_t>(tensor));
  }
  uint8_t* variable(int slot) override { return segment_->variable(static_cast<uint32_t>(slot)); }
  uint64_t variable_bytes() const override { return segment_->plan().variable_bytes; }
  void Publish(int slot, const PublishInfo& info) override;
  void Finish(Code code, std::string_view message) override;
  void WaitForRelease(uint64_t timeout_ns) override;
  void Interrupt() override { doorbell_.Ring(); }

  Status Attach(std::string_view group, int32_t pid, ConsumerHandle* out) override;
  void Detach(uint32_t id) override;

  std::vector<ConsumerStats> Consumers() const override;
  uint64_t published() const override { return header().published.load(std::memory_order_acquire); }
  uint64_t segment_bytes() const override { return segment_->bytes(); }
  uint32_t slots() const override { return header().slots.load(std::memory_order_acquire); }

 private:
  SegmentHeader& header() const { return segment_->header(); }
  bool AnyFree() {
    std::lock_guard<std::mutex> lock(mutex_);
    return slots_.Sweep(consumers_.Members());
  }
  // Puts the extents of tensors that are not fixed into the slot's table.
  void WriteExtents(uint32_t slot, std::span<const TensorExtent> extents);
  bool MaySleep();
  void GrowFor(uint32_t num_consumers);
  void ShareLeases();
  // Wakes those whose bits are set; called without mutex_, since it is a system call.
  void Wake(uint32_t bits) {
    if (bits != 0) FutexWake(header().wake_word, bits);
  }
  // The bits for Wake(). The word changes before the wake-up: a consumer that has announced its
  // sleep but does not sleep yet finds another word than the one it read.
  uint32_t TakeSleepers(bool everybody) {
    const uint32_t bits = consumers_.TakeSleepers(slots_.published(), everybody);
    // SYNC consumer-wake
    if (bits != 0) header().wake_word.fetch_add(1, std::memory_order_seq_cst);
    return bits;
  }

  // Constant after construction, but for the shared memory itself.
  const std::unique_ptr<Segment> segment_;
  const std::vector<uint32_t> variable_tensors_;

  // Own synchronisation.
  Doorbell doorbell_;

  // Serialises newcomers: taking pages for their slots is slow, and the producer goes on meanwhile.
  std::mutex attach_mutex_;

  mutable std::mutex mutex_;
  SlotTable slots_;
  mutable ConsumerTable consumers_;
  uint32_t last_id_ = 0;
  bool starved_ = false;  // the last claim failed: sleepers must not wait for a second batch
};

int RingWriter::TryClaim() {
  uint32_t sleepers = 0;
  int slot;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_.Sweep(consumers_.Members());
    slot = slots_.Claim();
    if (slot >= 0) {
      segment_->slot_entry(static_cast<uint32_t>(slot)).step = kNoStep;
      starved_ = false;
    } else if (!starved_) {
      starved_ = true;
      sleepers = TakeSleepers(/*everybody=*/true);
    }
  }
  Wake(sleepers);
  return slot;
}

void RingWriter::WriteExtents(uint32_t slot, std::span<const TensorExtent> extents) {
  const SegmentPlan& plan = segment_->plan();
  if (extents.size() != variable_tensors_.size()) std::abort();
  for (size_t i = 0; i < extents.size(); ++i) {
    const uint32_t num_parts = NumParts(plan.tensors[variable_tensors_[i]]);
    TensorExtent& written = segment_->extents(slot)[variable_tensors_[i]];
    for (uint32_t part = 0; part < num_parts; ++part) {
      const auto [offset, bytes] = extents[i].parts[part];
      // A producer that wrote there has overwritten what others read.
      if (offset > plan.variable_bytes || bytes > plan.variable_bytes - offset) std::abort();
      written.parts[part] = {plan.variable_offset + offset, bytes};
    }
  }
}

void RingWriter::Publish(int slot, const PublishInfo& info) {
  const uint32_t index = static_cast<uint32_t>(slot);
  WriteExtents(index, info.extents);
  SlotEntry& entry = segment_->slot_entry(index);
  entry.epoch = info.epoch;
  entry.rows = info.rows;
  entry.valid_rows = info.valid_rows.value_or(info.rows);
  entry.cursor_bytes = static_cast<uint32_t>(std::min<size_t>(info.cursor.size(), kMaxCursorBytes));
  if (entry.cursor_bytes > 0) std::memcpy(entry.cursor, info.cursor.data(), entry.cursor_bytes);
  entry.step = info.step;
  RingEntry& ring_entry = segment_->ring_entry(info.step);
  ring_entry.step = info.step;
  ring_entry.slot = index;

  uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    assert(info.step == slots_.published());
    slots_.Publish(index);
    // SYNC slot-publish: everything written to the slot and its entries comes before.
    header().published.store(info.step + 1, std::memory_order_seq_cst);
    sleepers = TakeSleepers(starved_);
  }
  Wake(sleepers);
}

void RingWriter::Finish(Code code, std::string_view message) {
  uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    SegmentHeader& head = header();
    if (head.ended.load(std::memory_order_relaxed) != 0) return;
    head.end_code = static_cast<int32_t>(code);
    head.end_message_bytes =
        static_cast<uint32_t>(std::min<size_t>(message.size(), kMaxMessageBytes));
    std::memcpy(head.end_message, message.data(), head.end_message_bytes);
    // SYNC stream-end: code and message come before.
    head.ended.store(1, std::memory_order_seq_cst);
    sleepers = TakeSleepers(/*everybody=*/true);
  }
  Wake(sleepers);
}

bool RingWriter::MaySleep() {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t announced = 0;
  while (true) {
    const std::span<const Member> members = consumers_.Members();
    if (slots_.Sweep(members)) return false;
    const uint64_t blockers = slots_.Blockers(members);
    // Sleep only when every blocker was seen to hold its slot *after* its bit was set: its release
    // then finds the bit. A slot that had no blocker any more was released since the sweep.
    if ((blockers & ~announced) == 0) return !slots_.Sweep(members);
    announced |= blockers;
    // SYNC release-wake: before the look at `released`, as the consumer looks here after its store.
    header().waits_for.store(announced, std::memory_order_seq_cst);
  }
}

void RingWriter::WaitForRelease(uint64_t timeout_ns) {
  for (int i = 0; i < kSpins; ++i) {
    if (AnyFree()) return;
    SpinPause();
  }
  doorbell_.Wait(
      timeout_ns, [this] { return MaySleep(); },
      [this] { header().waits_for.store(0, std::memory_order_relaxed); });
}

void RingWriter::GrowFor(uint32_t num_consumers) {
  const uint32_t have = header().slots.load(std::memory_order_relaxed);
  const uint32_t want = std::min(2 * num_consumers + 1, header().slots_max);
  if (want <= have) return;
  // Without the memory the consumers share what there is, and copy more.
  if (!segment_->Populate(have, want - have).ok()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  slots_.Grow(want);
  header().slots.store(want, std::memory_order_release);
}

void RingWriter::ShareLeases() {
  const uint32_t consumers = consumers_.size();
  const uint32_t share = (slots_.slots() - 1) / std::max(consumers, 1u);
  header().consumers.store(consumers, std::memory_order_relaxed);
  header().lease_share.store(std::max(share, 1u), std::memory_order_relaxed);
}

Status RingWriter::Attach(std::string_view group, int32_t pid, ConsumerHandle* out) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  int index;
  uint32_t id, newcomers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    index = consumers_.FreeIndex();
    if (index < 0) {
      return {Code::kResourceExhausted,
              "the ring has as many consumers as it can: " + std::to_string(kMaxConsumers)};
    }
    id = ++last_id_;
    newcomers = consumers_.size() + 1;
  }
  Consumer consumer;
  consumer.id = id;
  consumer.pid = pid;
  consumer.group = group;
  if (Status status = ConsumerPage::Create(header().generation, id, static_cast<uint32_t>(index),
                                           &consumer.page);
      !status.ok()) {
    return status;
  }
  if (Status status = doorbell_.Watch(consumer.page->bell_fd()); !status.ok()) return status;
  GrowFor(newcomers);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_.Sweep(consumers_.Members());
    const uint64_t start = slots_.floor();
    ControlPage& page = consumer.page->page();
    page.start_step = start;
    page.position.store(start, std::memory_order_relaxed);
    *out = {id, start, segment_->fd(), consumer.page->fd(), consumer.page->bell_fd()};
    consumers_.Add(std::move(consumer), static_cast<uint32_t>(index), start);
    ShareLeases();
  }
  doorbell_.Ring();
  return {};
}

void RingWriter::Detach(uint32_t id) {
  Consumer removed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // What everybody had released while this one was here counts as served.
    slots_.Sweep(consumers_.Members());
    removed = consumers_.Remove(id);
    ShareLeases();
  }
  if (removed.page != nullptr) doorbell_.Unwatch(removed.page->bell_fd());
  doorbell_.Ring();
}

std::vector<ConsumerStats> RingWriter::Consumers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  consumers_.Members();
  std::vector<ConsumerStats> stats;
  for (uint32_t i = 0; i < consumers_.size(); ++i) {
    const Consumer& consumer = consumers_.consumer(i);
    const Member& member = consumers_.member(i);
    stats.push_back({consumer.id, consumer.group, consumer.pid,
                     member.page->position.load(std::memory_order_relaxed), slots_.Leases(member)});
  }
  return stats;
}

}  // namespace

Status Writer::Create(const SegmentOptions& options, std::unique_ptr<Writer>* out) {
  std::unique_ptr<Segment> segment;
  if (Status status = Segment::Create(options, &segment); !status.ok()) return status;
  auto writer = std::make_unique<RingWriter>(std::move(segment));
  if (Status status = writer->Start(); !status.ok()) return status;
  *out = std::move(writer);
  return {};
}

}  // namespace penstock::ring
