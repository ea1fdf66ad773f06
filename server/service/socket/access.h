// Who may do what, by the kernel's word on who somebody is and the rules of the configuration.
//
// Threads:  safe from any thread.
// Owns:     what each user has asked of late; the settings must outlive it.
// Cost:     a call compares each rule's numbers and matches its glob.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/server.pb.h"
#include "server/service/socket/request_budget.h"
#include "server/service/socket/settings.h"

namespace penstock {

// Of a connected process, or of a certificate.
struct Identity {
  uid_t uid = 0;
  std::vector<gid_t> gids;  // main and further ones
  pid_t pid = 0;            // 0: unknown
  // It came over the network with a certificate of these names; uid and gids mean nothing then.
  bool by_certificate = false;
  std::vector<std::string> certificate_names = {};
};

// Whose shares it has: users have their numbers; certificates are beyond them, by their names.
uint64_t UserKey(const Identity& who);

// Connections and calls that were turned away since the start, by reason.
struct Refusals {
  uint64_t no_rule = 0;         // connections: no rule gives the user any right
  uint64_t no_right = 0;        // no rule gives the right, for that pipeline
  uint64_t too_often = 0;       // beyond max_requests_per_s
  uint64_t no_descriptors = 0;  // connections for which there was no descriptor
  uint64_t no_place = 0;  // connections, consumers and calls beyond a number of them at a time
};

class Access {
 public:
  explicit Access(const Settings& settings);

  // Whether any rule gives `who` any right.
  bool MayConnect(const Identity& who) const;

  // PermissionDenied names the user, the right and the setting; ResourceExhausted when the user
  // asks more often than connection_limits.max_requests_per_s.
  absl::Status Admit(const Identity& who, v1::Right right, const std::string& pipeline);

  // The right alone, for lists: it costs no request.
  bool Has(const Identity& who, v1::Right right, const std::string& pipeline) const;

  // A request that needs no right, such as a connection.
  absl::Status CountRequest(const Identity& who);

  // What the caller turns away. What this class refuses it counts itself.
  void CountNoRule() { no_rule_.fetch_add(1, std::memory_order_relaxed); }
  void CountNoDescriptors() { no_descriptors_.fetch_add(1, std::memory_order_relaxed); }
  void CountNoPlace() { no_place_.fetch_add(1, std::memory_order_relaxed); }
  Refusals Refused() const;

 private:
  const Settings& settings_;
  RequestBudget budget_;
  std::atomic<uint64_t> no_rule_{0};
  std::atomic<uint64_t> no_right_{0};
  std::atomic<uint64_t> too_often_{0};
  std::atomic<uint64_t> no_descriptors_{0};
  std::atomic<uint64_t> no_place_{0};
};

// The process at the other end of a Unix socket; with its main group alone where the kernel tells
// no more, or there are more than 256.
Identity IdentityOf(int socket, uid_t uid, gid_t gid);

}  // namespace penstock
