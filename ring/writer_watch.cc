#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>

#include "ring/ring_writer.h"

namespace penstock::ring {

void RingWriter::Tick(uint64_t now_ns, uint64_t rejoin_ns) {
  uint32_t sleepers;
  bool dropped, shared, lacks_slots;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    rejoin_ns_ = rejoin_ns;
    sleepers = EndLostGroups(now_ns, rejoin_ns) | LookWhoHoldsUp(now_ns);
    dropped = consumers_.DropDeserted(now_ns, rejoin_ns);
    // Whoever waits for the last step of a split group is told by nobody else that it was let go
    // of.
    sleepers |= ChangeWord(Grant());
    shared = holds_more_;
    if (shared) ShareLeases();
    lacks_slots = lacks_slots_;
    for (Consumer& consumer : consumers_.consumers()) {
      ++consumer.looks;
      if (IsAsleep(consumer)) ++consumer.waiting_looks;
    }
  }
  Wake(sleepers);
  if (dropped || shared) doorbell_.Ring();
  if (lacks_slots) ReplaceQuarantined();
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
