// Who offers to start worker processes for the functions of his own pipelines, to a daemon that is another user's. The daemon has no right to
// run anything as that user, or to end what runs: a process of his does both, as it is told here.
//
//     client                                      daemon
//     ──────                                      ──────
//     kOffer + a socket of packets      ────────► Add(): whose it is, by the kernel's word
//     its own function of that path     ◄──────── Ask(): JSON {"path", "code", "configuration_bytes"}, and the descriptors of a
//     and code, or a refusal                      worker (kFirstOfWorker), its keeper's the last
//
// Threads:  any.
// Owns:     the sockets, until their other ends have gone.
// Limits:   kMaxOffersOfUser, kMaxOffers; some sixty requests that nobody takes, of each.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ring/descriptor.h"

namespace penstock::python {

inline constexpr size_t kMaxOffersOfUser = 64;
inline constexpr size_t kMaxOffers = 512;
// What the kernel says of users that it cannot name in here: several may look like one.
inline constexpr uid_t kUnnamedUser = 65534;

class Offer {
 public:
  Offer(uint64_t number, uid_t user, ring::Descriptor socket, ring::Descriptor process)
      : number_(number), user_(user), socket_(std::move(socket)), process_(std::move(process)) {}

  uint64_t number() const { return number_; }
  uid_t user() const { return user_; }
  // Whether the other end has gone, or the process has, though a child of it may have inherited that end.
  bool has_gone() const;
  // Asks for a worker. False where nobody takes it.
  bool Ask(const std::string& text, std::span<const int> files) const;

 private:
  const uint64_t number_;
  const uid_t user_;
  const ring::Descriptor socket_;
  const ring::Descriptor process_;
};

class Offers {
 public:
  using Sharing = std::vector<std::shared_ptr<const Offer>>;

  // InvalidArgument where it is no socket of packets; PermissionDenied of a user without a name; ResourceExhausted.
  // `process`: a pidfd of it, or none.
  absl::Status Add(uid_t user, ring::Descriptor socket, ring::Descriptor process);

  // Those of that user that are there, the newest first.
  Sharing Of(uid_t user);

  // Calls `told` at each offer of that user, from the thread that adds it, as long as what is returned lives. It must not come back here.
  std::shared_ptr<void> Listen(uid_t user, std::function<void()> told);

 private:
  struct Listener {
    uid_t user;
    std::function<void()> told;
  };
  void DropGone();  // under mutex_

  std::mutex mutex_;
  uint64_t next_ = 1;                       // under mutex_
  Sharing offers_;                          // under mutex_; the newest first
  std::map<uint64_t, Listener> listeners_;  // under mutex_
};

// The daemon's.
Offers& TheOffers();

}  // namespace penstock::python
