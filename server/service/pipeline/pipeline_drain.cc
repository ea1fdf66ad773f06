#include "server/service/pipeline/pipeline_drain.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "server/service/pipeline/held_streams.h"

namespace penstock {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(5);

// It takes no further step, though it may hold some.
bool IsGone(const ring::ConsumerStats& consumer) { return consumer.detached || consumer.left; }

bool IsRead(const ring::Writer& writer) {
  const std::vector<ring::ConsumerStats> consumers = writer.Consumers();
  return !std::all_of(consumers.begin(), consumers.end(), IsGone);
}

// The first step that nobody has taken, where nobody takes any more.
uint64_t NextStep(const ring::Writer& writer) {
  uint64_t next = writer.floor();
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    // A step that was taken and is still held holds the floor.
    if (consumer.mode != ring::GroupMode::kSplit) next = std::max(next, consumer.position);
  }
  return std::min(next, writer.published());
}

// Who has not taken all that was published; "" when everybody has.
std::string WhoIsBehind(const ring::Writer& writer) {
  const uint64_t published = writer.published();
  uint64_t split_leases = 0;
  bool splits = false;
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    if (consumer.detached) continue;
    if (consumer.mode == ring::GroupMode::kSplit) {
      splits |= !consumer.left;
      split_leases += consumer.leases;
    } else if (consumer.left) {
      continue;
    } else if (consumer.position < published) {
      return absl::StrCat("consumer ", consumer.id, " (process ", consumer.pid, ") stands at step ",
                          consumer.position, " of ", published);
    }
  }
  if (splits && split_leases < published - std::min(published, writer.floor()))
    return "a split group has not taken all";
  return "";
}

}  // namespace

absl::StatusOr<DrainedAt> WaitUntilTaken(const std::string& name, const PipelineStreams& streams,
                                         absl::Duration timeout,
                                         const std::function<bool()>& cancelled) {
  const int64_t deadline_ns = MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
  while (true) {
    const PipelineStreams::Standing now = streams.standing();
    if (now.closed) {
      return absl::UnavailableError(
          absl::StrCat("pipeline ", name, " was deleted, or penstockd is stopping"));
    }
    if (now.resting) return now.resting->at;
    if (cancelled()) return absl::CancelledError("the pipeline is paused; nobody waits for more");
    const std::shared_ptr<Stream>& stream = now.shared;
    if (stream == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
    const ring::Writer& writer = stream->writer();
    const std::vector<PipelineStreams::ReplayStream> replays = streams.Replays();
    if (!IsRead(writer) && std::none_of(replays.begin(), replays.end(), [](const auto& replay) {
          return IsRead(replay.stream->writer());
        })) {
      const uint64_t step = NextStep(writer);
      return DrainedAt{step, writer.Cursor(step)};
    }
    uint64_t next;
    {
      const Held held({stream});
      next = held.next();
    }
    std::string behind = WhoIsBehind(writer);
    for (const auto& replay : replays) {
      if (behind.empty()) behind = WhoIsBehind(replay.stream->writer());
    }
    // Steps that were begun are published as slots become free.
    const uint64_t published = writer.published();
    if (behind.empty() && (published == next || stream->outcome()))
      return DrainedAt{published, writer.Cursor(published)};
    if (MonotonicNs() >= deadline_ns) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the pipeline is paused, but not everything was taken in ", absl::FormatDuration(timeout),
          ": ", behind.empty() ? absl::StrCat("step ", published, " is being made") : behind));
    }
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(kLook));
  }
}

}  // namespace penstock
