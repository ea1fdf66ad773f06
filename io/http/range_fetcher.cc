#include "io/http/range_fetcher.h"

#include <utility>

#include "io/http/range_loop.h"

namespace penstock {

RangeFetcher::RangeFetcher(const Options& options) : loop_(std::make_unique<Loop>(options)) {}
RangeFetcher::~RangeFetcher() = default;
void RangeFetcher::Fetch(RangeJob job) { loop_->Add(std::move(job)); }
FetcherStats RangeFetcher::stats() const { return loop_->stats(); }

}  // namespace penstock
