#include "server/service/tune/monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "server/service/watch/event_log.h"

namespace penstock {
namespace {

// Damaged places that are told one by one, of those that a look finds.
constexpr size_t kSkippedAtATime = 20;

uint64_t LagOf(const v1::PipelineStats& stats, const v1::ConsumerStats& consumer) {
  if (!consumer.replay()) return consumer.lag();
  // What it has to do until it meets the others.
  return stats.steps() > consumer.position() ? stats.steps() - consumer.position() : 0;
}

}  // namespace

Monitor::Monitor(EventLoop& loop, const PipelineTable& table, int processors)
    : loop_(loop), table_(table), processors_(processors) {
  Arm();
}

Monitor::~Monitor() { loop_.CancelTimer(timer_); }

void Monitor::Arm() {
  timer_ = loop_.StartTimer(absl::Seconds(1) / kLooksPerSecond, [this] {
    LookAtAll(MonotonicNs());
    Arm();
  });
}

void Monitor::LookAtAll(int64_t now_ns) {
  std::vector<Look> looks;
  const std::vector<std::shared_ptr<Pipeline>> pipelines = table_.List();
  for (const auto& pipeline : pipelines) {
    Look& look = looks.emplace_back();
    look.at_ns = now_ns;
    look.stats = pipeline->Stats(&look.streams);
    look.waits = pipeline->Waits();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [name, known] : known_) known.current = false;
  for (size_t i = 0; i < looks.size(); ++i) {
    Known& known = known_[looks[i].stats.name()];
    Add(looks[i], processors_, &known);
    Tell(*pipelines[i], looks[i].stats, &known);
  }
  std::erase_if(known_, [](const auto& entry) { return !entry.second.current; });
}

void Monitor::Tell(const Pipeline& pipeline, const v1::PipelineStats& stats, Known* known) {
  const std::string& name = stats.name();
  if (stats.skipped() > known->skipped) {
    const v1::ListSkippedResponse skipped = pipeline.Skipped();
    uint64_t told = known->skipped;
    for (size_t i = 0; i < kSkippedAtATime; ++i) {
      // What it lists may have grown since the look, and is cut at its limit.
      if (told >= stats.skipped() || told >= static_cast<uint64_t>(skipped.places_size())) break;
      const v1::SkippedPlace& place = skipped.places(static_cast<int>(told++));
      v1::Event event = MakeEvent(name, v1::EVENT_KIND_SKIPPED,
                                  absl::StrCat(place.reason(), ": ", place.file(), ", offset ",
                                               place.offset(), ", epoch ", place.epoch()));
      *event.mutable_skipped() = place;
      if (i + 1 == kSkippedAtATime || told == stats.skipped() ||
          told == static_cast<uint64_t>(skipped.places_size())) {
        event.set_further(stats.skipped() - told);
        told = stats.skipped();
      }
      table_.Publish(std::move(event));
    }
    if (told < stats.skipped()) {
      v1::Event event = MakeEvent(name, v1::EVENT_KIND_SKIPPED, "more than are listed");
      event.set_further(stats.skipped() - told);
      table_.Publish(std::move(event));
    }
    known->skipped = stats.skipped();
  }
  TellOfSharing(stats, known);
  if (stats.state() == known->state) return;
  known->state = stats.state();
  if (stats.state() == v1::PIPELINE_STATE_FINISHED) {
    table_.Publish(MakeEvent(name, v1::EVENT_KIND_ENDED,
                             absl::StrCat("the stream has ended after step ", stats.steps(), " (",
                                          stats.rows(), " rows)")));
  } else if (stats.state() == v1::PIPELINE_STATE_FAILED) {
    v1::Event event = MakeEvent(name, v1::EVENT_KIND_FAILED, stats.error().message());
    *event.mutable_error() = stats.error();
    table_.Publish(std::move(event));
  }
}

// Who hears of this pipeline may not know the others: it is told how many they are.
void Monitor::TellOfSharing(const v1::PipelineStats& stats, Known* known) {
  std::string shared;
  for (const v1::SharedPrefixStats& prefix : stats.shared_prefix()) {
    if (prefix.state() != "sharing") continue;
    absl::StrAppend(&shared, shared.empty() ? "" : "; ", "the work up to stage ", prefix.stage(),
                    " is shared with ", prefix.with_size(),
                    prefix.with_size() == 1 ? " other pipeline" : " other pipelines");
  }
  if (shared == known->shared) return;
  known->shared = shared;
  table_.Publish(
      MakeEvent(stats.name(), v1::EVENT_KIND_SHARED,
                shared.empty() ? "nothing is shared with other pipelines any more" : shared));
}

void Monitor::Add(const Look& look, int processors, Known* known) {
  if (!known->looks.empty() && look.stats.running_ns() < known->looks.back().stats.running_ns()) {
    Known anew;
    // Else it is another pipeline of the same name.
    if (look.stats.resting()) {
      anew.state = known->state;
      anew.seconds = std::move(known->seconds);
    }
    *known = std::move(anew);
  }
  known->current = true;
  known->looks.push_back(look);
  if (known->looks.size() > kLooksBack + 1) known->looks.pop_front();
  if (++known->looks_taken % kLooksPerSecond == 1 && known->looks.size() > kLooksPerSecond) {
    const Look& before = known->looks[known->looks.size() - 1 - kLooksPerSecond];
    const v1::Analysis second = Analyse(before, look, processors);
    known->seconds.push_back({second.rows_per_s(), second.read_bytes_per_s(), second.busy(),
                              second.blocked(), second.starved()});
    if (known->seconds.size() > kSecondsKept) known->seconds.pop_front();
  }
  std::map<Consumer, ConsumerLooks> consumers;
  for (int i = 0; i < look.stats.consumers_size(); ++i) {
    const v1::ConsumerStats& consumer = look.stats.consumers(i);
    const Consumer key(look.streams[static_cast<size_t>(i)], consumer.id());
    ConsumerLooks& looks = consumers[key];
    looks = std::move(known->consumers[key]);
    looks.positions.push_back(consumer.position());
    looks.empty.push_back(LagOf(look.stats, consumer) == 0);
    if (looks.positions.size() > kLooksBack + 1) looks.positions.pop_front();
    if (looks.empty.size() > kLooksBack) looks.empty.pop_front();
  }
  known->consumers = std::move(consumers);
}

v1::PipelineStats Monitor::Stats(const Pipeline& pipeline) const {
  std::vector<uint64_t> streams;
  v1::PipelineStats stats = pipeline.Stats(&streams);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = known_.find(stats.name());
  const Known* known = found == known_.end() ? nullptr : &found->second;
  if (known != nullptr && known->looks.size() > 1)
    *stats.mutable_analysis() = Analyse(known->looks.front(), known->looks.back(), processors_);
  for (int i = 0; i < stats.consumers_size(); ++i) {
    v1::ConsumerStats& consumer = *stats.mutable_consumers(i);
    consumer.set_lag(LagOf(stats, consumer));
    const Consumer key(streams[static_cast<size_t>(i)], consumer.id());
    if (known == nullptr || !known->consumers.contains(key)) continue;
    const ConsumerLooks& looks = known->consumers.at(key);
    if (looks.positions.size() > 1) {
      const uint64_t first = looks.positions.front(), last = looks.positions.back();
      consumer.set_steps_per_s(static_cast<double>(last > first ? last - first : 0) *
                               kLooksPerSecond / static_cast<double>(looks.positions.size() - 1));
    }
    if (!looks.empty.empty()) {
      consumer.set_empty(
          static_cast<double>(std::count(looks.empty.begin(), looks.empty.end(), true)) /
          static_cast<double>(looks.empty.size()));
    }
  }
  return stats;
}

std::vector<SecondOfPipeline> Monitor::History(const std::string& pipeline) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = known_.find(pipeline);
  if (found == known_.end()) return {};
  return {found->second.seconds.begin(), found->second.seconds.end()};
}

}  // namespace penstock
