// One helper of one stream, on the side of the asker: a connection, the steps that the helper has,
// and what is done when it is late, gone, or wrong.
//
//     connecting ──► ready ──► left out, for a while ──► connecting …
//                      ▲ steps come and are read straight into their slots
//
// Threads:  Take(), Reserve(), Stats(), Stop() from any thread; its own reads and writes.
// Owns:     its thread and the connection. What it writes to is the caller's until the completion
//           has ended, which it always does.
// Limits:   as many steps at a time as it is told. A helper that gives no sign of life for
//           kSilenceMs is left out, and a step that takes longer than LatePatience() says is given
//           back. Whose steps come too late gets none for a while, then one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/completion.h"
#include "ring/descriptor.h"
#include "server/engine/run/step_lender.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/helpers/known_helpers.h"
#include "server/helpers/wire.h"

namespace penstock {

class HelperLink final : public StepLender::Place, public std::enable_shared_from_this<HelperLink> {
 public:
  static constexpr int64_t kSilenceMs = 400;

  // What all links of a stream have in common.
  struct Common {
    std::vector<BatchTensor> tensors;
    int steps_at_a_time = 2;
    std::shared_ptr<const TlsContext> tls;  // null: plaintext
    // What a helper is told first, as a HelperHello, and the step that it begins with.
    std::function<std::string(uint64_t* first_step)> hello;
    // No step below it will be lent any more.
    std::function<uint64_t()> passed;
    std::function<void(const std::string&)> notice;  // may be null
    std::atomic<int> room{0};                        // of all links together
    std::atomic<uint64_t> own_ns{0};  // what a step takes the asker's workers; 0: that is not known
  };

  static absl::StatusOr<std::shared_ptr<HelperLink>> Start(std::shared_ptr<Common> common,
                                                           HelperAddress address);
  // REQUIRES: Stop() and Join().
  ~HelperLink() override;

  // A place for one step; false where it has none.
  bool Reserve();
  void GiveUp();
  // REQUIRES: Reserve() has given a place.
  void Take(StepInfo* info, const ClaimedSlot& slot, Completion done);
  // As StepLender has it; false where it does not have that step.
  bool TakeBack(uint64_t step);

  const HelperAddress& address() const { return address_; }
  HelperStats Stats() const;

  // All steps that it has are given back soon.
  void Stop();
  void Join();
  // Join() would return at once.
  bool IsOver() const { return is_ended_.load(); }

 private:
  struct Job {
    StepInfo* info = nullptr;
    const ClaimedSlot* slot = nullptr;
    uint64_t step = 0;
    Completion done;
    int64_t sent_ns = 0;      // 0: not yet
    bool given_back = false;  // its answer, if it comes, is dropped
  };

  HelperLink(std::shared_ptr<Common> common, HelperAddress address);
  void Run();
  // Until it ends; says why.
  absl::Status Session();
  absl::StatusOr<ring::Descriptor> Connect() const;
  absl::Status Greet(Wire& wire);
  absl::Status Ask(Wire& wire);
  absl::Status Hear(Wire& wire);
  // `job`: null where its step was given back, and made by others.
  absl::Status TakeStep(Wire& wire, const Frame& frame, Job* job);
  absl::Status FindLate();
  int64_t LatePatienceNs() const;
  // The first job is over: its completion is ended where nobody has yet.
  void EndFirst(absl::Status status);
  void GiveAllBack(const absl::Status& why);
  void LeaveOut(const absl::Status& why);
  // As its state, jobs and reservations have it. REQUIRES: mutex_
  void TellRoom();
  // A step of it came too late. REQUIRES: mutex_
  void Rest();
  void Ring();

  const std::shared_ptr<Common> common_;
  const HelperAddress address_;
  const ring::Descriptor bell_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> is_ended_{false};

  mutable std::mutex mutex_;
  std::deque<Job> jobs_;  // under mutex_, as those below; the thread alone takes the first away
  size_t sent_ = 0;       // of jobs_, from the first one on
  int reserved_ = 0;
  int room_told_ = 0;
  int window_ = 0;           // steps at a time, lately
  bool is_reading_ = false;  // the first job's bytes, into its slot
  bool is_resting_ = false;  // until then:
  int64_t rest_until_ns_ = 0;
  int64_t rest_ns_ = 0;  // how long the last one was, less what has gone well since
  bool is_ready_ = false;
  bool is_over_ = false;
  uint64_t first_step_ = 0;  // of this session
  HelperStats stats_;

  // The thread's.
  int64_t answer_ns_ = 0;    // of the last ones, the mean
  int unmade_ = 0;           // in a row
  bool has_helped_ = false;  // in this session
  uint64_t passed_told_ = 0;
  uint64_t passed_seen_ = 0;
  int64_t passed_ns_ = 0;
  std::string meta_;
  std::thread thread_;
};

}  // namespace penstock
