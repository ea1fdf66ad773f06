// The daemon's side of a ring: creates the segment, claims and publishes slots, keeps the table of
// consumers.
//
// Threads:  the producer calls (TryClaim, Publish, Finish) one at a time, in step order; everything
//           else from any thread.
// Owns:     the segment's memory and each consumer's control page. Memory that a client has mapped
//           lives on in the client.
// Limits:   slots <= 64, consumers <= 64, tensors <= 4096, a name <= 128 bytes, a structure <= 64
//           KiB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/consumer_spec.h"
#include "ring/layout.h"
#include "ring/split_log.h"
#include "ring/status.h"

namespace penstock::ring {

// One tensor of every slot. `dtype` is a code of layout.h. `shape` is that of a full batch, with -1
// for an axis that only the data tells.
struct TensorSpec {
  std::string name;
  uint8_t dtype = 0;
  bool batched = true;  // the first axis counts rows, and a shorter batch fills the first ones
  std::vector<int64_t> shape;
  TensorKind kind = TensorKind::kDense;
  uint32_t ragged_rank = 0;    // ragged: axes 1 … ragged_rank
  bool narrow_splits = false;  // ragged: kTensorNarrowSplits
  // One element, with which rows are filled up to the largest of their batch ("" is zero, or the
  // empty string); nothing where they are not. Readers are told where it has kMaxPaddingBytes at
  // most.
  std::optional<std::string> padding = std::nullopt;
};

struct SegmentOptions {
  std::string pipeline;
  uint64_t first_step = 0;   // where the stream begins
  std::string first_cursor;  // of that position, if it is known
  std::vector<TensorSpec> tensors;
  uint32_t slots = 3;  // populated at creation
  // Address space; more are populated as consumers attach: 2 each, 1, and what somebody keeps
  // beyond that.
  uint32_t slots_max = 9;
  // A slot's memory for all tensors that are not fixed, with 64 spare bytes behind each part.
  uint64_t variable_bytes = 0;
  // Its pages are taken when a batch first needs them (Writer::MakeRoom), not at creation: for a
  // size that nobody asked for. They are looked for and reserved at creation all the same.
  bool variable_grows = false;
  std::string structure;  // as layout.h says; empty: a flat dict
  // The steps of the whole stream; where they are not known, why: at most kMaxUncountedBytes are
  // kept.
  std::optional<uint64_t> num_steps = std::nullopt;
  std::string uncounted = "";
  // Where the steps are known, which of them are full: see SegmentHeader. 0: not known.
  uint64_t pass_steps = 0;
  uint32_t pass_last_rows = 0;
  // Asked before slots of so many bytes are taken from the system; may be null.
  std::function<Status(uint64_t bytes)> reserve = nullptr;
  // The NUMA node whose memory it is to have, as far as that has any; below 0: the kernel decides.
  int numa_node = -1;
  // The memory of its split groups; may be null, else it must outlive the writer.
  SplitLog* split_log = nullptr;
};

struct PublishInfo {
  uint64_t step = 0;
  uint64_t epoch = 0;
  uint32_t rows = 0;
  std::string_view cursor;  // at most 1,024 bytes
  // One for each tensor that is not fixed, in their order; offsets are counted from variable().
  std::span<const TensorExtent> extents = {};
  // How many of the rows, from the first on, are elements, if not all of them.
  std::optional<uint32_t> valid_rows = std::nullopt;
};

// What a client receives when it attaches.
struct ConsumerHandle {
  uint32_t id = 0;
  uint64_t start_step = 0;
  // Owned by the writer: the sealed segment, which nobody else can write.
  int segment_fd = -1;
  // Owned by the writer until Detach(): this consumer's own page, and the eventfd by which it wakes
  // a writer that waits for its release.
  int control_fd = -1;
  int bell_fd = -1;
  // Its giver's; -1: none was asked for.
  int device_fd = -1;
  int device_memory_fd = -1;
  // It takes grants: Deal() is to be called when its bell rings.
  bool takes_grants = false;
};

struct ConsumerStats {
  uint32_t id = 0;
  std::string group;
  int32_t pid = 0;
  // The next step it will take; in a split group, its start and how many it has taken.
  uint64_t position = 0;
  uint32_t uid = UINT32_MAX;
  // Published steps that it will still take; in a split group, that nobody has.
  uint64_t lag = 0;
  uint32_t leases = 0;  // steps it holds
  std::string name;
  GroupMode mode = GroupMode::kBroadcast;
  uint32_t rank = 0;
  uint32_t world_size = 1;
  uint64_t skipped = 0;   // steps that it missed
  bool detached = false;  // and its leases, if there are any, are in quarantine
  bool left = false;      // of its own accord: it takes no further step, and may hold some
  bool evicted = false;   // detached for good, and not to attach again elsewhere
  bool waits = false;     // asleep now: it waits for a batch
  SlowPolicy slow = SlowPolicy::kBlock;
  uint32_t lag_ms = 0;
  // How often Tick() has looked at it, and found it asleep: it waits for batches.
  uint64_t looks = 0;
  uint64_t waiting_looks = 0;
};

// A group of ranks or of a split.
struct GroupStats {
  std::string name;
  GroupMode mode = GroupMode::kSplit;
  uint32_t uid = UINT32_MAX;  // whose it is; UINT32_MAX: not known
  uint32_t consumers = 0;     // who take steps
  uint32_t world_size = 0;    // of ranks
  uint32_t missing = 0;       // ranks, or their replicas, that are not there and are waited for
  uint64_t position = 0;      // of a split: the first step that it has not done
  uint64_t available = 0;     // of a split: steps that wait for somebody who asks
  // Nobody takes its steps: it is kept for who comes.
  bool is_kept = false;
  // For how long others wait for those who are not there; 0: as long as nobody needs its slots.
  uint64_t kept_ns = 0;
  bool is_told = false;
  SlowPolicy slow = SlowPolicy::kBlock;
  uint32_t lag_ms = 0;
};

// Somebody for whom others wait now.
struct HoldUpStats {
  std::string group;
  GroupMode mode = GroupMode::kBroadcast;
  uint32_t uid = UINT32_MAX;
  // The one of them that is furthest behind, or asks for nothing; 0: none is there.
  uint32_t consumer = 0;
  int32_t pid = 0;
  uint32_t missing = 0;  // ranks that are not there
  uint32_t first_missing = 0;
  uint32_t world_size = 0;
  uint64_t held_ns = 0;  // for how long
  // How long they wait for it in all; none: as long as it takes.
  std::optional<uint64_t> most_ns;
};

// A step that lies in a slot and stays there while it is held.
struct HeldStep {
  int slot = 0;
  uint64_t step = 0;
  uint32_t rows = 0;
};

class Writer {
 public:
  // Compares the size with the memory at hand (the machine's and the cgroup's, v1 and v2) before it
  // allocates: kResourceExhausted with the figures, never a SIGBUS or an OOM kill.
  static Status Create(const SegmentOptions& options, std::unique_ptr<Writer>* out);
  virtual ~Writer() = default;

  // --- producer ---
  // A slot that no consumer holds or still has to read, or -1.
  virtual int TryClaim() = 0;
  // Null for a tensor that is not fixed.
  virtual uint8_t* tensor(int slot, int tensor) = 0;
  // The slot's memory for the parts of all tensors that are not fixed.
  virtual uint8_t* variable(int slot) = 0;
  virtual uint64_t variable_bytes() const = 0;
  // To be called before the first `bytes` of a claimed slot's variable memory are written: where it
  // grows, their pages are taken. From any thread, one at a time for each slot.
  virtual void MakeRoom(int slot, uint64_t bytes) = 0;
  // REQUIRES: every extent lies inside of the slot's variable memory.
  virtual void Publish(int slot, const PublishInfo& info) = 0;
  // The end of the stream (kOk) or its failure; every `next` behind the last step returns it.
  virtual void Finish(Code code, std::string_view message) = 0;
  // Sleeps until a slot may have become free, Interrupt(), or the time is over.
  virtual void WaitForRelease(uint64_t timeout_ns) = 0;
  virtual void Interrupt() = 0;
  // The calling thread has ended a piece of work and begins another one: it wakes the consumers
  // that were left to it (ring/left_wakes.h).
  virtual void PassBy() = 0;
  // It is about to sleep elsewhere than in WaitForRelease(): nothing is left to it any more, and it
  // wakes all that were.
  virtual void Rest() = 0;

  // --- sessions ---
  // A newcomer without a position starts at the oldest step that the ring still holds for it; with
  // one, there: kOutOfRange when that step has gone. kFailedPrecondition when the group is of
  // another kind, kAlreadyExists when its name or rank is taken, kAborted when its group has lost a
  // rank.
  virtual Status Attach(const ConsumerSpec& spec, const ConsumerPosition& position, int32_t pid,
                        ConsumerHandle* out) = 0;
  Status Attach(std::string_view group, int32_t pid, ConsumerHandle* out) {
    ConsumerSpec spec;
    spec.group = group;
    return Attach(spec, {}, pid, out);
  }
  // The consumer left or died: its leases come back.
  virtual void Detach(uint32_t id) = 0;
  // Gives steps to the consumers of split groups that have asked for them.
  virtual void Deal() = 0;
  // Looks who holds others up, and which rank has been missing for `rejoin_ns`. To be called a few
  // times a second.
  virtual void Tick(uint64_t now_ns, uint64_t rejoin_ns) = 0;
  // The empty place of a rank group is not missed until the next Tick(): whoever it waits for is
  // catching up elsewhere.
  virtual void KeepPlace(std::string_view group, uint32_t place) = 0;
  // Whoever the empty place of a rank group waited for, and was catching up elsewhere, has left:
  // nobody follows.
  virtual void LeavePlace(std::string_view group, uint32_t place) = 0;
  // All consumers have to attach again, with their positions.
  virtual void SendAway() = 0;
  // A consumer gets kVerdictDetached with `message`; false when there is none of that id.
  virtual bool Dismiss(uint32_t id, std::string_view message) = 0;
  // Of a group that is there. One of ranks or of a split is waited for as long as it takes without
  // a policy, unless ranks have never come; with kBlock its complete ranks go on by themselves
  // behind `lag_ms`, all others are detached.
  virtual void SetSlowPolicy(std::string_view group, SlowPolicy slow, uint32_t lag_ms) = 0;
  // For how long in all the consumers of one user who may only attach may hold up those of others
  // (ring/guest_purses.h).
  virtual void SetGuestWait(uint64_t guest_wait_ns) = 0;
  // Forgets a group: its consumers get kVerdictDetached with `message`. False where there is none.
  virtual bool DropGroup(std::string_view group, std::string_view message) = 0;
  // How many slots are in use at most, but never fewer than one for each consumer and one more.
  // More than there are: kResourceExhausted when the memory is not there. The memory of those that
  // are no longer used is kept: what seals it against clients keeps the daemon from punching it,
  // too (docs/decisions/0075).
  virtual Status SetSlots(uint32_t slots) = 0;
  // Whether it may use fewer of them where a lone consumer gets its batches faster so
  // (ring/slot_trial.h). It does not until it is told.
  virtual void TryFewerSlots(bool may) = 0;

  // A split group that an earlier daemon had. Before anything is published.
  virtual void RestoreSplit(const std::string& group, const SplitState& state) = 0;
  // Those who have not come back since are gone. `complete`: CompleteGroups() of that daemon;
  // absent: every group that is back.
  virtual void EndRestore(const std::optional<std::set<std::string>>& complete) = 0;
  // The rank groups that have had all their ranks: one that does not come back ends its group.
  virtual std::set<std::string> CompleteGroups() const = 0;

  // The newest step whose slot has not been claimed again, for somebody who looks at it; until
  // LetGo() that slot is not claimed. None while another one is held, or when nothing has been
  // published.
  virtual std::optional<HeldStep> HoldNewest() = 0;
  virtual void LetGo() = 0;

  // The cursor of a step that the ring holds, or of the next one; "" where it is not known.
  virtual std::string Cursor(uint64_t step) const = 0;
  // The first step at which a newcomer could start.
  virtual uint64_t floor() const = 0;
  // No consumer is attached, and no group waits for one, but for split groups that guests have
  // left: those are kept as long as it costs nothing.
  virtual bool IsDeserted() const = 0;
  // A split group but that one has steps that somebody has held, and that are not done. Those that
  // guests have left do not count.
  virtual bool HasUnfinishedSplit(std::string_view besides) const = 0;
  // False when the kernel gave none although the slots are large enough.
  virtual bool has_huge_pages() const = 0;
  // Why the memory could not be asked for from SegmentOptions::numa_node (PreferNumaNode()); 0: it
  // was, or there is no such node.
  virtual int numa_error() const = 0;
  // What of memory_bytes() lies on that node; nullopt without a node, or where the system does not
  // tell. Cost: as BytesOnNumaNode().
  virtual std::optional<uint64_t> bytes_on_numa_node() const = 0;
  virtual std::vector<ConsumerStats> Consumers() const = 0;
  // Those of ranks and of splits, in no order.
  virtual std::vector<GroupStats> Groups() const = 0;
  // Who held up others at the last Tick(), longest first.
  virtual std::vector<HoldUpStats> HoldUps() const = 0;
  virtual uint64_t published() const = 0;
  virtual uint64_t segment_bytes() const = 0;
  // That slots have taken from the system, those that are no longer used as well.
  virtual uint64_t memory_bytes() const = 0;
  // In use at most.
  virtual uint32_t slots() const = 0;
  // Of those, how many it has found to be enough (TryFewerSlots()).
  virtual uint32_t used_slots() const = 0;
};

}  // namespace penstock::ring
