// How many pipelines and workers each user may have at a time (DaemonConfig.user_quota), and how
// many workers each has.
//
// Threads:  UserQuotas is safe from any thread; a WorkerShare has one caller at a time, but for
//           workers() and Most().
// Owns:     counts. A share gives back what it has when it goes.
// Limits:   a user without a quota has none; nobody's pipelines (uid -1) count for nobody.
// Cost:     a look at each quota, some ten nanoseconds; never on the data path.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/server.pb.h"

namespace penstock {

class UserQuotas {
 public:
  // For what is asked for from now on.
  void SetQuotas(const google::protobuf::RepeatedPtrField<v1::UserQuota>& quotas);

  // ResourceExhausted where a user who has so many pipelines may have no further one.
  absl::Status CheckPipelines(uid_t user, size_t pipelines) const;

 private:
  friend class WorkerShare;

  // A quota, and how messages call it; null where the user has none. REQUIRES: mutex_.
  std::pair<const v1::UserQuota*, std::string> QuotaOf(uid_t user) const;
  // How many workers a share may have that has `own`; INT_MAX: no limit. REQUIRES: mutex_.
  int MostWorkers(uid_t user, int own) const;
  absl::Status Refusal(uid_t user, int own, int wanted) const;
  // The share has `to` instead of `from`.
  void Count(uid_t user, int from, int to);

  mutable std::mutex mutex_;
  std::vector<v1::UserQuota> quotas_;  // both under mutex_
  std::map<uid_t, int> workers_;       // only those who have some
};

// The workers of one pipeline, out of what its owner may have.
class WorkerShare {
 public:
  // `quotas` may be null: there is no limit.
  WorkerShare(std::shared_ptr<UserQuotas> quotas, uid_t user)
      : quotas_(std::move(quotas)), user_(user) {}
  ~WorkerShare() { Set(0); }
  WorkerShare(const WorkerShare&) = delete;
  WorkerShare& operator=(const WorkerShare&) = delete;

  // From now on so many. ResourceExhausted, and nothing is changed, where those are more than it
  // has and than its owner may have.
  absl::Status Have(int workers);
  // From now on so many or, where the owner may not have them, as many as there are: how many.
  // ResourceExhausted where there is none.
  absl::StatusOr<int> HaveUpTo(int workers);
  // Whatever the quota: what came back after a restart, or had them before.
  void Keep(int workers) { Set(workers); }

  int workers() const { return workers_.load(std::memory_order_relaxed); }
  // What HaveUpTo() would give now; 0: none.
  int Most(int wanted) const;

 private:
  // REQUIRES: the quotas' mutex_, where there are any.
  void SetLocked(int workers);
  void Set(int workers);

  const std::shared_ptr<UserQuotas> quotas_;
  const uid_t user_;
  std::atomic<int> workers_{0};
};

}  // namespace penstock
