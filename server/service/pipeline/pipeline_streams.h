// The streams of a pipeline: the one that its consumers share, and a small one for each consumer
// that is catching up. Which there are, how they are made, moved, put to rest and ended.
//
// Threads:  safe from any thread. What says REQUIRES: Lock() is called by whoever has that lock.
// Owns:     the shared stream until it rests or is moved; the small ones belong to the sessions of
//           their consumers.
// Cost:     what makes a stream allocates a ring, which may take a second for a large one, and may
//           read files.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/guest_purses.h"
#include "ring/writer.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_events.h"
#include "server/service/pipeline/pipeline_keeper.h"
#include "server/service/pipeline/pipeline_numbers.h"
#include "server/service/stream/stream.h"

namespace penstock {

// Where a drained pipeline stands.
struct DrainedAt {
  uint64_t step = 0;
  std::string cursor;
};

class PipelineStreams {
 public:
  PipelineStreams(const PipelineBasis& basis, PipelineEvents& events,
                  const PipelineNumbers& numbers, PipelineKeeper& keeper)
      : name_(basis.name),
        basis_(basis),
        options_(basis.options),
        events_(events),
        numbers_(numbers),
        keeper_(keeper) {}

  // No stream is made, moved or put to rest by others while it is held: what is changed meanwhile
  // reaches all that there will be. It may be held for as long as a disk likes.
  [[nodiscard]] std::unique_lock<std::mutex> Lock() {
    return std::unique_lock<std::mutex>(making_mutex_);
  }
  [[nodiscard]] std::unique_lock<std::mutex> TryLock() {
    return std::unique_lock<std::mutex>(making_mutex_, std::try_to_lock);
  }

  // --- which there are ---
  // Where a stream goes on that rests, and whether it had ended by itself.
  struct RestingAt {
    DrainedAt at;
    bool finished = false;
  };
  struct Standing {
    std::shared_ptr<Stream> shared;  // null before StartAgain(), after a failure, at rest
    absl::Status failure;            // why there is no shared stream
    std::optional<RestingAt> resting;
    bool closed = false;
  };
  Standing standing() const;
  std::shared_ptr<Stream> shared() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return shared_;
  }
  struct ReplayStream {
    std::shared_ptr<Stream> stream;
    // What its consumer has asked for: a rank's place in the shared stream waits for it.
    ring::ConsumerSpec spec;
  };
  std::vector<ReplayStream> Replays() const;
  // The shared one first.
  std::vector<std::shared_ptr<Stream>> All() const;
  // Those of them whose steps are the pipeline's: none that is apart.
  std::vector<std::shared_ptr<Stream>> Steered() const;
  // Sends away who reads a stream apart: its steps would be others from now on.
  void EndThoseApart() const;
  // How the shared one ended, or why there is none; nullopt while it goes on, or is still to begin.
  std::optional<absl::Status> outcome() const;
  // Whether StartAgain() found too little memory, or too few threads, and may be called again.
  bool MayBeginLater() const;
  // Whether nobody loses anything when the stream goes elsewhere for a consumer of `group`: no
  // consumer that takes or holds something, no other split group with steps that were held and are
  // not done, and no group of before a restart.
  bool MayMove(const ring::Writer& writer, std::string_view group) const;

  // --- making them. REQUIRES: Lock(), or nobody else has the pipeline yet ---
  // Whom a stream is for. One who is behind finds nothing there that others wait for; apart: as
  // Stream::is_apart(), FailedPrecondition where changes are still to come.
  enum class For { kAll, kOne, kOneApart };
  absl::StatusOr<std::shared_ptr<Stream>> Make(const std::string& cursor, uint32_t slots,
                                               const MemoryOwner& owner, For whom = For::kAll);
  // It is the shared one from the beginning, and starts.
  absl::Status Begin(const std::shared_ptr<Stream>& stream);
  // Makes the shared stream anew, which nobody reads. Where that fails, and there was one, it goes
  // on where it was.
  absl::Status Restart(const std::string& cursor);
  // The one that Restart() has made has groups of before the restart of the daemon, or has not.
  void SetHasRestoredGroups(bool has) { has_restored_groups_ = has; }
  // The one that Restart() has made did not start, for that reason.
  void GiveUp(const absl::Status& status);
  // A stream for one consumer that has asked for `spec`. NotFound after Close().
  absl::Status AddReplay(const std::shared_ptr<Stream>& stream, const ring::ConsumerSpec& spec);
  // Makes the shared stream again where it was, if it rests.
  absl::Status EndRest();

  // --- as those of Pipeline; not under Lock() ---
  bool MayRest(uint64_t now_ns, uint64_t idle_ns);
  void Rest();
  void EndAtHungReads();
  // As Writer::SetGuestWait, from the next Tick() on.
  void SetGuestWait(uint64_t guest_wait_ns) { guest_wait_ns_.store(guest_wait_ns); }
  void Tick(uint64_t now_ns, uint64_t rejoin_ns);
  void Close(const absl::Status& reason);

 private:
  // Which places of rank groups wait for somebody who catches up, and which no longer do.
  static void TellOfPlaces(const std::vector<ReplayStream>& replays, ring::Writer* shared);

  const std::string& name_;
  const PipelineBasis& basis_;
  const PipelineOptions& options_;
  PipelineEvents& events_;
  const PipelineNumbers& numbers_;
  PipelineKeeper& keeper_;

  std::atomic<bool> has_restored_groups_{false};
  std::atomic<uint64_t> guest_wait_ns_{ring::GuestPurses::kDefaultNs};  // of SetGuestWait()
  std::atomic<uint64_t> last_stream_{0};  // the ordinal of the one that was made last
  uint64_t idle_since_ns_ = 0;            // of MayRest(); 0: somebody reads it

  // Of Lock().
  std::mutex making_mutex_;

  // Who has it takes no other lock.
  mutable std::mutex mutex_;
  std::shared_ptr<Stream>
      shared_;            // under mutex_; null before StartAgain(), after a failure, at rest
  absl::Status failure_;  // under mutex_: why there is no shared stream
  std::optional<RestingAt> resting_;  // under mutex_
  bool closed_ = false;               // under mutex_
  // Under mutex_; the sessions own the streams. With ReplayStream::spec.
  std::vector<std::pair<std::weak_ptr<Stream>, ring::ConsumerSpec>> replays_;
};

}  // namespace penstock
