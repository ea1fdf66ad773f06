#include "server/service/pipeline/user_quotas.h"

#include <unistd.h>

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr uid_t kNobody = static_cast<uid_t>(-1);
constexpr char kWhose[] = "(penstock list shows whose they are)";

}  // namespace

void UserQuotas::SetQuotas(const google::protobuf::RepeatedPtrField<v1::UserQuota>& quotas) {
  std::lock_guard<std::mutex> lock(mutex_);
  quotas_.assign(quotas.begin(), quotas.end());
}

std::pair<const v1::UserQuota*, std::string> UserQuotas::QuotaOf(uid_t user) const {
  std::pair<const v1::UserQuota*, std::string> found = {nullptr, ""};
  if (user == kNobody) return found;
  for (size_t i = 0; i < quotas_.size(); ++i) {
    const v1::UserQuota& quota = quotas_[i];
    const std::string name = absl::StrCat("user_quota[", i, "]");
    if (std::find(quota.uids().begin(), quota.uids().end(), user) != quota.uids().end())
      return {&quota, name};
    // Root may change the configuration, and the daemon's user is whom it works for.
    if (quota.uids().empty() && user != 0 && user != geteuid()) found = {&quota, name};
  }
  return found;
}

absl::Status UserQuotas::CheckPipelines(uid_t user, size_t pipelines) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [quota, name] = QuotaOf(user);
  if (quota == nullptr || !quota->has_max_pipelines() ||
      pipelines < static_cast<size_t>(quota->max_pipelines()))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("user ", user, " has ", pipelines, pipelines == 1 ? " pipeline" : " pipelines",
                   ", and may have at most ", quota->max_pipelines(), " (", name,
                   ".max_pipelines of the daemon's configuration): delete one ", kWhose,
                   ", or have the quota raised"));
}

int UserQuotas::MostWorkers(uid_t user, int own) const {
  const v1::UserQuota* const quota = QuotaOf(user).first;
  if (quota == nullptr || !quota->has_max_workers()) return INT_MAX;
  const auto all = workers_.find(user);
  const int others = (all == workers_.end() ? 0 : all->second) - own;
  return std::max(0, quota->max_workers() - others);
}

absl::Status UserQuotas::Refusal(uid_t user, int own, int wanted) const {
  const auto [quota, name] = QuotaOf(user);
  const int left = MostWorkers(user, own);
  return absl::ResourceExhaustedError(absl::StrCat(
      "workers: user ", user, " may have at most ", quota->max_workers(), " (", name,
      ".max_workers of the daemon's configuration), of which other pipelines have ",
      (workers_.contains(user) ? workers_.at(user) : 0) - own, "; found ", wanted, ": ",
      left > 0 ? absl::StrCat("ask for at most ", left, " (workers, --workers), ") : "",
      "delete a pipeline ", kWhose,
      ", give another fewer (penstock update NAME --workers N), or have the quota raised"));
}

void UserQuotas::Count(uid_t user, int from, int to) {
  if (user == kNobody) return;
  int& count = workers_[user];
  count += to - from;
  if (count == 0) workers_.erase(user);
}

absl::Status WorkerShare::Have(int workers) {
  if (quotas_ == nullptr) {
    Set(workers);
    return absl::OkStatus();
  }
  std::lock_guard<std::mutex> lock(quotas_->mutex_);
  if (workers > this->workers() && workers > quotas_->MostWorkers(user_, this->workers()))
    return quotas_->Refusal(user_, this->workers(), workers);
  SetLocked(workers);
  return absl::OkStatus();
}

absl::StatusOr<int> WorkerShare::HaveUpTo(int workers) {
  if (quotas_ == nullptr) {
    Set(workers);
    return workers;
  }
  std::lock_guard<std::mutex> lock(quotas_->mutex_);
  // A quota that has become smaller takes nothing away.
  const int most = std::max(this->workers(), quotas_->MostWorkers(user_, this->workers()));
  if (most == 0) return quotas_->Refusal(user_, 0, workers);
  SetLocked(std::min(workers, most));
  return this->workers();
}

int WorkerShare::Most(int wanted) const {
  if (quotas_ == nullptr) return wanted;
  std::lock_guard<std::mutex> lock(quotas_->mutex_);
  return std::min(wanted, std::max(workers(), quotas_->MostWorkers(user_, workers())));
}

void WorkerShare::SetLocked(int workers) {
  quotas_->Count(user_, this->workers(), workers);
  workers_.store(workers, std::memory_order_relaxed);
}

void WorkerShare::Set(int workers) {
  if (quotas_ == nullptr) {
    workers_.store(workers, std::memory_order_relaxed);
    return;
  }
  std::lock_guard<std::mutex> lock(quotas_->mutex_);
  SetLocked(workers);
}

}  // namespace penstock
