#include "server/engine/run/work_trace.h"

#include <algorithm>

namespace penstock {

WorkSpans WorkTrace::End(const TickScale& scale) {
  WorkSpans ended;
  std::map<std::string, uint64_t> functions;  // indices in ended.functions
  on_.store(false, std::memory_order_relaxed);
  for (Lane& lane : lanes_) {
    // Who has seen it on holds the lock; who comes later sees it off.
    std::lock_guard<std::mutex> lock(lane.mutex);
    const size_t first_span = ended.spans.size();
    for (size_t first = 0; first < lane.spans; first += kChunkSpans) {
      const Chunk& chunk = *lane.chunks[first / kChunkSpans];
      ended.spans.insert(ended.spans.end(), chunk.begin(),
                         chunk.begin() + std::min(kChunkSpans, lane.spans - first));
    }
    std::vector<uint64_t> indices(lane.functions.size());
    for (const auto& [name, index] : lane.functions) {
      const auto [found, is_new] = functions.emplace(name, ended.functions.size());
      if (is_new) ended.functions.push_back(name);
      indices[index] = found->second;
    }
    for (size_t i = first_span; i < ended.spans.size(); ++i) {
      WorkSpan& span = ended.spans[i];
      if (span.kind == WorkKind::kFunction) span.detail = indices[span.detail];
    }
    lane.functions.clear();
    ended.dropped += lane.dropped;
    lane.chunks.clear();
    lane.spans = 0;
    lane.dropped = 0;
  }
  chunks_.store(0, std::memory_order_relaxed);
  for (WorkSpan& span : ended.spans) {
    span.begin = scale.ToNanos(span.begin);
    span.end = scale.ToNanos(span.end);
  }
  return ended;
}

void WorkTrace::AddSpan(Lane& lane, WorkSpan span) {
  const uint64_t begin = begin_.load(std::memory_order_relaxed);
  if (!on() || span.end <= begin) return;
  if (lane.spans == lane.chunks.size() * kChunkSpans) {
    if (chunks_.load(std::memory_order_relaxed) * kChunkSpans >= kMaxSpans) {
      ++lane.dropped;
      return;
    }
    chunks_.fetch_add(1, std::memory_order_relaxed);
    lane.chunks.push_back(std::make_unique<Chunk>());
  }
  span.begin = span.begin > begin ? span.begin - begin : 0;
  span.end -= begin;
  (*lane.chunks[lane.spans / kChunkSpans])[lane.spans % kChunkSpans] = span;
  ++lane.spans;
}

void WorkTrace::Add(int worker, WorkKind kind, uint64_t begin, uint64_t detail) {
  if (begin == 0) return;
  Lane& lane = lanes_[static_cast<size_t>(worker) % kLanes];
  std::lock_guard<std::mutex> lock(lane.mutex);
  AddSpan(lane, {.begin = begin, .end = Ticks(), .detail = detail, .worker = worker, .kind = kind});
}

void WorkTrace::AddBlock(int worker, WorkKind kind, const StageClock& clock, uint64_t begin,
                         uint64_t detail, const std::vector<uint64_t>& before,
                         const std::vector<FunctionTimes::Function>& functions) {
  Lane& lane = lanes_[static_cast<size_t>(worker) % kLanes];
  std::lock_guard<std::mutex> lock(lane.mutex);
  AddSpan(lane, {.begin = begin, .end = Ticks(), .detail = detail, .worker = worker, .kind = kind});
  for (size_t stage = 0; stage < before.size(); ++stage) {
    const uint64_t ticks = clock.ticks(static_cast<int>(stage)) - before[stage];
    if (ticks == 0) continue;
    AddSpan(lane, {.begin = begin,
                   .end = begin + ticks,
                   .detail = stage,
                   .worker = worker,
                   .kind = WorkKind::kStage});
    uint64_t at = begin;
    for (const FunctionTimes::Function& function : functions) {
      if (function.stage != static_cast<int>(stage) || function.ticks == 0) continue;
      const uint64_t index =
          lane.functions.emplace(*function.name, lane.functions.size()).first->second;
      // Both clocks are read at other moments: no function ends behind its stage.
      const uint64_t end = std::min(at + function.ticks, begin + ticks);
      AddSpan(lane, {.begin = at,
                     .end = end,
                     .detail = index,
                     .worker = worker,
                     .kind = WorkKind::kFunction});
      at = end;
    }
    begin += ticks;
  }
}

}  // namespace penstock
