// The side of a helper: listens, and serves each connection on a thread of its own.
//
// Threads:  its own; everything else by its owner.
// Owns:     the listening socket, the threads, what they serve.
// Limits:   `most_streams` streams are helped; further ones are refused with the reason. Of the
//           connections that have not said what they want yet, kMostStrangers: the oldest one ends
//           where one more comes.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/descriptor.h"
#include "server/helpers/served_stream.h"

namespace penstock {

class HelperServer {
 public:
  static constexpr int kMostStrangers = 64;

  // `listening`: a socket that is bound and listens.
  static absl::StatusOr<std::unique_ptr<HelperServer>> Start(ring::Descriptor listening,
                                                             ServedStream::Means means,
                                                             int most_streams);
  // Ends all connections.
  ~HelperServer();

 private:
  struct Served {
    std::thread thread;
    std::atomic<bool> stop{false};
    std::atomic<bool> is_helped{false};  // else it is a stranger
    std::atomic<bool> over{false};
  };

  HelperServer(ring::Descriptor listening, ServedStream::Means means, int most_streams)
      : listening_(std::move(listening)), means_(std::move(means)), most_streams_(most_streams) {}
  void Accept();
  void Welcome(ring::Descriptor socket, const std::string& from);
  // One of the places for streams; ResourceExhausted where there is none.
  absl::Status Enter(Served& one);
  void EndOldestOfTooManyStrangers();
  void JoinThoseOver(bool all);

  const ring::Descriptor listening_;
  const ServedStream::Means means_;
  const int most_streams_;
  std::atomic<bool> stop_{false};
  std::atomic<int> helped_{0};
  std::list<std::unique_ptr<Served>> served_;  // the accepting thread's
  std::thread accepting_;
};

}  // namespace penstock
