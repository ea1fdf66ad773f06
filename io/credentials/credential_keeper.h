// Credentials that are fetched when they are first needed and again five minutes ahead of their end, one time after the other, on a thread
// of its own: a source may start a program or ask another machine.
//
// Threads:  safe from any thread.
// Owns:     its thread, once there is something to do.
// Limits:   a source that fails is asked again after five seconds at the soonest. The destructor waits about a second for one at most, which looks
//           at its thread's StopFlag.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "io/credentials/credentials.h"

namespace penstock {

class CredentialKeeper {
 public:
  using Found = absl::StatusOr<std::shared_ptr<const Credentials>>;
  // Unix time in seconds.
  using Clock = std::function<int64_t()>;

  explicit CredentialKeeper(CredentialSource source, Clock clock = {});
  ~CredentialKeeper();
  CredentialKeeper(const CredentialKeeper&) = delete;
  CredentialKeeper& operator=(const CredentialKeeper&) = delete;

  // What there is; absent while it is being fetched: then `ready` is called once, from another thread, and who asked asks again.
  std::optional<Found> Ask(std::function<void()> ready);
  // The same, waiting; Cancelled where the thread's StopFlag says so.
  Found Wait();
  // A server did not take them: they are fetched anew, unless others have come since.
  void Refused(const std::shared_ptr<const Credentials>& credentials);

 private:
  static constexpr int64_t kAheadS = 300;
  static constexpr int64_t kAgainS = 5;

  bool IsFresh(int64_t now_s) const;
  bool IsUsable(int64_t now_s) const;
  void Begin();
  void Run();

  const CredentialSource source_;
  const Clock clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const Credentials> current_;  // under mutex_, as all below
  absl::Status error_;
  int64_t failed_s_ = 0;
  bool is_wanted_ = false;
  bool is_over_ = false;
  std::vector<std::function<void()>> waiting_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace penstock
