// Consumers of any kind, attached to a writer of the same thread: what the tests of groups share.
#pragma once

#include <cstdint>

#include "ring/writer.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {

inline constexpr uint64_t kSecondNs = 1'000'000'000;

// A consumer of any kind, to which its writer deals what it may have.
class Attached : public TestConsumer {
 public:
  Attached(Writer* writer, const ConsumerSpec& spec, const ConsumerPosition& position = {})
      : TestConsumer(writer, {}, spec, position), writer_(writer) {}

  // The next step; none in time is kTimeout.
  Reader::Result Next(Lease* lease) {
    Reader::Result result = reader().Next(0, lease);
    if (result == Reader::Result::kTimeout) {
      writer_->Deal();
      result = reader().Next(0, lease);
    }
    return result;
  }
  Lease Take() {
    Lease lease;
    REQUIRE(Next(&lease) == Reader::Result::kBatch);
    REQUIRE(IsIntact(lease));
    return lease;
  }

 private:
  Writer* writer_;
};

inline ConsumerSpec Split(uint64_t identity, bool at_most_once = false) {
  ConsumerSpec spec;
  spec.group = "workers";
  spec.mode = GroupMode::kSplit;
  spec.identity = identity;
  spec.at_most_once = at_most_once;
  return spec;
}

inline ConsumerSpec Rank(uint32_t rank, uint32_t world_size) {
  ConsumerSpec spec;
  spec.group = "ranks";
  spec.mode = GroupMode::kRank;
  spec.rank = rank;
  spec.world_size = world_size;
  spec.identity = 100 + rank;
  return spec;
}

inline ConsumerSpec Slow(SlowPolicy slow, uint32_t lag_ms = 0) {
  ConsumerSpec spec;
  spec.slow = slow;
  spec.lag_ms = lag_ms;
  return spec;
}

inline bool IsSentAway(const Writer& writer, uint32_t id) {
  for (const ConsumerStats& stats : writer.Consumers()) {
    if (stats.id == id) return stats.detached;
  }
  FAIL("no such consumer");
  return false;
}

}  // namespace penstock::ring
