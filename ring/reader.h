// The consumer's side of a ring: takes steps in order, reads them in place, lets go of them in any
// order.
//
// Threads:  Next(), Ready(), Leave() and error() one at a time; everything else from any thread.
// Owns:     the connection, the descriptors and the mappings. Leased memory is valid until
// Release(),
//           and the Reader must outlive its leases.
// Limits:   one lease a slot; a consumer should hold at most lease_share() of them, else the ring
//           may run out of slots for it.
// Cost:     Next() of a ready step: some twenty loads and one store, no system call, no allocation.
//
// A fork()ed child shares the pages with its parent and must not speak for it: in the child every
// Next() fails and every Release() does nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ring/attach.h"
#include "ring/descriptor.h"
#include "ring/layout.h"
#include "ring/status.h"
#include "ring/tensor_parts.h"

namespace penstock::ring {

// A consumer's hold on one step.
struct Lease {
  uint32_t slot = 0;
  uint32_t rows = 0;
  uint32_t valid_rows = 0;  // at most `rows`
  uint64_t step = 0;
  uint64_t epoch = 0;
  const uint8_t* data = nullptr;  // the slot's first byte
  const uint8_t* cursor = nullptr;
  uint32_t cursor_bytes = 0;
  bool redelivered = false;  // it was in other hands before (a split group)
};

// What a consumer has seen so far.
struct ReaderStats {
  uint64_t batches = 0;
  uint64_t waits = 0;    // times that no batch was ready
  uint64_t sleeps = 0;   // times that it slept in the kernel
  uint64_t wait_ns = 0;  // in those waits
  uint64_t skipped = 0;  // steps that it was too slow for
};

// How a consumer waits for a batch. The defaults are right for everybody but tests, which rule out
// the looks by which a lost wake-up would heal.
struct WaitTimes {
  // Before it sleeps. Longer spins take a core from those that produce the batch; and after some
  // spins in vain only every eighth wait begins with one.
  uint64_t spin_ns = 10'000;
  // How long it sleeps for two batches rather than one, as long as nothing is known of their pace:
  // half the wake-ups where batches come fast.
  uint64_t patience_ns = 2'000'000;
  // How often it looks whether the daemon lives.
  uint64_t look_ns = 100'000'000;
  // The patience behind a wait in which each batch took less than half of it. Beyond the
  // scheduler's next tick, so that the processor's timer need not be set and taken back: on a
  // virtual machine 3 us each.
  uint64_t trusting_patience_ns = 8'000'000;
};

// Memory in which the caller has mapped the ring already, and keeps it mapped: tests put both sides
// over one map, where a race detector sees them.
struct Mapped {
  const uint8_t* segment = nullptr;
  ControlPage* page = nullptr;
};

// How many forks lie between the first process and this one; counted from the first Reader on.
uint32_t NumForks();
// What a forked child is told that uses its parent's.
inline constexpr const char* kOfParent =
    "this consumer belongs to the parent process; attach again in the child";

class Reader {
 public:
  enum class Result {
    kBatch,
    kEnd,      // of the stream; also on every later call
    kTimeout,  // nothing was ready in time; the next call goes on waiting
    kFailed,   // see error(); also on every later call
    kAgain,    // attach again with Where(); also on every later call
  };

  // Takes the descriptors over, also on failure.
  static Status Open(const Attachment& attachment, std::unique_ptr<Reader>* out,
                     const WaitTimes& times = {}, const Mapped& mapped = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The next step. Waits for at most `timeout_ns` (UINT64_MAX: for ever), and no longer than a
  // second for a daemon that has died: published steps are served first, then kAgain, and error()
  // says why.
  Result Next(uint64_t timeout_ns, Lease* out);
  // Next() in two steps, for a caller that looks at something else in between: kBatch when a step
  // is there, which lies in slot NextSlot() unless the daemon drops it meanwhile; and kBatch when
  // that was taken, or kTimeout when it was left out, and another one is to be waited for.
  Result WaitForStep(uint64_t timeout_ns);
  // REQUIRES: a step is there. Not below slots_max() where the ring is torn, which TakeStep() says.
  uint32_t NextSlot() const;
  Result TakeStep(Lease* out);
  // The ring gives nothing more, since its daemon has gone or for another reason: Next() says so
  // from now on.
  Result Desert(std::string message) { return Again(std::move(message)); }
  Result Break(const Status& reason) { return Fail(reason.code, reason.message); }
  // Whether Next() would return at once with a batch.
  bool Ready() const;
  void Release(const Lease& lease);
  // Where one tensor of a leased step lies. False, as Next() with kFailed from then on, when the
  // segment's tables are torn. To be called as Next(). A fixed tensor needs no call: it lies at
  // lease.data + tensors()[tensor].offset.
  bool Find(const Lease& lease, uint32_t tensor, TensorParts* out);
  // The same end, for a caller that has found the tensor torn further inside.
  void FailTorn(const Lease& lease, uint32_t tensor, const char* error);

  // Takes no further step: Next() fails from now on. Leases stay valid.
  void Leave();

  // What to attach again with: the position, and the leases of this ring (in a split group).
  ConsumerPosition Where() const;
  // Says that a lease of an earlier ring, the `index`-th that Where() named there, was let go of.
  void ReturnEarlier(uint32_t index);

  // Whether the daemon has gone away without ending the stream. To be called as Next().
  bool IsDeserted() const;
  // The connection, whose hang-up says so.
  int socket() const { return socket_.get(); }

  // The whole ring, for whoever maps it once more; a lease's slot is `slot_stride` bytes of it.
  int segment_fd() const { return segment_fd_.get(); }
  const uint8_t* segment() const { return segment_; }
  uint64_t segment_bytes() const { return segment_bytes_; }
  uint64_t slot_stride() const { return slot_stride_; }

  const Status& error() const { return error_; }
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  std::string_view pipeline() const;
  // The text that layout.h describes; empty for a flat dict.
  const std::string& structure() const { return structure_; }
  // The steps of the whole stream, wherever this consumer begins; where they are not known,
  // `uncounted` says why.
  std::optional<uint64_t> num_steps() const { return num_steps_; }
  const std::string& uncounted() const { return uncounted_; }
  // Which of them are full: see SegmentHeader. 0 where the daemon does not tell.
  uint64_t pass_steps() const { return pass_steps_; }
  uint32_t pass_last_rows() const { return pass_last_rows_; }
  uint32_t slots_max() const { return slots_max_; }
  // The next step; of a split group, the number of steps that it took.
  uint64_t position() const { return position_.load(std::memory_order_relaxed); }
  // The step behind the last one taken.
  uint64_t next_step() const { return next_step_.load(std::memory_order_relaxed); }
  bool takes_grants() const { return takes_grants_; }
  uint64_t published() const;
  uint32_t leases() const { return leases_.load(std::memory_order_acquire); }
  uint32_t lease_share() const;
  uint32_t consumer() const { return consumer_; }
  ReaderStats stats() const;

 private:
  Reader() = default;

  Status Map(const Mapped& mapped);
  Status CheckSegment(uint64_t file_bytes) const;
  Status CheckTensors() const;
  Result Take(Lease* out);
  // Takes the step that was granted.
  Result TakeGrant(Lease* out);
  void FillIn(uint32_t slot, uint64_t step, Lease* out) const;
  void RememberCursor(const Lease& lease);
  // A wish for one more step, unless there is one already.
  void Ask();
  // Whether the next step is there.
  bool IsThere() const {
    // SYNC slot-publish, step-grant: everything that the daemon wrote to the slot is seen.
    return takes_grants_ ? page_->granted.load(std::memory_order_acquire) > position()
                         : header().published.load(std::memory_order_acquire) > position();
  }
  // Whether no further step follows those that are there.
  bool IsOver() const {
    return (takes_grants_ ? page_->grants_ended.load(std::memory_order_seq_cst)
                          : header().ended.load(std::memory_order_seq_cst)) != 0 ||
           page_->verdict.load(std::memory_order_seq_cst) != 0;
  }
  Result ObeyVerdict();
  Result Again(std::string message);
  // Waits for the next step: kBatch when it is there.
  Result Wait(uint64_t timeout_ns);
  // `soon`: no later than its patience, so that its wake-up may be left to somebody
  // (ring/left_wakes.h).
  void Sleep(uint64_t wake_at, uint64_t deadline_ns, bool soon);
  bool HungUp() const;
  Result EndOfStream();
  Result Fail(Code code, std::string message);
  void RingBell();

  const SegmentHeader& header() const { return *reinterpret_cast<const SegmentHeader*>(segment_); }

  // Constant after Open().
  Descriptor socket_;
  Descriptor segment_fd_;
  Descriptor control_fd_;
  Descriptor bell_fd_;
  bool owns_mappings_ = false;
  const uint8_t* segment_ = nullptr;
  uint64_t segment_bytes_ = 0;
  ControlPage* page_ = nullptr;
  const SlotEntry* slot_table_ = nullptr;
  const RingEntry* ring_table_ = nullptr;
  const TensorExtent* extent_table_ = nullptr;
  const uint8_t* slot_data_ = nullptr;
  uint64_t slot_stride_ = 0;
  uint32_t slots_max_ = 0;
  uint64_t ring_mask_ = 0;
  std::string structure_;
  std::optional<uint64_t> num_steps_;
  std::string uncounted_;
  uint64_t pass_steps_ = 0;
  uint32_t pass_last_rows_ = 0;
  std::vector<TensorEntry> tensors_;
  uint32_t consumer_ = 0;
  uint32_t index_ = 0;
  uint32_t fork_count_ = 0;
  bool takes_grants_ = false;
  WaitTimes times_;

  // Own synchronisation.
  std::atomic<uint32_t> leases_{0};

  // Written by the thread in Next() only, read by any.
  std::atomic<uint64_t> position_{0};
  std::atomic<uint64_t> next_step_{0};
  std::atomic<uint64_t> batches_{0};
  uint32_t vain_spins_ = 0;  // in a row, or waits without one; of the thread that waits
  // How fast the batches came that were waited for last; likewise. Late ones are slept for one by
  // one: who has been patient in vain has slept twice.
  enum class Pace { kUnknown, kSoon, kLate };
  Pace pace_ = Pace::kUnknown;
  std::atomic<uint64_t> waits_{0};
  std::atomic<uint64_t> sleeps_{0};
  std::atomic<uint64_t> wait_ns_{0};
  std::atomic<uint64_t> skipped_{0};

  // The thread in Next().
  bool over_ = false;
  bool ended_ = false;
  bool again_ = false;
  Status error_;
  uint8_t cursor_[kMaxCursorBytes];
  uint32_t cursor_bytes_ = 0;

  // The leases of a split group, so that a new daemon can be told of them.
  mutable std::mutex leases_mutex_;
  std::vector<uint64_t> held_;      // under leases_mutex_
  std::vector<uint64_t> returned_;  // under leases_mutex_; the last kMaxReportedLeases
};

}  // namespace penstock::ring
