// The writer of writer.h: one class, whose methods stand in four files. writer.cc has the
// producer's side and the slots, writer_sessions.cc who attaches and leaves, writer_watch.cc what
// is looked after while everybody runs, writer_waiting.cc who waits for whom, and until when.
//
// Threads:  as writer.h says. mutex_ guards what is behind it; system calls are made without it.
// Owns:     the segment, the doorbell and the consumers' pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/consumer_table.h"
#include "ring/doorbell.h"
#include "ring/futex.h"
#include "ring/guest_purses.h"
#include "ring/layout.h"
#include "ring/left_wakes.h"
#include "ring/numa_memory.h"
#include "ring/recent_cursors.h"
#include "ring/segment.h"
#include "ring/slot_table.h"
#include "ring/slot_trial.h"
#include "ring/writer.h"

namespace penstock::ring {

class RingWriter final : public Writer {
 public:
  RingWriter(std::unique_ptr<Segment> segment, const SegmentOptions& options);

  Status Start() { return doorbell_.Create(); }

  int TryClaim() override;
  uint8_t* tensor(int slot, int tensor) override {
    if (!IsFixed(segment_->plan().tensors[static_cast<size_t>(tensor)])) return nullptr;
    return segment_->tensor(static_cast<uint32_t>(slot), static_cast<uint32_t>(tensor));
  }
  uint8_t* variable(int slot) override { return segment_->variable(static_cast<uint32_t>(slot)); }
  uint64_t variable_bytes() const override { return segment_->plan().variable_bytes; }
  void MakeRoom(int slot, uint64_t bytes) override {
    segment_->MakeRoom(static_cast<uint32_t>(slot), bytes);
  }
  void Publish(int slot, const PublishInfo& info) override;
  void Finish(Code code, std::string_view message) override;
  void WaitForRelease(uint64_t timeout_ns) override;
  void Interrupt() override { doorbell_.Ring(); }
  void PassBy() override { Wake(left_wakes_.PassBy(ProcessorHere(), MonotonicNs())); }
  void Rest() override { Wake(left_wakes_.Rest(ProcessorHere())); }

  Status Attach(const ConsumerSpec& spec, const ConsumerPosition& position, int32_t pid,
                ConsumerHandle* out) override;
  void Detach(uint32_t id) override;
  void Deal() override;
  void Tick(uint64_t now_ns, uint64_t rejoin_ns) override;
  void KeepPlace(std::string_view group, uint32_t place) override;
  void LeavePlace(std::string_view group, uint32_t place) override;
  void SendAway() override;
  bool Dismiss(uint32_t id, std::string_view message) override;
  void SetSlowPolicy(std::string_view group, SlowPolicy slow, uint32_t lag_ms) override;
  void SetGuestWait(uint64_t guest_wait_ns) override;
  bool DropGroup(std::string_view group, std::string_view message) override;
  std::vector<GroupStats> Groups() const override;
  std::vector<HoldUpStats> HoldUps() const override;
  Status SetSlots(uint32_t slots) override;
  void TryFewerSlots(bool may) override;
  void RestoreSplit(const std::string& group, const SplitState& state) override;
  void EndRestore(const std::optional<std::set<std::string>>& complete) override;
  std::set<std::string> CompleteGroups() const override;
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
    const auto is_kept = [this](const auto& split) {
      return !split->waited_for().is_guest || consumers_.HasTaker(*split);
    };
    return consumers_.size() == 0 && consumers_.ranks().empty() &&
           std::none_of(consumers_.splits().begin(), consumers_.splits().end(), is_kept);
  }
  bool HasUnfinishedSplit(std::string_view besides) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(
        consumers_.splits().begin(), consumers_.splits().end(), [&](const auto& split) {
          const bool is_left_by_guests =
              split->waited_for().is_guest && !consumers_.HasTaker(*split);
          return split->name() != besides && split->HasUnfinished() && !is_left_by_guests;
        });
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
  uint64_t memory_bytes() const override { return segment_->taken_bytes(); }
  uint32_t slots() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return slots_.limit();
  }
  uint32_t used_slots() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return trial_.is_on() ? trial_.chosen() : slots_.limit();
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
  // Puts so many slots into use, as memory allows.
  void GrowTo(uint32_t slots);
  // As many slots as it takes for each consumer to hold `share`, beside what it holds already
  // beyond that, and for one to be made meanwhile. REQUIRES: mutex_.
  uint32_t SlotsFor(uint32_t share) const;
  // Slots that nobody can use again for a while have others in their place, as memory allows.
  void ReplaceQuarantined();
  uint32_t Quarantined() const;
  void ShareLeases();
  // Begins to try fewer slots, where that may be done: for one consumer that reads everything.
  void BeginTrial();
  // A step was published. REQUIRES: mutex_.
  void GoOnTrying();
  // Where the newcomer starts.
  Status ChooseStart(const ConsumerSpec& spec, const ConsumerPosition& position,
                     const Consumer* rival, uint64_t* start);
  void FillInPage(const ConsumerSpec& spec, const ConsumerPosition& position, uint64_t start,
                  ControlPage* page) const;
  // Who may only attach enters no group of ranks or of a split that is another user's. REQUIRES:
  // mutex_.
  Status CheckUser(const ConsumerSpec& spec) const;
  // The newcomer is more than a guest: guests have no group of its name, if that or theirs is
  // shared by ranks or split. Returns the bits to wake. REQUIRES: mutex_.
  uint32_t SendAwayGuests(const ConsumerSpec& spec);
  // Guests make no more of them than are kept. REQUIRES: mutex_.
  void DropOldestOfGuests();
  // The steps of a split group that wait for one who asks.
  uint32_t Grant() {
    const bool ended = header().ended.load(std::memory_order_relaxed) != 0;
    return consumers_.Grant(ended ? std::optional(static_cast<Code>(header().end_code))
                                  : std::nullopt);
  }
  uint32_t EndLostGroups(uint64_t now_ns, uint64_t rejoin_ns);

  // --- who waits for whom (writer_waiting.cc) ---
  // A consumer of a broadcast, or a group of ranks or of a split as a whole: those for whom others
  // may have to wait.
  struct Party {
    Consumer* consumer = nullptr;
    RankGroup* rank = nullptr;
    SplitGroup* split = nullptr;

    bool Has(const Consumer& one) const;
    HoldUp& hold_up() const;
    uint32_t uid() const;
    bool is_guest() const;
  };
  // Pointers that hold until somebody is judged, comes or goes.
  std::vector<Party> Parties() const;
  // Steps are ready that it does not take, or it keeps more than an honest one can. `mark` becomes
  // where it stands.
  bool Holds(const Party& party, uint64_t* mark) const;
  bool IsBehind(const Consumer& consumer, uint64_t* first) const;
  // For how long others wait for it; none: as long as it takes.
  std::optional<uint64_t> MostNs(const Party& party) const;
  // Parties that hold up somebody who waits, and are sent on after their time. Returns the bits to
  // wake.
  uint32_t LookWhoHoldsUp(uint64_t now_ns);
  uint32_t SendOn(const Party& party);
  uint32_t SendOnConsumer(Consumer& consumer);
  uint32_t SendOnRanks(RankGroup& rank);
  // Its consumers get kVerdictDetached, and the group is forgotten.
  uint32_t EndGroup(std::string_view group, GroupMode mode, std::string_view message);
  // There is nothing that it could take, whether it has asked for more already or not.
  bool HasTakenAll(const Consumer& consumer) const;
  // Those for whom nobody waits at all: who skips, guests who are waited for no longer, split
  // groups that all have left or that have not begun. As soon as others have taken all that is
  // ready, they stand in nobody's way. Returns whether a slot may be free now.
  enum class Passing : uint8_t { kNobody, kNotYet, kNow };
  // Whether somebody else is there, or somebody of another user, and has taken all.
  Passing PassingOf(const Party& party, bool for_other_users) const;
  Passing LookForPassing(std::vector<Party>* passing) const;
  bool PassOver(uint32_t* sleepers);
  // Until a batch comes, or the second where one alone is not worth a wake-up.
  static bool IsAsleep(const Consumer& consumer) {
    return !consumer.judged &&
           consumer.page->page().wake_at.load(std::memory_order_relaxed) != kAwake;
  }
  // There is nothing that it could take, and it sleeps, or did a moment ago at the same position.
  // REQUIRES: mutex_.
  bool Waits(Consumer& consumer, uint64_t now_ns) const;
  // What the consumer has not taken is left out for it.
  uint32_t Skip(Consumer& consumer);
  uint32_t Judge(Consumer& consumer, int32_t verdict, std::string_view message);
  SplitGroup& StartSplit(const ConsumerSpec& spec, uint64_t start);
  // Wakes those whose bits are set; called without mutex_, since it is a system call.
  void Wake(uint32_t bits) {
    if (bits != 0) FutexWake(header().wake_word, bits);
  }
  // Those of the sleepers that are to be woken at once; the others are left to who passes by where
  // they sleep.
  uint32_t LeaveSome(uint32_t sleepers);
  // The bits for Wake(). The word changes before the wake-up: a consumer that has announced its
  // sleep but does not sleep yet finds another word than the one it read.
  uint32_t TakeSleepers(Sleepers which) {
    return ChangeWord(consumers_.TakeSleepers(slots_.published(), which));
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
  LeftWakes left_wakes_;

  // Serialises newcomers: taking pages for their slots is slow, and the producer goes on meanwhile.
  std::mutex attach_mutex_;

  mutable std::mutex mutex_;
  mutable SlotTable slots_;
  RecentCursors cursors_;
  mutable ConsumerTable consumers_;
  uint32_t last_id_ = 0;
  uint32_t wanted_slots_ = kMaxSlots;  // SetSlots()
  bool tries_fewer_ = false;           // TryFewerSlots()
  SlotTrial trial_;
  // Somebody was too slow, and may have taken slots along; keeps more than its share, and somebody
  // waits; or holds steps of an earlier ring.
  bool lacks_slots_ = false;
  bool holds_more_ = false;  // somebody kept more than its share when that was set
  GuestPurses purses_;
  uint64_t now_ns_ = 0;     // of the last Tick()
  uint64_t rejoin_ns_ = 0;  // likewise
  // Rank groups that were sent on as a whole, kMaxConsumers at most.
  std::set<std::string> were_complete_;
  bool asleep_ = false;   // a thread sleeps until one of waits_for releases a slot
  bool starved_ = false;  // the last claim failed: who has a batch must not wait for a second one
};

}  // namespace penstock::ring
