// Tells a daemon that takes long over a call from one that stands still: while the call runs, the
// standard service for health is asked on the same connection, which gRPC's own threads answer.
//
// Threads:  the owner's, and one of its own that asks.
// Owns:     that thread. The call's context must outlive it. gRPC's headers are left to the file
//           behind this one.
// Limits:   the call is cancelled when three questions in a row have not been answered, which takes
//           as long as was said. One that this process slept through is one of three.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace penstock::ctl {

class SignsOfLife {
 public:
  SignsOfLife(std::shared_ptr<grpc::Channel> channel, grpc::ClientContext* call,
              uint64_t silence_ns_max);
  // The call has ended.
  ~SignsOfLife();

  // Why nobody asks: then a daemon that stands still would be waited for without an end.
  const absl::Status& status() const { return status_; }
  // Whether the call was cancelled because the daemon gave none.
  bool missing() const { return missing_; }

 private:
  void Watch();
  bool Ask();

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext* const call_;
  const uint64_t pause_ns_;
  absl::Status status_;  // constant after construction
  std::atomic<bool> missing_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;                       // under mutex_
  grpc::ClientContext* question_ = nullptr;  // under mutex_
  std::thread thread_;
};

}  // namespace penstock::ctl
