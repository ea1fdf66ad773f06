#include "ring/writer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "ring/ring_writer.h"

namespace penstock::ring {
namespace {

// An idle worker looks this often before it sleeps; longer takes a core from those that work.
constexpr int kSpins = 50;
// How often a ring that uses fewer slots than it has looks whether its consumer keeps more batches
// than a loop does.
constexpr uint64_t kKeepersLookNs = 20'000'000;
// And one whose slots are held by somebody for whom nobody waits, whether others have taken all
// that is ready.
constexpr uint64_t kPassingLookNs = 2'000'000;

// The indices of the tensors that are not fixed.
std::vector<uint32_t> VariableTensors(const SegmentPlan& plan) {
  std::vector<uint32_t> tensors;
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    if (!IsFixed(plan.tensors[i])) tensors.push_back(i);
  }
  return tensors;
}

}  // namespace

RingWriter::RingWriter(std::unique_ptr<Segment> segment, const SegmentOptions& options)
    : segment_(std::move(segment)),
      variable_tensors_(VariableTensors(segment_->plan())),
      split_log_(options.split_log),
      numa_node_(options.numa_node),
      slots_(segment_->header().slots.load(), segment_->header().published.load()),
      cursors_(options.first_step, options.first_cursor) {}

int RingWriter::TryClaim() {
  uint32_t sleepers = 0;
  int slot;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_.Sweep(consumers_.Members());
    slot = slots_.Claim();
    if (slot < 0 && PassOver(&sleepers)) {
      slots_.Sweep(consumers_.Members());
      slot = slots_.Claim();
    }
    if (slot >= 0) {
      segment_->slot_entry(static_cast<uint32_t>(slot)).step = kNoStep;
      starved_ = false;
    } else if (!starved_) {
      starved_ = true;
      sleepers |= TakeSleepers(Sleepers::kWithABatch);
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
  bool is_free;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    assert(info.step == slots_.published());
    consumers_.Publish(info.step, index, cursors_.Before(info.step), info.cursor);
    cursors_.Add(info.step, info.cursor);
    slots_.Publish(index);
    // SYNC release-wake: whoever sleeps did not know of this slot's blockers, and nobody can have
    // released it yet.
    if (asleep_)
      header().waits_for.fetch_or(slots_.Blockers(consumers_.Members()), std::memory_order_seq_cst);
    // SYNC slot-publish: everything written to the slot and its entries comes before.
    header().published.store(info.step + 1, std::memory_order_seq_cst);
    GoOnTrying();
    sleepers = LeaveSome(TakeSleepers(starved_ ? Sleepers::kWithABatch : Sleepers::kServed)) |
               ChangeWord(Grant());
    is_free = asleep_ && slots_.Sweep(consumers_.Members());
  }
  Wake(sleepers);
  if (is_free) doorbell_.Ring();
}

uint32_t RingWriter::LeaveSome(uint32_t sleepers) {
  if (sleepers == 0) return 0;
  const uint32_t here = ProcessorHere();
  const uint64_t now_ns = MonotonicNs();
  uint32_t now = 0;
  for (const Consumer& consumer : consumers_.consumers()) {
    const uint32_t bit = WaitBit(consumer) & sleepers;
    const uint32_t there = consumer.page->page().processor.load(std::memory_order_relaxed);
    if (bit != 0 && !left_wakes_.Leave(there, bit, here, now_ns)) now |= bit;
  }
  return now;
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
    sleepers = ChangeWord(Grant()) | TakeSleepers(Sleepers::kAll);
  }
  Wake(sleepers);
}

bool RingWriter::MaySleep() {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t announced = 0;
  std::vector<Party> passing;
  while (true) {
    const std::span<const Member> members = consumers_.Members();
    if (slots_.Sweep(members)) return false;
    uint64_t blockers = slots_.Blockers(members);
    const Passing found = LookForPassing(&passing);
    if (found == Passing::kNow) return false;
    // Whoever has taken all that is ready lets go of something first, as a rule.
    if (found == Passing::kNotYet) {
      for (const Consumer& consumer : consumers_.consumers())
        blockers |= uint64_t{1} << consumer.index;
    }
    // Sleep only when every blocker was seen to hold its slot *after* its bit was set: its release
    // then finds the bit. A slot that had no blocker any more was released since the sweep.
    if ((blockers & ~announced) == 0) {
      asleep_ = !slots_.Sweep(members);
      return asleep_;
    }
    announced |= blockers;
    // SYNC release-wake: before the look at `released`, as the consumer looks here after its store.
    header().waits_for.store(announced, std::memory_order_seq_cst);
  }
}

void RingWriter::WaitForRelease(uint64_t timeout_ns) {
  Rest();
  {
    // Who keeps another batch gives a slot free by it, of those that are not used, and rings no
    // bell.
    std::lock_guard<std::mutex> lock(mutex_);
    if (trial_.used() < slots_.limit()) timeout_ns = std::min(timeout_ns, kKeepersLookNs);
    if (std::vector<Party> passing; LookForPassing(&passing) != Passing::kNobody)
      timeout_ns = std::min(timeout_ns, kPassingLookNs);
  }
  for (int i = 0; i < kSpins; ++i) {
    if (AnyFree()) return;
    SpinPause();
  }
  doorbell_.Wait(
      timeout_ns, [this] { return MaySleep(); },
      [this] {
        std::lock_guard<std::mutex> lock(mutex_);
        asleep_ = false;
        header().waits_for.store(0, std::memory_order_relaxed);
      });
}

uint32_t RingWriter::SlotsFor(uint32_t share) const {
  uint32_t slots = 1;
  for (const Consumer& consumer : consumers_.consumers())
    slots += std::max(consumers_.NumKept(consumer, slots_), share);
  return slots;
}

void RingWriter::GrowTo(uint32_t slots) {
  const uint32_t have = header().slots.load(std::memory_order_relaxed);
  const uint32_t want = std::min(slots, header().slots_max);
  uint32_t grown = have;
  // Without the memory the consumers share what there is, and copy more.
  while (grown < want && segment_->Populate(grown, 1).ok()) ++grown;
  if (grown == have) return;
  std::lock_guard<std::mutex> lock(mutex_);
  slots_.Grow(grown);
  header().slots.store(grown, std::memory_order_release);
}

uint32_t RingWriter::Quarantined() const {
  uint32_t quarantined = 0;
  for (const Consumer& consumer : consumers_.consumers()) {
    quarantined += static_cast<uint32_t>(std::popcount(consumer.member.kept));
  }
  return quarantined;
}

void RingWriter::ShareLeases() {
  const uint32_t consumers = consumers_.size();
  const uint32_t wanted = std::max(wanted_slots_, Quarantined() + consumers + 1);
  slots_.SetLimit(wanted);
  uint32_t share = std::max((slots_.limit() - 1) / std::max(consumers, 1u), 1u);
  // What somebody holds beyond it is not there for the others before it is let go of.
  while (share > 1 && SlotsFor(share) > slots_.slots()) --share;
  slots_.SetLimit(std::max(wanted, SlotsFor(share)));
  holds_more_ = SlotsFor(share) > consumers * share + 1;
  // One more than its share: what is beyond that it copies and lets go of. Before it can see the
  // share.
  for (Consumer& consumer : consumers_.consumers())
    consumer.held_max = std::max(consumer.held_max, share + 1);
  header().consumers.store(consumers, std::memory_order_relaxed);
  header().lease_share.store(share, std::memory_order_relaxed);
  BeginTrial();
}

void RingWriter::BeginTrial() {
  const std::span<const Consumer> consumers = consumers_.consumers();
  const bool may = tries_fewer_ && consumers.size() == 1 && consumers_.ranks().empty() &&
                   consumers_.splits().empty();
  const uint32_t most = slots_.limit();
  trial_.Begin(may ? SlotTable::kLoopLeases + 1 : most, most);
  slots_.SetUsed(kMaxSlots);
}

void RingWriter::GoOnTrying() {
  if (!trial_.is_on()) return;
  const Consumer& consumer = consumers_.consumers().front();
  const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
  if (std::popcount(slots_.Held(consumer.member, position)) >
      static_cast<int>(SlotTable::kLoopLeases)) {
    // It keeps batches: each slot less is one less to go on with.
    trial_.Stop();
  } else {
    trial_.Publish(MonotonicNs());
  }
  slots_.SetUsed(trial_.is_on() ? trial_.used() : kMaxSlots);
}

void RingWriter::TryFewerSlots(bool may) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (tries_fewer_ == may) return;
    tries_fewer_ = may;
    BeginTrial();
  }
  doorbell_.Ring();
}

Status RingWriter::SetSlots(uint32_t slots) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  const uint32_t have = header().slots.load(std::memory_order_relaxed);
  const uint32_t want = std::min(slots, header().slots_max);
  if (want > have) {
    if (Status status = segment_->Populate(have, want - have); !status.ok()) return status;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (want > have) {
      slots_.Grow(want);
      header().slots.store(want, std::memory_order_release);
    }
    wanted_slots_ = want;
    ShareLeases();
  }
  doorbell_.Ring();
  return {};
}

std::optional<HeldStep> RingWriter::HoldNewest() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (slots_.pinned() >= 0) return std::nullopt;
  std::optional<HeldStep> newest;
  for (uint32_t slot = 0; slot < slots_.slots(); ++slot) {
    if (slots_.state(slot) != SlotTable::State::kReady &&
        slots_.state(slot) != SlotTable::State::kFree) {
      continue;
    }
    const auto& entry = segment_->slot_entry(slot);
    if (entry.step == kNoStep || (newest && entry.step < newest->step)) continue;
    newest = HeldStep{static_cast<int>(slot), entry.step, entry.rows};
  }
  if (newest) slots_.Pin(newest->slot);
  return newest;
}

void RingWriter::LetGo() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_.Pin(-1);
  }
  doorbell_.Ring();
}

Status Writer::Create(const SegmentOptions& options, std::unique_ptr<Writer>* out) {
  std::unique_ptr<Segment> segment;
  if (Status status = Segment::Create(options, &segment); !status.ok()) return status;
  auto writer = std::make_unique<RingWriter>(std::move(segment), options);
  if (Status status = writer->Start(); !status.ok()) return status;
  *out = std::move(writer);
  return {};
}

}  // namespace penstock::ring
