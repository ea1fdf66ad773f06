#include "ring/writer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "ring/consumer_table.h"
#include "ring/doorbell.h"
#include "ring/futex.h"
#include "ring/layout.h"
#include "ring/numa_memory.h"
#include "ring/recent_cursors.h"
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
  RingWriter(std::unique_ptr<Segment> segment, const SegmentOptions& options)
      : segment_(std::move(segment)),
        variable_tensors_(VariableTensors(segment_->plan())),
        split_log_(options.split_log),
        numa_node_(options.numa_node),
        slots_(segment_->header().slots.load(), segment_->header().published.load()),
        cursors_(options.first_step, options.first_cursor) {}

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

  Status Attach(const ConsumerSpec& spec, const ConsumerPosition& position, int32_t pid,
                ConsumerHandle* out) override;
  void Detach(uint32_t id) override;
  void Deal() override;
  void Tick(uint64_t now_ns, uint64_t rejoin_ns) override;
  void SendAway() override;
  bool Dismiss(uint32_t id, std::string_view message) override;
  void SetSlowPolicy(std::string_view group, SlowPolicy slow, uint32_t lag_ms) override;
  Status SetSlots(uint32_t slots) override;
  void RestoreSplit(const std::string& group, const SplitState& state) override;
  void EndRestore() override;
  std::optional<HeldStep> HoldNewest() override;
  void LetGo() override;
  std::string Cursor(uint64_t step) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::string(cursors_.Before(step));
  }
  uint64_t floor() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_.Sweep(consumers_.Members());
    return slots_.floor();
  }

  bool IsDeserted() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return consumers_.size() == 0 && consumers_.ranks().empty() && consumers_.splits().empty();
  }
  bool has_huge_pages() const override { return segment_->has_huge_pages(); }
  int numa_error() const override { return segment_->numa_error(); }
  std::optional<uint64_t> bytes_on_numa_node() const override {
    if (numa_node_ < 0) return std::nullopt;
    return BytesOnNumaNode(segment_->slot_data(0), memory_bytes(), numa_node_);
  }

  std::vector<ConsumerStats> Consumers() const override;
  uint64_t published() const override { return header().published.load(std::memory_order_acquire); }
  uint64_t segment_bytes() const override { return segment_->bytes(); }
  uint64_t memory_bytes() const override {
    return header().slots.load(std::memory_order_relaxed) * segment_->plan().slot_stride;
  }
  uint32_t slots() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return slots_.limit();
  }

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
  // Slots that nobody can use again for a while have others in their place, as memory allows.
  void ReplaceQuarantined();
  uint32_t Quarantined() const;
  void ShareLeases();
  // Where the newcomer starts.
  Status ChooseStart(const ConsumerSpec& spec, const ConsumerPosition& position,
                     const Consumer* rival, uint64_t* start);
  void FillInPage(const ConsumerSpec& spec, uint64_t start, ControlPage* page) const;
  // The steps of a split group that wait for one who asks.
  uint32_t Grant() {
    return consumers_.Grant(header().lease_share.load(std::memory_order_relaxed),
                            header().ended.load(std::memory_order_relaxed) != 0);
  }
  uint32_t EndLostGroups(uint64_t now_ns, uint64_t rejoin_ns);
  // Consumers that hold up somebody who waits, for longer than their policy allows.
  uint32_t SendOnTheSlow(uint64_t now_ns);
  bool SomebodyWaits();
  // Until a batch comes, or the second where one alone is not worth a wake-up.
  static bool IsAsleep(const Consumer& consumer) {
    return !consumer.judged &&
           consumer.page->page().wake_at.load(std::memory_order_relaxed) != kAwake;
  }
  // It sleeps, and there is nothing that it could take. REQUIRES: mutex_.
  bool Waits(const Consumer& consumer) const;
  // What the consumer has not taken is left out for it.
  uint32_t Skip(Consumer& consumer);
  uint32_t Judge(Consumer& consumer, int32_t verdict, std::string_view message);
  SplitGroup& StartSplit(const ConsumerSpec& spec, uint64_t start);
  // Wakes those whose bits are set; called without mutex_, since it is a system call.
  void Wake(uint32_t bits) {
    if (bits != 0) FutexWake(header().wake_word, bits);
  }
  // The bits for Wake(). The word changes before the wake-up: a consumer that has announced its
  // sleep but does not sleep yet finds another word than the one it read.
  uint32_t TakeSleepers(bool everybody) {
    return ChangeWord(consumers_.TakeSleepers(slots_.published(), everybody));
  }
  uint32_t ChangeWord(uint32_t bits) {
    // SYNC consumer-wake
    if (bits != 0) header().wake_word.fetch_add(1, std::memory_order_seq_cst);
    return bits;
  }

  // Constant after construction, but for the shared memory itself.
  const std::unique_ptr<Segment> segment_;
  const std::vector<uint32_t> variable_tensors_;
  SplitLog* const split_log_;
  const int numa_node_;

  // Own synchronisation.
  Doorbell doorbell_;

  // Serialises newcomers: taking pages for their slots is slow, and the producer goes on meanwhile.
  std::mutex attach_mutex_;

  mutable std::mutex mutex_;
  mutable SlotTable slots_;
  RecentCursors cursors_;
  mutable ConsumerTable consumers_;
  uint32_t last_id_ = 0;
  uint32_t wanted_slots_ = kMaxSlots;  // SetSlots()
  bool sent_on_ = false;               // somebody was too slow, and may have taken slots along
  bool asleep_ = false;                // a thread sleeps until one of waits_for releases a slot
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
    sleepers = TakeSleepers(starved_) | ChangeWord(Grant());
    is_free = asleep_ && slots_.Sweep(consumers_.Members());
  }
  Wake(sleepers);
  if (is_free) doorbell_.Ring();
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
    Grant();
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

uint32_t RingWriter::Quarantined() const {
  uint32_t quarantined = 0;
  for (const Consumer& consumer : consumers_.consumers()) {
    quarantined += static_cast<uint32_t>(std::popcount(consumer.member.kept));
  }
  return quarantined;
}

void RingWriter::ShareLeases() {
  const uint32_t consumers = consumers_.size();
  slots_.SetLimit(std::max(wanted_slots_, Quarantined() + consumers + 1));
  const uint32_t share = (slots_.limit() - 1) / std::max(consumers, 1u);
  header().consumers.store(consumers, std::memory_order_relaxed);
  header().lease_share.store(std::max(share, 1u), std::memory_order_relaxed);
}

Status RingWriter::ChooseStart(const ConsumerSpec& spec, const ConsumerPosition& position,
                               const Consumer* rival, uint64_t* start) {
  slots_.Sweep(consumers_.Members());
  *start = slots_.floor();
  if (spec.mode == GroupMode::kSplit) return {};
  // What a place or a rival waits for is kept.
  if (rival != nullptr && rival->member.stop == kNeverStops) {
    *start = slots_.TailNeeded(rival->member);
  }
  uint64_t oldest = std::min(*start, slots_.floor());
  if (const RankGroup* rank = consumers_.FindRank(spec.group);
      rival == nullptr && spec.mode == GroupMode::kRank && rank != nullptr) {
    *start = rank->start(spec.place());
    oldest = std::min(oldest, *start);
  }
  if (!position.known()) return {};
  if (position.step < oldest) {
    return {Code::kOutOfRange, "step " + std::to_string(position.step) +
                                   " has gone: the ring begins with step " +
                                   std::to_string(oldest)};
  }
  *start = position.step;
  return {};
}

void RingWriter::FillInPage(const ConsumerSpec& spec, uint64_t start, ControlPage* page) const {
  page->start_step = start;
  page->takes_grants = spec.mode == GroupMode::kSplit ? 1 : 0;
  const std::string_view cursor = cursors_.Before(start);
  page->start_cursor_bytes = static_cast<uint32_t>(cursor.size());
  if (!cursor.empty()) std::memcpy(page->start_cursor, cursor.data(), cursor.size());
  page->position.store(start, std::memory_order_relaxed);
}

Status RingWriter::Attach(const ConsumerSpec& spec, const ConsumerPosition& position, int32_t pid,
                          ConsumerHandle* out) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  Consumer consumer;
  uint32_t newcomers, sleepers = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Status status = consumers_.CheckGroup(spec); !status.ok()) return status;
    const Consumer* rival = consumers_.FindRival(spec);
    const bool is_itself =
        rival != nullptr && spec.identity != 0 && rival->spec.identity == spec.identity;
    if (rival != nullptr && !is_itself && !spec.take_over) {
      return {Code::kAlreadyExists,
              (spec.mode == GroupMode::kRank ? "rank " + std::to_string(spec.rank)
                                             : "a consumer \"" + rival->spec.name + "\"") +
                  " is attached already, from process " + std::to_string(rival->pid) +
                  "; it can be taken over (group \"" + spec.group + "\")"};
    }
    const int index = consumers_.FreeIndex();
    if (index < 0) {
      return {Code::kResourceExhausted,
              "the ring has as many consumers as it can: " + std::to_string(kMaxConsumers)};
    }
    consumer.index = static_cast<uint32_t>(index);
    consumer.id = ++last_id_;
    newcomers = consumers_.size() + 1;
  }
  consumer.pid = pid;
  consumer.spec = spec;
  if (Status status =
          ConsumerPage::Create(header().generation, consumer.id, consumer.index, &consumer.page);
      !status.ok()) {
    return status;
  }
  if (Status status = doorbell_.Watch(consumer.page->bell_fd()); !status.ok()) return status;
  GrowFor(newcomers);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const Consumer* rival = consumers_.FindRival(spec);
    const uint32_t rival_id = rival != nullptr ? rival->id : 0;
    uint64_t start = 0;
    if (Status status = ChooseStart(spec, position, rival, &start); !status.ok()) {
      doorbell_.Unwatch(consumer.page->bell_fd());
      return status;
    }
    ControlPage& page = consumer.page->page();
    FillInPage(spec, start, &page);
    consumer.member = {&page, uint64_t{1} << consumer.index, start, kNeverStops, 0, 0};
    if (spec.mode == GroupMode::kRank && consumers_.FindRank(spec.group) == nullptr) {
      consumers_.AddRank(spec, start);
    }
    if (spec.mode == GroupMode::kSplit) {
      SplitGroup* split = consumers_.FindSplit(spec.group);
      if (split == nullptr) split = &StartSplit(spec, start);
      split->Rejoin({consumer.id, spec.identity, &page, nullptr, 0, true}, position);
    }
    *out = {.id = consumer.id,
            .start_step = start,
            .segment_fd = segment_->fd(),
            .control_fd = consumer.page->fd(),
            .bell_fd = consumer.page->bell_fd(),
            .takes_grants = consumer.splits()};
    consumers_.Add(std::move(consumer));
    // After the newcomer is there, so that what the other one needed is needed all the time.
    for (Consumer& other : consumers_.consumers()) {
      if (other.id == rival_id) {
        sleepers =
            Judge(other, kVerdictDetached, "another consumer of this name or rank has taken over");
      }
    }
    ShareLeases();
  }
  Wake(sleepers);
  doorbell_.Ring();
  return {};
}

SplitGroup& RingWriter::StartSplit(const ConsumerSpec& spec, uint64_t start) {
  SplitGroup& split = consumers_.AddSplit(std::make_unique<SplitGroup>(
      spec.group, spec.at_most_once, start, cursors_.Before(start), split_log_));
  // What is published already.
  for (uint64_t step = start; step < slots_.published(); ++step) {
    for (uint32_t slot = 0; slot < slots_.slots(); ++slot) {
      if (slots_.state(slot) == SlotTable::State::kReady && slots_.step(slot) == step) {
        split.Publish(step, slot, cursors_.Before(step), cursors_.Before(step + 1));
      }
    }
  }
  return split;
}

void RingWriter::Detach(uint32_t id) {
  Consumer removed;
  uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // What everybody had released while this one was here counts as served.
    slots_.Sweep(consumers_.Members());
    removed = consumers_.Remove(id, slots_);
    ShareLeases();
    // What it held may be another one's now.
    sleepers = ChangeWord(Grant());
  }
  if (removed.page != nullptr) doorbell_.Unwatch(removed.page->bell_fd());
  Wake(sleepers);
  doorbell_.Ring();
}

void RingWriter::Deal() {
  uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sleepers = ChangeWord(Grant());
  }
  Wake(sleepers);
}

uint32_t RingWriter::Judge(Consumer& consumer, int32_t verdict, std::string_view message) {
  return ChangeWord(consumers_.Judge(consumer, verdict, message, slots_,
                                     header().lease_share.load(std::memory_order_relaxed) + 1));
}

void RingWriter::SendAway() {
  uint32_t sleepers = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Consumer& consumer : consumers_.consumers()) {
      if (!consumer.judged) sleepers |= Judge(consumer, kVerdictReattach, "");
    }
  }
  Wake(sleepers);
}

bool RingWriter::Dismiss(uint32_t id, std::string_view message) {
  uint32_t sleepers = 0;
  bool found = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Consumer& consumer : consumers_.consumers()) {
      if (consumer.id != id || consumer.judged) continue;
      sleepers = Judge(consumer, kVerdictDetached, message);
      found = true;
      break;
    }
  }
  Wake(sleepers);
  doorbell_.Ring();
  return found;
}

void RingWriter::SetSlowPolicy(std::string_view group, SlowPolicy slow, uint32_t lag_ms) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Consumer& consumer : consumers_.consumers()) {
    if (consumer.spec.mode != GroupMode::kBroadcast || consumer.spec.group != group) continue;
    consumer.spec.slow = slow;
    consumer.spec.lag_ms = lag_ms;
    consumer.blocks_since_ns = 0;
  }
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

void RingWriter::RestoreSplit(const std::string& group, const SplitState& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  consumers_.AddSplit(std::make_unique<SplitGroup>(group, state, split_log_));
}

void RingWriter::EndRestore() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (RankGroup& rank : consumers_.ranks()) rank.NoteComplete();
  for (const auto& split : consumers_.splits()) split->EndRestore();
}

void RingWriter::Tick(uint64_t now_ns, uint64_t rejoin_ns) {
  uint32_t sleepers;
  bool dropped;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sleepers = EndLostGroups(now_ns, rejoin_ns) | SendOnTheSlow(now_ns);
    dropped = consumers_.DropDeserted(now_ns, rejoin_ns);
    for (Consumer& consumer : consumers_.consumers()) {
      ++consumer.looks;
      if (IsAsleep(consumer)) ++consumer.waiting_looks;
    }
  }
  Wake(sleepers);
  if (dropped) doorbell_.Ring();
  if (sent_on_) ReplaceQuarantined();
}

bool RingWriter::SomebodyWaits() {
  for (const Consumer& consumer : consumers_.consumers()) {
    if (Waits(consumer)) return true;
  }
  return false;
}

bool RingWriter::Waits(const Consumer& consumer) const {
  return IsAsleep(consumer) &&
         (consumer.splits() ||
          consumer.page->page().position.load(std::memory_order_relaxed) >= slots_.published());
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

uint32_t RingWriter::SendOnTheSlow(uint64_t now_ns) {
  const bool stuck = starved_ && !slots_.Sweep(consumers_.Members()) && SomebodyWaits();
  uint32_t sleepers = 0;
  for (Consumer& consumer : consumers_.consumers()) {
    if (consumer.judged || consumer.spec.mode != GroupMode::kBroadcast) continue;
    const uint64_t first = slots_.FirstNeeded(consumer.member);
    const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
    if (!stuck || first >= slots_.published() || position >= slots_.published()) {
      consumer.blocks_since_ns = 0;
      continue;
    }
    if (consumer.spec.slow == SlowPolicy::kBlock) {
      if (consumer.blocks_since_ns == 0 || consumer.blocked_step != first) {
        consumer.blocks_since_ns = now_ns;
        consumer.blocked_step = first;
        continue;
      }
      const uint64_t lag_ns = uint64_t{consumer.spec.lag_ms} * 1'000'000;
      if (now_ns - consumer.blocks_since_ns < lag_ns) continue;
    }
    consumer.blocks_since_ns = 0;
    sent_on_ = true;
    if (consumer.spec.slow == SlowPolicy::kSkip) {
      sleepers |= Skip(consumer);
    } else if (consumer.spec.slow == SlowPolicy::kDetach) {
      sleepers |= Judge(consumer, kVerdictDetached,
                        "DETACHED: it held up other consumers at step " + std::to_string(first) +
                            " (group \"" + consumer.spec.group + "\", policy detach)");
    } else {
      sleepers |= Judge(consumer, kVerdictReattach, "");
    }
  }
  return sleepers;
}

uint32_t RingWriter::Skip(Consumer& consumer) {
  ControlPage& page = consumer.page->page();
  const uint64_t next = slots_.published();
  // SYNC verdict: before the look at its position, as the consumer looks here after its own store.
  page.skip_to.store(next, std::memory_order_seq_cst);
  const uint64_t position = std::min(page.position.load(std::memory_order_seq_cst), next);
  const uint32_t held_max = header().lease_share.load(std::memory_order_relaxed) + 1;
  consumer.member.kept = consumers_.HeldAtMost(consumer, position, slots_, held_max);
  consumer.member.kept_below = position;
  consumer.member.start = next;
  consumer.skipped += next - position;
  return ChangeWord(consumers_.TakeSleeper(consumer));
}

void RingWriter::ReplaceQuarantined() {
  // A newcomer grows the ring as well.
  std::unique_lock<std::mutex> attach_lock(attach_mutex_, std::try_to_lock);
  if (!attach_lock.owns_lock()) return;
  uint32_t wanted = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sent_on_ = false;
    wanted = consumers_.size() + (Quarantined() + 1) / 2;
  }
  GrowFor(wanted);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ShareLeases();
  }
  doorbell_.Ring();
}

uint32_t RingWriter::EndLostGroups(uint64_t now_ns, uint64_t rejoin_ns) {
  uint32_t sleepers = 0;
  std::vector<std::string> lost;
  for (RankGroup& rank : consumers_.ranks()) {
    const int place = rank.FindLost(now_ns, rejoin_ns);
    if (place < 0) continue;
    const std::string group = rank.name();
    const std::string message =
        "PEER_LOST: rank " + std::to_string(static_cast<uint32_t>(place) / rank.replicas()) +
        " of " + std::to_string(rank.world_size()) + " has died and not come back in " +
        std::to_string(rejoin_ns / 1'000'000'000) + " seconds (group \"" + group + "\")";
    for (Consumer& consumer : consumers_.consumers()) {
      if (consumer.judged || consumer.spec.mode != GroupMode::kRank ||
          consumer.spec.group != group) {
        continue;
      }
      sleepers |= Judge(consumer, kVerdictPeerLost, message);
    }
    // The last judgement has erased the group, and others may have moved.
    return sleepers;
  }
  return sleepers;
}

std::vector<ConsumerStats> RingWriter::Consumers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  consumers_.Members();
  std::vector<ConsumerStats> stats;
  for (const Consumer& consumer : consumers_.consumers()) {
    const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
    ConsumerStats& one = stats.emplace_back();
    one.id = consumer.id;
    one.group = consumer.spec.group;
    one.pid = consumer.pid;
    one.position = position;
    one.name = consumer.spec.name;
    one.mode = consumer.spec.mode;
    one.rank = consumer.spec.rank;
    one.world_size = consumer.spec.world_size;
    one.skipped = consumer.skipped;
    one.detached = consumer.judged;
    one.evicted = consumer.evicted;
    one.slow = consumer.spec.slow;
    one.looks = consumer.looks;
    one.waiting_looks = consumer.waiting_looks;
    one.lag_ms = consumer.spec.lag_ms;
    if (consumer.splits()) {
      if (const SplitGroup* split = consumers_.FindSplit(consumer.spec.group)) {
        one.leases = split->Leases(consumer.id);
      }
    } else {
      one.leases = static_cast<uint32_t>(std::popcount(slots_.Held(consumer.member, position)));
    }
  }
  return stats;
}

}  // namespace

Status Writer::Create(const SegmentOptions& options, std::unique_ptr<Writer>* out) {
  std::unique_ptr<Segment> segment;
  if (Status status = Segment::Create(options, &segment); !status.ok()) return status;
  auto writer = std::make_unique<RingWriter>(std::move(segment), options);
  if (Status status = writer->Start(); !status.ok()) return status;
  *out = std::move(writer);
  return {};
}

}  // namespace penstock::ring
