#include "server/service/attach/restorer.h"

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr absl::Duration kLongestDelay = absl::Minutes(1);

}  // namespace

Restorer::~Restorer() {
  table_.OnTakenBack(nullptr);
  pool_.reset();
  for (const auto& [name, expected] : expected_) loop_.CancelTimer(expected.timer);
}

absl::Status Restorer::Start(absl::Duration patience) {
  const std::vector<std::string> names = table_.ExpectKept();
  if (names.empty()) return absl::OkStatus();
  pool_ = std::make_unique<TaskPool>(std::min(kThreads, static_cast<int>(names.size())));
  if (!pool_->status().ok()) return pool_->status();
  untried_.insert(names.begin(), names.end());
  for (const std::string& name : names) {
    expected_[name] = {first_delay_, ""};
    sessions_.ExpectLater(name);
    Try(name);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                         [this] { return untried_.empty(); })) {
    spdlog::warn("{} of {} pipelines have not come back in {}: {} and others may still read files",
                 untried_.size(), names.size(), absl::FormatDuration(patience), *untried_.begin());
  }
  return absl::OkStatus();
}

void Restorer::TakeBack(const std::string& name) {
  if (expected_.contains(name)) return;
  if (pool_ == nullptr) pool_ = std::make_unique<TaskPool>(1);
  if (!pool_->status().ok()) {
    spdlog::error("pipeline {} does not come back: {}", name, pool_->status().ToString());
    pool_.reset();
    return;
  }
  expected_[name] = {first_delay_, ""};
  sessions_.ExpectLater(name);
  Try(name);
}

void Restorer::Try(const std::string& name) {
  const bool taken = pool_->Run([this, name] {
    auto result = std::make_shared<const Result>(table_.BringBack(name));
    loop_.Post([this, name, result] { Tried(name, *result); });
    std::lock_guard<std::mutex> lock(mutex_);
    if (untried_.erase(name) > 0 && untried_.empty()) changed_.notify_all();
  });
  if (!taken) Tried(name, absl::ResourceExhaustedError("too many come back at once"));
}

void Restorer::Tried(const std::string& name, const Result& result) {
  Expected& expected = expected_.at(name);
  if (result.ok() || table_.Returning().count(name) == 0) {
    // Where it was deleted meanwhile, nobody waits for it any more.
    if (result.ok()) {
      sessions_.Expect(*result);
    } else {
      sessions_.ExpectNoMore(name, result.status());
    }
    expected_.erase(name);
    if (expected_.empty()) pool_.reset();
    return;
  }
  if (std::string failure = result.status().ToString(); failure != expected.failure) {
    spdlog::error("pipeline {} did not come back, and is tried again: {}", name, failure);
    expected.failure = std::move(failure);
  }
  sessions_.ExpectNoMore(
      name, absl::UnavailableError(absl::StrCat(
                "pipeline ", name, " has not come back yet: ", result.status().message())));
  expected.timer = loop_.StartTimer(expected.delay, [this, name] { Try(name); });
  expected.delay = std::min(2 * expected.delay, kLongestDelay);
}

}  // namespace penstock
