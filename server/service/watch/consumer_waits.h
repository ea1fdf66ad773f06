// When consumers wait for batches, as looks at them again and again find it: for a profile.
//
// Threads:  of one thread.
// Limits:   kMost waits; those beyond are left out, and counted. A wait that is shorter than the
//           time between two looks may be missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ring/writer.h"

namespace penstock {

struct ConsumerWait {
  uint64_t stream = 0;    // the ordinal of its stream: each stream numbers its consumers
  uint32_t consumer = 0;  // its number
  std::string name;       // "consumer 1 of group default (process 123)"
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

class ConsumerWaits {
 public:
  static constexpr size_t kMost = 16384;

  // Who waits now, at this time since the beginning.
  void Look(uint64_t stream, const std::vector<ring::ConsumerStats>& consumers, uint64_t now_ns);
  // All of them; those that go on end now. Consumers that have not waited have one wait of no
  // length, so that they are seen.
  std::vector<ConsumerWait> End(uint64_t now_ns);
  uint64_t dropped() const { return dropped_; }

 private:
  struct Consumer {
    std::string name;
    bool waits = false;
    bool has_waited = false;
    uint64_t since_ns = 0;
    uint64_t position = 0;
  };
  using Key = std::pair<uint64_t, uint32_t>;

  void Close(const Key& key, Consumer* consumer, uint64_t now_ns);

  std::map<Key, Consumer> consumers_;
  std::vector<ConsumerWait> waits_;
  uint64_t dropped_ = 0;
};

}  // namespace penstock
