#include "io/http/range_fetcher.h"

#include <utility>

#include "io/http/range_loop.h"

namespace penstock {

RangeFetcher::RangeFetcher(const Options& options) : options_(options) {}
RangeFetcher::~RangeFetcher() = default;

void RangeFetcher::Fetch(RangeJob job) {
  Loop* loop = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (loop_ == nullptr) loop_ = std::make_unique<Loop>(options_);
    loop = loop_.get();
  }
  loop->Add(std::move(job));
}

FetcherStats RangeFetcher::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return loop_ == nullptr ? FetcherStats() : loop_->stats();
}

}  // namespace penstock
