#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>

#include "ring/ring_writer.h"

namespace penstock::ring {
namespace {

// Who waits wakes up now and then, and may not get a processor, or Python's lock, for a while.
constexpr uint64_t kAwakeNs = 1'000'000'000;

}  // namespace

void RingWriter::Tick(uint64_t now_ns, uint64_t rejoin_ns) {
  uint32_t sleepers;
  bool dropped, shared;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sleepers = EndLostGroups(now_ns, rejoin_ns) | SendOnTheSlow(now_ns);
    dropped = consumers_.DropDeserted(now_ns, rejoin_ns);
    // Whoever waits for the last step of a split group is told by nobody else that it was let go of.
    sleepers |= ChangeWord(Grant());
    shared = holds_more_;
    if (shared) ShareLeases();
    for (Consumer& consumer : consumers_.consumers()) {
      ++consumer.looks;
      if (IsAsleep(consumer)) ++consumer.waiting_looks;
    }
  }
  Wake(sleepers);
  if (dropped || shared) doorbell_.Ring();
  if (lacks_slots_) ReplaceQuarantined();
}

bool RingWriter::SomebodyWaits(uint64_t now_ns) {
  bool somebody = false;
  for (Consumer& consumer : consumers_.consumers()) somebody |= Waits(consumer, now_ns);
  return somebody;
}

bool RingWriter::Waits(Consumer& consumer, uint64_t now_ns) const {
  if (consumer.judged || consumer.left) return false;
  const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
  if (position < (consumer.splits() ? consumer.granted : slots_.published())) return false;
  if (IsAsleep(consumer)) {
    consumer.waited_ns = now_ns;
    consumer.waited_position = position;
  }
  return consumer.waited_position == position && now_ns - consumer.waited_ns < kAwakeNs;
}

uint32_t RingWriter::SendOnTheSlow(uint64_t now_ns) {
  const bool somebody_waits = SomebodyWaits(now_ns);
  const bool stuck = starved_ && !slots_.Sweep(consumers_.Members()) && somebody_waits;
  // Who waits may hold more than its share, since that was larger, and keep the others from theirs.
  if (stuck && SlotsFor(header().lease_share.load(std::memory_order_relaxed)) > slots_.limit())
    lacks_slots_ = true;
  uint32_t sleepers = 0;
  for (Consumer& consumer : consumers_.consumers()) {
    if (consumer.judged || consumer.spec.mode != GroupMode::kBroadcast) continue;
    const uint64_t first = slots_.FirstNeeded(consumer.member);
    const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
    if (!stuck || first >= slots_.published() || position >= slots_.published()) {
      consumer.blocks_since_ns = 0;
      continue;
    }
    if (consumer.spec.slow == SlowPolicy::kBlock) {
      if (consumer.blocks_since_ns == 0 || consumer.blocked_step != first) {
        consumer.blocks_since_ns = now_ns;
        consumer.blocked_step = first;
        continue;
      }
      const uint64_t lag_ns = uint64_t{consumer.spec.lag_ms} * 1'000'000;
      if (now_ns - consumer.blocks_since_ns < lag_ns) continue;
    }
    consumer.blocks_since_ns = 0;
    lacks_slots_ = true;
    if (consumer.spec.slow == SlowPolicy::kSkip) {
      sleepers |= Skip(consumer);
    } else if (consumer.spec.slow == SlowPolicy::kDetach) {
      sleepers |= Judge(consumer, kVerdictDetached,
                        "DETACHED: it held up other consumers at step " + std::to_string(first) +
                            " (group \"" + consumer.spec.group + "\", policy detach)");
    } else {
      sleepers |= Judge(consumer, kVerdictReattach, "");
    }
  }
  return sleepers;
}

uint32_t RingWriter::Skip(Consumer& consumer) {
  ControlPage& page = consumer.page->page();
  const uint64_t next = slots_.published();
  // SYNC verdict: before the look at its position, as the consumer looks here after its own store.
  page.skip_to.store(next, std::memory_order_seq_cst);
  const uint64_t position = std::min(page.position.load(std::memory_order_seq_cst), next);
  consumer.member.kept = consumers_.HeldAtMost(consumer, position, slots_);
  consumer.member.kept_below = position;
  // What an earlier skip, which it has not seen yet, has left out is counted already.
  consumer.skipped += next - std::clamp(consumer.member.start, position, next);
  consumer.member.start = next;
  return ChangeWord(consumers_.TakeSleeper(consumer));
}

void RingWriter::ReplaceQuarantined() {
  // A newcomer grows the ring as well.
  std::unique_lock<std::mutex> attach_lock(attach_mutex_, std::try_to_lock);
  if (!attach_lock.owns_lock()) return;
  uint32_t wanted = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lacks_slots_ = false;
    wanted = std::max(2 * (consumers_.size() + (Quarantined() + 1) / 2) + 1, SlotsFor(2));
  }
  GrowTo(wanted);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ShareLeases();
  }
  doorbell_.Ring();
}

void RingWriter::KeepPlace(std::string_view group, uint32_t place) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (RankGroup* const rank = consumers_.FindRank(group)) rank->Keep(place);
}

void RingWriter::LeavePlace(std::string_view group, uint32_t place) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    consumers_.LeaveEmptyPlace(group, place);
  }
  // What it needed may be free now.
  doorbell_.Ring();
}

uint32_t RingWriter::EndLostGroups(uint64_t now_ns, uint64_t rejoin_ns) {
  uint32_t sleepers = 0;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(rejoin_ns) * 1e-9);
  for (RankGroup& rank : consumers_.ranks()) {
    const int place = rank.FindLost(now_ns, rejoin_ns);
    if (place < 0) continue;
    const std::string group = rank.name();
    const std::string message =
        "PEER_LOST: rank " + std::to_string(static_cast<uint32_t>(place) / rank.replicas()) +
        " of " + std::to_string(rank.world_size()) + " has died and not come back in " + seconds +
        " seconds (group \"" + group + "\")";
    for (Consumer& consumer : consumers_.consumers()) {
      if (consumer.judged || consumer.spec.mode != GroupMode::kRank ||
          consumer.spec.group != group) {
        continue;
      }
      sleepers |= Judge(consumer, kVerdictPeerLost, message);
    }
    // The last judgement has erased the group, and others may have moved.
    return sleepers;
  }
  return sleepers;
}

}  // namespace penstock::ring
