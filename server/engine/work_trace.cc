#include "server/engine/work_trace.h"

#include <utility>

namespace penstock {

WorkSpans WorkTrace::End(const TickScale& scale) {
  WorkSpans ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    on_.store(false, std::memory_order_relaxed);
    ended = std::exchange(all_, WorkSpans());
  }
  for (WorkSpan& span : ended.spans) {
    span.begin = scale.ToNanos(span.begin);
    span.end = scale.ToNanos(span.end);
  }
  return ended;
}

void WorkTrace::AddSpan(WorkSpan span) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!on() || span.end <= begin_) return;
  if (all_.spans.size() == kMaxSpans) {
    ++all_.dropped;
    return;
  }
  span.begin = span.begin > begin_ ? span.begin - begin_ : 0;
  span.end -= begin_;
  all_.spans.push_back(span);
}

void WorkTrace::Add(int worker, WorkKind kind, uint64_t begin, uint64_t detail) {
  if (begin == 0) return;
  AddSpan({.begin = begin, .end = Ticks(), .detail = detail, .worker = worker, .kind = kind});
}

void WorkTrace::AddBlock(int worker, const StageClock& clock, uint64_t begin, uint64_t step,
                         const std::vector<uint64_t>& before) {
  Add(worker, WorkKind::kBlock, begin, step);
  const std::vector<uint64_t> now = clock.AllTicks();
  for (size_t stage = 0; stage < now.size(); ++stage) {
    const uint64_t ticks = now[stage] - before[stage];
    if (ticks == 0) continue;
    AddSpan({.begin = begin,
             .end = begin + ticks,
             .detail = stage,
             .worker = worker,
             .kind = WorkKind::kStage});
    begin += ticks;
  }
}

}  // namespace penstock
