// A group whose consumers each see their rows of every step: its places, and who is missing. For
// the slots' rule an empty place is a member that releases nothing, so that every step waits for
// its rank.
//
// Threads:  one at a time (the writer's mutex).
// Owns:     the page of the empty places, on which nothing is ever released.
// Limits:   kMaxWorld places.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ring/consumer_spec.h"
#include "ring/group_waiting.h"
#include "ring/slot_table.h"

namespace penstock::ring {

class RankGroup {
 public:
  // All places are empty and need the steps from `start` on.
  RankGroup(const ConsumerSpec& spec, uint64_t start)
      : name_(spec.group),
        world_size_(spec.world_size),
        replicas_(spec.replicas),
        nobodys_(new ControlPage{}),
        places_(spec.places(), Place{0, false, start, 0}) {}

  const std::string& name() const { return name_; }
  uint32_t world_size() const { return world_size_; }
  uint32_t replicas() const { return replicas_; }
  GroupWaiting& waited_for() { return waited_for_; }
  const GroupWaiting& waited_for() const { return waited_for_; }

  uint32_t places() const { return static_cast<uint32_t>(places_.size()); }
  uint32_t consumer(uint32_t place) const { return places_[place].consumer; }
  // Whether it is empty because its consumer has left: then it keeps nothing.
  bool has_left(uint32_t place) const { return places_[place].left; }
  // REQUIRES: !has_left(place).
  uint64_t start(uint32_t place) const { return places_[place].start; }
  void Enter(uint32_t place, uint32_t consumer) { places_[place] = {consumer, false, 0, 0}; }
  // Its consumer has died, and whoever follows needs the steps from `start` on.
  void Lose(uint32_t place, uint64_t start) { places_[place] = {0, false, start, 0}; }
  // Its consumer has left: nobody follows.
  void Leave(uint32_t place) { places_[place] = {0, true, 0, 0}; }

  bool IsEmpty() const {
    for (const Place& place : places_) {
      if (place.consumer != 0) return false;
    }
    return true;
  }

  // The first step that an empty place needs; kNoStep where none waits for its consumer.
  uint64_t FirstMissing() const {
    uint64_t first = kNoStep;
    for (const Place& place : places_) {
      if (place.consumer == 0 && !place.left && place.start < first) first = place.start;
    }
    return first;
  }
  // How many places wait for their consumers, and the first of them; -1: none.
  uint32_t NumMissing(int* first_place) const {
    uint32_t missing = 0;
    *first_place = -1;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].consumer != 0 || places_[i].left) continue;
      if (missing++ == 0) *first_place = static_cast<int>(i);
    }
    return missing;
  }

  // Whether a place waits for its consumer which is not kept for one that is catching up elsewhere.
  // Behind FindLost() of that time.
  bool HasAbsent(uint64_t now_ns) const {
    for (const Place& place : places_) {
      if (place.consumer == 0 && !place.left && place.empty_since_ns != now_ns) return true;
    }
    return false;
  }
  // How long it is until FindLost() finds a place that nobody has come back to; 0: nobody is
  // missed.
  uint64_t LeftNs(uint64_t now_ns, uint64_t rejoin_ns) const {
    uint64_t left_ns = 0;
    for (const Place& place : places_) {
      if (!was_complete_ || place.consumer != 0 || place.left) continue;
      const uint64_t passed_ns = place.empty_since_ns == 0 ? 0 : now_ns - place.empty_since_ns;
      const uint64_t of_place = rejoin_ns - (passed_ns < rejoin_ns ? passed_ns : rejoin_ns);
      if (left_ns == 0 || of_place < left_ns) left_ns = of_place;
    }
    return left_ns;
  }

  // Adds a member for each place that waits for its consumer.
  void AddMissing(std::vector<Member>* members) const {
    for (const Place& place : places_) {
      if (place.consumer == 0 && !place.left) {
        members->push_back({nobodys_.get(), 0, place.start, kNeverStops});
      }
    }
  }

  // The place that has been empty for `rejoin_ns` after its consumer's death, or -1.
  int FindLost(uint64_t now_ns, uint64_t rejoin_ns) {
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      if (place.consumer != 0 || place.left) continue;
      if (place.empty_since_ns == 0) place.empty_since_ns = now_ns;
      if (was_complete_ && now_ns - place.empty_since_ns >= rejoin_ns) return static_cast<int>(i);
    }
    return -1;
  }
  // Its time begins anew.
  void Keep(uint32_t place) {
    if (place < places_.size()) places_[place].empty_since_ns = 0;
  }
  // A group that has never been complete waits for its first consumers for as long as it takes.
  void NoteCompleteness() {
    for (const Place& place : places_) {
      if (place.consumer == 0 && !place.left) return;
    }
    was_complete_ = true;
  }
  // After a restart: it was complete before.
  void NoteComplete() { was_complete_ = true; }
  bool was_complete() const { return was_complete_; }

 private:
  struct Place {
    uint32_t consumer;  // 0: empty
    bool left;
    uint64_t start;           // of an empty one
    uint64_t empty_since_ns;  // 0: not looked at yet
  };

  std::string name_;
  uint32_t world_size_;
  uint32_t replicas_;
  std::unique_ptr<ControlPage> nobodys_;
  std::vector<Place> places_;
  bool was_complete_ = false;
  GroupWaiting waited_for_;
};

}  // namespace penstock::ring
