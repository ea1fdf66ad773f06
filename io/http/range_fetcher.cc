#include "io/http/range_fetcher.h"

#include <algorithm>
#include <utility>

#include "io/http/range_loop.h"

namespace penstock {

RangeFetcher::RangeFetcher(const Options& options) : options_(options) {}
RangeFetcher::~RangeFetcher() = default;

void RangeFetcher::Fetch(RangeJob job) {
  Loop* loop = nullptr;
  absl::Status started;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (loop_ == nullptr) {
      auto made = std::make_unique<Loop>(options_);
      started = made->Start();
      if (started.ok()) loop_ = std::move(made);
    }
    loop = loop_.get();
  }
  // Who asks again has it tried again.
  if (loop == nullptr) return job.done(std::move(started));
  loop->Add(std::move(job));
}

int RangeFetcher::AtOnce() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return loop_ == nullptr ? std::min(kFirstAtOnce, options_.most_under_way) : loop_->limit();
}

FetcherStats RangeFetcher::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return loop_ == nullptr ? FetcherStats() : loop_->stats();
}

}  // namespace penstock
