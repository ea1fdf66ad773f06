#include "server/service/stream/memory_budget.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ring/memory_limit.h"

namespace penstock {
namespace {

// `limit`: 0 for none.
absl::Status Check(const std::string& field, const std::string& of, int64_t limit, uint64_t taken,
                   uint64_t bytes) {
  const uint64_t most = static_cast<uint64_t>(limit);
  if (limit == 0 || (taken <= most && bytes <= most - taken)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the memory for rings is used up: ", field, " is ", ring::BytesToString(most), ", ", of,
      " has ", ring::BytesToString(taken), ", and ", ring::BytesToString(bytes),
      " more are needed; use fewer ring.slots or smaller batches, delete a pipeline, or raise ",
      field));
}

template <typename Key>
uint64_t Of(const std::map<Key, uint64_t>& counts, const Key& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

int64_t OwnLimit(const MemoryOwner& owner) {
  return owner.own_limit == nullptr ? 0 : static_cast<int64_t>(owner.own_limit->load());
}

template <typename Key>
void Subtract(std::map<Key, uint64_t>* counts, const Key& key, uint64_t bytes) {
  const auto found = counts->find(key);
  if (found == counts->end()) return;
  found->second -= bytes;
  if (found->second == 0) counts->erase(found);
}

}  // namespace

void MemoryBudget::SetLimits(const v1::MemoryLimits& limits) {
  std::lock_guard<std::mutex> lock(mutex_);
  limits_ = limits;
}

uint64_t MemoryBudget::Left(const MemoryOwner& owner) const {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t left = UINT64_MAX;
  const auto within = [&left](int64_t limit, uint64_t taken) {
    const auto most = static_cast<uint64_t>(limit);
    if (most != 0) left = std::min(left, most - std::min(most, taken));
  };
  within(limits_.max_bytes(), taken_);
  within(limits_.max_pipeline_bytes(), Of(pipelines_, owner.pipeline));
  within(OwnLimit(owner), Of(pipelines_, owner.pipeline));
  if (owner.uid != static_cast<uid_t>(-1)) within(limits_.max_user_bytes(), Of(users_, owner.uid));
  if (owner.pid != 0) within(limits_.max_process_bytes(), Of(processes_, owner.pid));
  return left;
}

absl::Status MemoryBudget::Take(const MemoryOwner& owner, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status =
      Check("memory.max_pipeline_bytes", absl::StrCat("pipeline ", owner.pipeline),
            limits_.max_pipeline_bytes(), Of(pipelines_, owner.pipeline), bytes);
  status.Update(Check("memory_bytes", absl::StrCat("pipeline ", owner.pipeline), OwnLimit(owner),
                      Of(pipelines_, owner.pipeline), bytes));
  if (owner.pid != 0) {
    status.Update(Check("memory.max_process_bytes", absl::StrCat("process ", owner.pid),
                        limits_.max_process_bytes(), Of(processes_, owner.pid), bytes));
  }
  if (owner.uid != static_cast<uid_t>(-1)) {
    status.Update(Check("memory.max_user_bytes", absl::StrCat("user ", owner.uid),
                        limits_.max_user_bytes(), Of(users_, owner.uid), bytes));
  }
  status.Update(Check("memory.max_bytes", "the daemon", limits_.max_bytes(), taken_, bytes));
  if (!status.ok() || bytes == 0) return status;
  taken_ += bytes;
  pipelines_[owner.pipeline] += bytes;
  if (owner.pid != 0) processes_[owner.pid] += bytes;
  if (owner.uid != static_cast<uid_t>(-1)) users_[owner.uid] += bytes;
  return absl::OkStatus();
}

void MemoryBudget::GiveBack(const MemoryOwner& owner, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  taken_ -= bytes;
  Subtract(&pipelines_, owner.pipeline, bytes);
  if (owner.pid != 0) Subtract(&processes_, owner.pid, bytes);
  if (owner.uid != static_cast<uid_t>(-1)) Subtract(&users_, owner.uid, bytes);
}

uint64_t MemoryBudget::taken() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return taken_;
}

MemoryShare::~MemoryShare() {
  if (budget_ != nullptr && bytes_ > 0) budget_->GiveBack(owner_, bytes_);
}

absl::Status MemoryShare::Take(uint64_t bytes) {
  if (budget_ == nullptr) return absl::OkStatus();
  absl::Status status = budget_->Take(owner_, bytes);
  if (!status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  bytes_ += bytes;
  return absl::OkStatus();
}

}  // namespace penstock
